"""The one nugget, the one Cholesky, and the few matrix helpers the algebra shares.

LAPACK and BLAS are called directly: for the small matrices of a stream, the checks around NumPy's
and SciPy's own functions cost as much as the work.
"""

import numpy as np
from jaxtyping import Float
from scipy.linalg import blas, lapack

# An inducing value is u(z) plus an independent nugget of this part of its prior variance. It is
# tied to the point, not to the matrix, so two sets of points that share z share its nugget too:
# that is what makes carrying to a superset lossless.
NUGGET = 1e-10
TINY = 1e-200  # added where nothing but zeros would be divided by, or factorised
_DRAWN = 1e-9  # part of the largest variance, for the factor of what is drawn from
_WIDE = 2  # columns per row from which a matrix is wide
_EPS = float(np.finfo(float).eps)


def with_nugget(k: Float[np.ndarray, "M M"]) -> Float[np.ndarray, "M M"]:
    """K(Z, Z) with its nugget."""
    k = k.copy()
    k.flat[:: len(k) + 1] *= 1 + NUGGET
    k.flat[:: len(k) + 1] += TINY
    return k


def symmetric(a: Float[np.ndarray, "*b S S"]) -> Float[np.ndarray, "*b S S"]:
    return 0.5 * (a + a.swapaxes(-1, -2))


def cholesky(a: Float[np.ndarray, "S S"]) -> Float[np.ndarray, "S S"]:
    """Lower Cholesky factor; NaN where there is none, which callers refuse as not finite."""
    if not len(a):
        return np.zeros((0, 0))
    factor, info = lapack.dpotrf(a, lower=1, clean=1)
    return factor if info == 0 else np.full_like(a, np.nan)


def solve_lower(
    chol: Float[np.ndarray, "S S"], rhs: Float[np.ndarray, "S ..."], *, transpose: bool = False
) -> Float[np.ndarray, "S ..."]:
    """L⁻¹·rhs, or L⁻ᵀ·rhs, of a matrix or a vector."""
    if not rhs.size:
        return np.zeros(rhs.shape)
    if rhs.ndim == 1:
        return blas.dtrsv(chol, rhs, lower=1, trans=int(transpose))
    if rhs.flags.c_contiguous and rhs.shape[1] > _WIDE * len(chol):
        # BLAS wants columns in a row. A wide matrix would be copied twice; its transpose is not.
        return blas.dtrsm(1.0, chol, rhs.T, side=1, lower=1, trans_a=int(not transpose)).T
    return blas.dtrsm(1.0, chol, rhs, lower=1, trans_a=int(transpose))


def inverse_of(chol: Float[np.ndarray, "S S"]) -> Float[np.ndarray, "S S"]:
    """(LLᵀ)⁻¹, whole and symmetric."""
    if not len(chol):
        return np.zeros((0, 0))
    lower, _ = lapack.dpotri(chol, lower=1)
    full = np.tril(lower)
    full += np.tril(lower, -1).T
    return full


def cholesky_of_identity_plus(a: Float[np.ndarray, "S S"]) -> Float[np.ndarray, "S S"]:
    """Cholesky factor of I + A for A ⪰ 0 up to rounding.

    Rounding can push an eigenvalue of A below zero. The diagonal is grown by S·eps of each entry,
    which does where rows and columns are merely of different size; if that fails, by S·eps of the
    largest. It matters only where A is so large that double precision cannot resolve I. Where A is
    itself a difference of larger matrices, that may not do: its positive part then stands for it.
    """
    size = len(a)
    if not size:
        return np.zeros((0, 0))
    grown = symmetric(a)
    diagonal = grown.flat[:: size + 1].copy()
    grown.flat[:: size + 1] = 1.0 + diagonal * (1 + size * _EPS)
    chol = cholesky(grown)
    if np.isfinite(chol[0, 0]):
        return chol
    grown.flat[:: size + 1] += size * _EPS * diagonal.max()
    chol = cholesky(grown)
    if np.isfinite(chol[0, 0]) or not np.isfinite(a).all():
        return chol
    return cholesky(positive_part(a) * (1 + size * _EPS) + np.eye(size))


def cholesky_adjoint(
    chol: Float[np.ndarray, "S S"], by_chol: Float[np.ndarray, "S S"]
) -> Float[np.ndarray, "S S"]:
    """The derivative by K, symmetric, from that by its lower Cholesky factor L.

    K̄ = sym(L⁻ᵀ Φ(Lᵀ L̄) L⁻¹), Φ the lower triangle with half its diagonal (Murray, 2016). What is
    above the diagonal of L̄ has no part in that, so it may hold anything.
    """
    inner = np.tril(chol.T @ by_chol)
    inner.flat[:: len(inner) + 1] *= 0.5
    half = solve_lower(chol, inner, transpose=True)
    return symmetric(solve_lower(chol, half.T, transpose=True))


def square_root(covariance: Float[np.ndarray, "S S"]) -> Float[np.ndarray, "S S"]:
    """A with AAᵀ = C, for one large C that may be singular: dense inputs say the same twice."""
    size = len(covariance)
    if not size:
        return covariance
    nugget = _DRAWN * np.max(np.diagonal(covariance)) + 1e-300
    chol = cholesky(covariance + nugget * np.eye(size))
    if np.all(np.isfinite(chol)):
        return chol
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def positive_part(a: Float[np.ndarray, "*b S S"]) -> Float[np.ndarray, "*b S S"]:
    """The nearest positive semi-definite matrix in Frobenius norm."""
    values, vectors = np.linalg.eigh(symmetric(a))
    return (vectors * np.maximum(values, 0.0)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
