import pytest

from stats import mean, median, moving_average


def test_mean_is_as_it_was():
    assert mean([1, 2, 6]) == 3
    with pytest.raises(ValueError, match="no values"):
        mean([])


@pytest.mark.parametrize(("values", "expected"), [([7], 7), ([3, 1, 2], 2), ([5, 5, 1, 9, 0], 5)])
def test_median_of_odd_counts(values, expected):
    assert median(values) == expected


@pytest.mark.parametrize(
    ("values", "expected"), [([1, 2], 1.5), ([10, 2, 8, 4], 6), ([-1, 1, -3, 3], 0), ([2, 2, 2, 2], 2)]
)
def test_median_of_even_counts(values, expected):
    assert median(values) == pytest.approx(expected)


def test_median_leaves_its_argument_alone():
    values = [3, 1, 2, 4]
    median(values)
    assert values == [3, 1, 2, 4]


def test_moving_average_reaches_the_last_window():
    assert moving_average([2, 4, 6, 8, 10], 3) == pytest.approx([4, 6, 8])


def test_moving_average_of_one_whole_window():
    assert moving_average([1, 2, 3], 3) == pytest.approx([2])


def test_moving_average_of_windows_of_one():
    assert moving_average([5, 7], 1) == pytest.approx([5, 7])


def test_moving_average_of_fewer_values_than_a_window():
    assert moving_average([1, 2], 3) == []
