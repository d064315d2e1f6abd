"""Buckets: a few padded sizes, so that batches of any size need only a few compilations.

Small sizes are far apart, because their arithmetic costs next to nothing while a compilation takes
seconds.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

_ROWS = (8, 128)
_INDUCING = (32, 64)


def row_bucket(count: int) -> int:
    """The padded number of observations: 8, 128, and then the powers of two."""
    return _bucket(count, _ROWS)


def inducing_bucket(count: int) -> int:
    """The padded number of inducing points: 32, 64, 96, 128, 192 and so on.

    The steps are finer than for rows, because the cost of an update is cubic in this number.
    """
    size = _bucket(count, _INDUCING)
    three_quarters = size * 3 // 4
    return three_quarters if size > _INDUCING[-1] and count <= three_quarters else size


def _bucket(count: int, small: tuple[int, ...]) -> int:
    for size in small:
        if count <= size:
            return size
    return 1 << (count - 1).bit_length()


def by_chunks(function: Callable[..., Any], *rows: np.ndarray, most: int) -> Any:
    """Call a function on a few rows at a time.

    Args:
        function: Takes arrays with the same number of rows, and returns arrays with one row for
            each of them.
        *rows: The arrays to call it with.
        most: The largest number of rows per call. Each call is padded to a bucket.

    Returns:
        What the function returns, for all rows and without padding.
    """
    count, pieces = len(rows[0]), []
    for begin in range(0, max(count, 1), most):
        chunk = [array[begin : begin + most] for array in rows]
        size = len(chunk[0])
        result = function(*[_padded(array, row_bucket(size)) for array in chunk])
        pieces.append(jax.tree.map(lambda leaf, size=size: np.asarray(leaf)[:size], result))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *pieces)


def _padded(array: np.ndarray, size: int) -> np.ndarray:
    widths = [(0, size - len(array)), *[(0, 0)] * (array.ndim - 1)]
    return np.pad(array, widths, mode="edge" if len(array) else "constant")
