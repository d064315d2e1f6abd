"""A few padded sizes, so that ragged streams meet few shapes and few compilations.

Small sizes are far apart: their arithmetic costs next to nothing and a compilation seconds.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

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


def by_chunks(function: Callable[..., Any], *rows: np.ndarray, most: int) -> Any:
    """`function` of arrays with a row each, `most` rows at a time, padded to a bucket.

    What it returns, arrays with a row each, is put together again. Padding repeats the last row.
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
