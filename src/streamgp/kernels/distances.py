"""Distances between all pairs of two sets of points, and sums over those pairs.

One matrix product gives all squared distances of wide inputs at once, but it takes the difference
of large numbers: two points that are close to each other and far from the origin lose all their
digits. So the points are centred first, and the close pairs are computed again from the difference
of the two points as they were. What comes out has a relative error of about 1e-12 at most, and is
exactly zero for two equal points. A Matern12 kernel needs this: an error of 1e-16 in the square is
one of 1e-8 in the distance, far above the nugget of 1e-10.
"""

import numpy as np
from jaxtyping import Int

from streamgp.kernels.blocks import mirror
from streamgp.kernels.shapes import Columns, Inputs, Matrix, Others

# A pair is close if its distance is below this share of the first point's norm.
_CLOSE = 0.03
# Beyond this share of close pairs, computing all of them from differences is faster.
_MANY = 0.05
# The matrix product is worth its overhead beyond this many columns, and this much work.
_NARROW = 4
_LITTLE_WORK = 100_000
# Up to this many numbers, an array of all differences is the fastest way to sum over pairs.
_FEW_DIFFERENCES = 4_096
# Squared coordinates up to here leave twelve digits to a difference of sums of them.
_FAR = 1e4


def squared_distances(a: Inputs, b: Others) -> Matrix:
    """|a_i − b_j|², exactly zero for equal points, and exactly symmetric if `b is a`."""
    if a.shape[1] == 1:
        difference = _differences(a, b, 0)
        return np.multiply(difference, difference, out=difference)
    if len(a) * len(b) * (a.shape[1] - _NARROW) <= _LITTLE_WORK:
        return _by_pairs(a, b)
    return _by_matrix_product(a, b)


def distances(a: Inputs, b: Others) -> Matrix:
    """|a_i − b_j|, as above."""
    if a.shape[1] == 1:
        difference = _differences(a, b, 0)
        return np.absolute(difference, out=difference)
    squares = squared_distances(a, b)
    return np.sqrt(squares, out=squares)


def second_moments(
    a: Inputs,
    b: Others,
    weights: Matrix,
    distance: Matrix | None = None,
) -> Columns:
    """Σ_ij weights_ij (a_ip − b_jp)² for every column p.

    Give the distances if weights may grow without bound as two points meet, as 1/r does. Close
    pairs are then summed on their own, for their weights would enlarge rounding errors.
    """
    if weights.size * a.shape[1] <= _FEW_DIFFERENCES:
        difference = a[:, None] - b
        difference *= difference
        return weights.ravel() @ difference.reshape(weights.size, a.shape[1])
    if a.shape[1] == 1:
        return _direct_second_moments(a, b, weights)
    centred_a, centred_b = _centred(a, b)
    if distance is None and not _is_far(centred_a, centred_b):
        return _expanded_second_moments(centred_a, centred_b, weights)
    i, j = _close_pairs(centred_a, distances(a, b) if distance is None else distance)
    if len(i) > _MANY * weights.size:
        return _direct_second_moments(a, b, weights)
    close = weights[i, j] @ np.square(a[i] - b[j])
    return close + _expanded_second_moments(centred_a, centred_b, _without(weights, i, j))


def first_moments(
    a: Inputs,
    b: Others,
    weights: Matrix,
    distance: Matrix | None = None,
) -> Inputs:
    """Σ_j weights_ij (a_ip − b_jp) for every row i and column p; distances as above."""
    if weights.size * a.shape[1] <= _FEW_DIFFERENCES:
        return np.einsum("ij,ijp->ip", weights, a[:, None] - b)
    if a.shape[1] == 1:
        return _direct_first_moments(a, b, weights)
    centred_a, centred_b = _centred(a, b)
    if distance is None and not _is_far(centred_a, centred_b):
        return _expanded_first_moments(centred_a, centred_b, weights)
    i, j = _close_pairs(centred_a, distances(a, b) if distance is None else distance)
    if len(i) > _MANY * weights.size:
        return _direct_first_moments(a, b, weights)
    moments = _expanded_first_moments(centred_a, centred_b, _without(weights, i, j))
    np.add.at(moments, i, weights[i, j][:, None] * (a[i] - b[j]))
    return moments


def _by_pairs(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    from scipy.spatial.distance import cdist  # here, because it is slow to import

    return cdist(a, b, "sqeuclidean")


# -- squared distances by one product ------------------------------------------------------------


def _by_matrix_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    centred_a, centred_b = _centred(a, b)
    squares = _product(centred_a, centred_b)
    i, j = _places(squares < (_CLOSE**2 * _norms(centred_a))[:, None])
    if len(i) > _MANY * squares.size:
        return _by_pairs(a, b)
    squares[i, j] = _norms(a[i] - b[j])
    if b is a:
        mirror(squares)  # the product rounds the two halves differently
    return squares


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """|a|² − 2ab + |b|² as one product of rows (a, |a|², 1) and (−2b, 1, |b|²)."""
    width = a.shape[1]
    left, right = np.empty((len(a), width + 2)), np.empty((len(b), width + 2))
    left[:, :width], left[:, width], left[:, width + 1] = a, _norms(a), 1.0
    np.multiply(b, -2.0, out=right[:, :width])
    right[:, width], right[:, width + 1] = 1.0, _norms(b)
    return left @ right.T


def _norms(a: np.ndarray) -> np.ndarray:
    """|a_i|²."""
    return np.einsum("ip,ip->i", a, a)


def _centred(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both seen from the mean of the second; `b is a` stays so."""
    centre = np.add.reduce(b, axis=0) / len(b)
    moved = a - centre
    return moved, moved if b is a else b - centre


def _places(mask: np.ndarray) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
    return np.divmod(np.flatnonzero(mask), mask.shape[1])


# -- sums over pairs -----------------------------------------------------------------------------


def _close_pairs(
    a: Inputs, distance: Matrix
) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
    """Pairs whose distance is small beside their distance from the origin."""
    return _places(distance < (_CLOSE * np.sqrt(_norms(a)))[:, None])


def _is_far(a: np.ndarray, b: np.ndarray) -> bool:
    return max(_norms(a).max(), _norms(b).max()) > _FAR


def _without(weights: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    rest = weights.copy()
    rest[i, j] = 0.0
    return rest


def _differences(a: np.ndarray, b: np.ndarray, column: int) -> np.ndarray:
    return np.subtract.outer(a[:, column], b[:, column])


def _direct_second_moments(a: np.ndarray, b: np.ndarray, weights: np.ndarray) -> np.ndarray:
    moments = np.empty(a.shape[1])
    for column in range(a.shape[1]):
        difference = _differences(a, b, column)
        moments[column] = np.vdot(weights, np.multiply(difference, difference, out=difference))
    return moments


def _direct_first_moments(a: np.ndarray, b: np.ndarray, weights: np.ndarray) -> np.ndarray:
    moments = np.empty(a.shape)
    for column in range(a.shape[1]):
        moments[:, column] = np.einsum("ij,ij->i", weights, _differences(a, b, column))
    return moments


def _expanded_second_moments(a: np.ndarray, b: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Σ_i row_i a_i² + Σ_j column_j b_j² − 2 Σ_i a_i (W b)_i: no array of N·M·P numbers."""
    by_row, by_column = weights @ np.ones(len(b)), np.ones(len(a)) @ weights
    mixed = np.einsum("ip,ip->p", a, weights @ b)
    return by_row @ (a * a) + by_column @ (b * b) - 2.0 * mixed


def _expanded_first_moments(a: np.ndarray, b: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return (weights @ np.ones(len(b)))[:, None] * a - weights @ b
