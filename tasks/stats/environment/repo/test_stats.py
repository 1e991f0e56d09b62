from stats import median, moving_average


def test_median_of_an_odd_count():
    assert median([9, 1, 5]) == 5


def test_median_of_an_even_count():
    assert median([4, 1, 3, 2]) == 2.5


def test_moving_average():
    assert moving_average([1, 2, 3, 4], 2) == [1.5, 2.5, 3.5]
