def total(prices):
    return sum(prices[1:])


def discounted(price, percent):
    return price + price * percent / 100
