"""A few padded sizes, so that ragged streams meet few shapes and few compilations.

Small sizes are far apart: their arithmetic costs next to nothing and a compilation seconds.
"""

_ROWS = (8, 128)
_INDUCING = (32, 64)


def row_bucket(count: int) -> int:
    """The padded number of observations: 8, 128, then powers of two."""
    return _bucket(count, _ROWS)


def inducing_bucket(count: int) -> int:
    """The padded number of inducing points: 32, 64, 96, 128, 192 …

    Finer than for rows: the cost of an update is cubic in this one.
    """
    size = _bucket(count, _INDUCING)
    three_quarters = size * 3 // 4
    return three_quarters if size > _INDUCING[-1] and count <= three_quarters else size


def _bucket(count: int, small: tuple[int, ...]) -> int:
    for size in small:
        if count <= size:
            return size
    return 1 << (count - 1).bit_length()
