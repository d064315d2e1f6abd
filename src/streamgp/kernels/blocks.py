"""How a large matrix is worked on: in blocks of rows that stay in the cache.

Temporary arrays of the full size would cost several times as much as the arithmetic on them, since
the system has to supply their memory each time.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

_BLOCK_SIZE = 65_536
# Few rows at a time, because a transposed copy jumps through memory.
_MIRRORED_ROWS = 16


def row_blocks(rows: int, columns: int) -> Iterator[slice]:
    """The rows of a matrix, in blocks of few enough numbers; one block if there are none."""
    step = max(1, _BLOCK_SIZE // max(columns, 1))
    for start in range(0, max(rows, 1), step):
        yield slice(start, start + step)


def mirror(matrix: Float[np.ndarray, "M M"]) -> None:
    """Make a matrix exactly symmetric that is so up to rounding. Its diagonal stays."""
    for start in range(0, len(matrix), _MIRRORED_ROWS):
        rows = slice(start, start + _MIRRORED_ROWS)
        matrix[:start, rows] = matrix[rows, :start].T
        own = matrix[rows, rows]
        own[:] = 0.5 * (own + own.T)
