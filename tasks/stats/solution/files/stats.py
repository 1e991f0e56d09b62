"""Small statistics helpers."""


def mean(values):
    """The arithmetic mean of a non-empty sequence."""
    if not values:
        raise ValueError("mean of no values")
    return sum(values) / len(values)


def median(values):
    """The middle value of a non-empty sequence; for an even count, the mean of the two middle values."""
    if not values:
        raise ValueError("median of no values")
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def moving_average(values, size):
    """The mean of every window of `size` neighbouring values, in order."""
    if size < 1:
        raise ValueError("a window needs at least one value")
    return [mean(values[start : start + size]) for start in range(len(values) - size + 1)]
