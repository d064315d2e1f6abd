"""A few padded sizes, so that ragged streams meet few shapes and few compilations."""

_SMALLEST = 8


def row_bucket(count: int) -> int:
    """The padded number of observations: a power of two."""
    size = _SMALLEST
    while size < count:
        size *= 2
    return size


def inducing_bucket(count: int) -> int:
    """The padded number of inducing points: 8, 12, 16, 24, 32, 48 …

    Finer than for rows: the cost of an update is cubic in this one.
    """
    size = row_bucket(count)
    return size * 3 // 4 if size > _SMALLEST and count <= size * 3 // 4 else size
