"""Linear algebra of many small matrices at once.

Where numbers have run off, results are NaN, which callers refuse as not finite.
"""

import functools

import numpy as np
from jaxtyping import Float

Matrices = Float[np.ndarray, "*n d d"]
Columns = Float[np.ndarray, "*n d k"]


_SIGNS = np.array([[1.0, -1.0], [-1.0, 1.0]])


def solve(matrices: np.ndarray, sides: np.ndarray) -> np.ndarray:
    """A⁻¹·side of each matrix."""
    try:
        return np.linalg.solve(matrices, sides)
    except np.linalg.LinAlgError:
        return np.full(sides.shape, np.nan)


def inverse(matrices: Matrices) -> Matrices:
    """A⁻¹ of each matrix. Products with it are far cheaper than solving with several sides."""
    size = matrices.shape[-1]
    if size == 1:
        return 1.0 / matrices
    if size == 2:
        adjugate = _SIGNS * turned(matrices[..., ::-1, ::-1])
        return adjugate / _determinant_of_two(matrices)[..., None, None]
    try:
        return np.linalg.inv(matrices)
    except np.linalg.LinAlgError:
        if matrices.ndim == 2:
            return np.full(matrices.shape, np.nan)
        return np.array(list(map(inverse, matrices)))  # only those that have none are NaN


def rows_of(
    matrices: Matrices, sides: Columns, rounding: float
) -> tuple[Float[np.ndarray, "*n r d"], Float[np.ndarray, "*n r k"]]:
    """Rows w and numbers v with wᵀw = A and wᵀv = side, for A ⪰ 0 and sides in its range.

    It is a Cholesky decomposition that always goes on with the largest entry of the diagonal that
    is left, and ends where that is rounding. There are as many rows as the largest rank asks for.

    Args:
        matrices: A.
        sides: What v is for.
        rounding: Entries of what is left that are smaller are none, relative to the largest of A.
    """
    *shape, size, width = sides.shape
    both = np.concatenate([matrices, sides], axis=-1).reshape(-1, size, size + width)
    count = len(both)
    every, left = np.arange(count), np.diagonal(both, axis1=1, axis2=2).copy()
    least = rounding * left.max(axis=1, initial=0.0)
    found = np.zeros((count, size, size + width))
    for rank in range(size):
        pivot = left.argmax(axis=1)
        top = left[every, pivot]
        is_there = top > least
        if not is_there.any():
            found = found[:, :rank]
            break
        row = both[every, pivot]
        if rank:
            before = found[:, :rank]
            row = row - (before[every, :, pivot][:, None, :] @ before)[:, 0]
        row /= np.sqrt(np.where(is_there, top, np.inf))[:, None]
        found[:, rank] = row
        left -= row[:, :size] ** 2
        left[every, pivot] = 0.0
    found = found.reshape(*shape, -1, size + width)
    return found[..., :size], found[..., size:]


def _determinant_of_two(matrices: Float[np.ndarray, "*n 2 2"]) -> Float[np.ndarray, "*n"]:
    a, b, c, d = (matrices[..., i, j] for i in range(2) for j in range(2))
    return a * d - b * c


def log_det(matrices: Matrices) -> Float[np.ndarray, "*n"]:
    """log |det A| of each matrix."""
    if matrices.shape[-1] == 2:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.log(np.abs(_determinant_of_two(matrices)))
    with np.errstate(invalid="ignore"):
        return np.linalg.slogdet(matrices)[1]


def identity_plus(matrices: Matrices) -> Matrices:
    """I + A of each matrix. The matrices are changed in place."""
    matrices += _identity(matrices.shape[-1])
    return matrices


@functools.lru_cache(maxsize=64)
def _identity(size: int) -> Float[np.ndarray, "d d"]:
    return np.eye(size)


def turned(matrices: np.ndarray) -> np.ndarray:
    """The transpose of each matrix."""
    return matrices.swapaxes(-1, -2)
