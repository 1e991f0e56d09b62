from cart import discounted, total


def test_total():
    assert total([2, 3, 5]) == 10


def test_discounted():
    assert discounted(200, 10) == 180
