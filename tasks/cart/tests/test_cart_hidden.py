import pytest

from cart import discounted, total


@pytest.mark.parametrize(("prices", "expected"), [([4], 4), ([1, 2], 3), ([10, 20, 30, 40], 100), ([0, 0, 7], 7)])
def test_total_adds_every_price(prices, expected):
    assert total(prices) == expected


def test_total_of_an_empty_list_is_zero():
    assert total([]) == 0


def test_total_takes_prices_with_cents():
    assert total([0.5, 0.25, 1.25]) == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("price", "percent", "expected"), [(100, 25, 75), (80, 50, 40), (60, 100, 0), (19.5, 10, 17.55)]
)
def test_discount_makes_the_price_smaller(price, percent, expected):
    assert discounted(price, percent) == pytest.approx(expected)


def test_discount_of_nothing_changes_nothing():
    assert discounted(42, 0) == 42
