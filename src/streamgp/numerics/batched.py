"""Linear algebra of many small matrices at once.

Where numbers have run off, results are NaN, which callers refuse as not finite.
"""

import numpy as np
from jaxtyping import Float

Matrices = Float[np.ndarray, "n d d"]
Columns = Float[np.ndarray, "n d k"]


def solve(matrices: np.ndarray, sides: np.ndarray) -> np.ndarray:
    """A⁻¹·side of each matrix."""
    try:
        return np.linalg.solve(matrices, sides)
    except np.linalg.LinAlgError:
        return np.full(sides.shape, np.nan)


def cholesky(matrices: Matrices) -> Matrices:
    """Lower Cholesky factors."""
    try:
        return np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        return np.full(matrices.shape, np.nan)


def eigen(matrices: Matrices) -> tuple[Float[np.ndarray, "n d"], Matrices]:
    """Eigenvalues, ascending, and eigenvectors of symmetric matrices."""
    try:
        return np.linalg.eigh(matrices)
    except np.linalg.LinAlgError:
        return np.full(matrices.shape[:2], np.nan), np.full(matrices.shape, np.nan)


def identity_plus(matrices: Matrices) -> Matrices:
    """I + A of each matrix. The matrices are changed in place."""
    diagonal = np.arange(matrices.shape[-1])
    matrices[:, diagonal, diagonal] += 1.0
    return matrices


def turned(matrices: np.ndarray) -> np.ndarray:
    """The transpose of each matrix."""
    return np.swapaxes(matrices, -1, -2)
