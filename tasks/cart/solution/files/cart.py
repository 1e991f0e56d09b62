def total(prices):
    return sum(prices)


def discounted(price, percent):
    return price - price * percent / 100
