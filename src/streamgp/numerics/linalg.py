"""The one nugget, the one Cholesky, and the few matrix helpers the algebra shares."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_batching import sequential_vmap
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float
from tinygp.kernels import Kernel

# An inducing value is u(z) plus an independent nugget of this share of its prior variance. It is
# tied to the point, not to the matrix, so two sets of points that share z share its nugget too:
# that is what makes carrying to a superset lossless.
NUGGET = 1e-10
_DRAWN = 1e-9  # share of the largest variance, for the factor of what is drawn from
_TINY = 1e-200


def gram(kernel: Kernel, z: Float[Array, "M P"], mask: Bool[Array, " M"]) -> Float[Array, "M M"]:
    """K(Z, Z) with its nugget; empty slots are independent standard normals."""
    k = kernel(z, z)
    k = k + jnp.diag(NUGGET * jnp.diag(k) + _TINY)
    return jnp.where(mask[:, None] & mask[None, :], k, jnp.eye(len(z)))


def cross_gram(
    kernel: Kernel,
    z: Float[Array, "M P"],
    mask: Bool[Array, " M"],
    other: Float[Array, "R P"],
    other_mask: Bool[Array, " R"],
) -> Float[Array, "M R"]:
    """K(Z, Z') between two sets of inducing points; coinciding points share their nugget."""
    same = jnp.all(z[:, None, :] == other[None, :, :], axis=-1)
    k = kernel(z, other) + same * (NUGGET * kernel(z) + _TINY)[:, None]
    return jnp.where(mask[:, None] & other_mask[None, :], k, 0.0)


def symmetric(a: Float[Array, "*b S S"]) -> Float[Array, "*b S S"]:
    return 0.5 * (a + jnp.swapaxes(a, -1, -2))


# -- factorisations ----------------------------------------------------------------------------
#
# LAPACK is only ever called on one matrix at a time: leading axes and `vmap` become loops. A
# batched call splits itself over the thread pool it is already running in and waits, so two at
# once can wait for each other for ever (seen with jaxlib 0.10 on two cores; docs/adr/0003). It
# costs nothing here: leading axes are the few latent functions.


def cholesky(a: Float[Array, "*b S S"]) -> Float[Array, "*b S S"]:
    """Lower Cholesky factor."""
    return _one_by_one(_cholesky, a)


def solve_lower(
    chol: Float[Array, "*b S S"], rhs: Float[Array, "*b S R"], *, transpose: bool = False
) -> Float[Array, "*b S R"]:
    """L⁻¹·rhs, or L⁻ᵀ·rhs."""
    return _one_by_one(_solve_transposed if transpose else _solve, chol, rhs)


def eigh(a: Float[Array, "*b S S"]) -> tuple[Float[Array, "*b S"], Float[Array, "*b S S"]]:
    """Eigenvalues and eigenvectors of a symmetric matrix. Not differentiable."""
    return _one_by_one(_eigh_one, a)


def square_root(covariance: Float[Array, "S S"]) -> Float[Array, "S S"]:
    """A with AAᵀ = C, for one large C that may be singular: dense inputs say the same twice.

    Not for compiled programs: it looks at what it gets.
    """
    size = len(covariance)
    if not size:
        return covariance
    nugget = _DRAWN * jnp.max(jnp.diagonal(covariance)) + 1e-300
    chol = cholesky(covariance + nugget * jnp.eye(size))
    if jnp.all(jnp.isfinite(chol)):
        return chol
    values, vectors = eigh(covariance)
    return vectors * jnp.sqrt(jnp.maximum(values, 0.0))


def cholesky_of_identity_plus(a: Float[Array, "*b S S"]) -> Float[Array, "*b S S"]:
    """Cholesky factor of I + A for A ⪰ 0 up to rounding.

    Rounding can push an eigenvalue of A below zero by about S·eps·‖A‖; the identity is grown by
    that much, which matters only where A is so large that double precision cannot resolve I.
    """
    size = a.shape[-1]
    largest = jnp.max(jnp.diagonal(a, axis1=-2, axis2=-1), axis=-1)
    slack = size * jnp.finfo(a.dtype).eps * largest
    return cholesky(symmetric(a) + (1.0 + slack)[..., None, None] * jnp.eye(size))


def positive_part(a: Float[Array, "*b S S"]) -> Float[Array, "*b S S"]:
    """The nearest positive semi-definite matrix in Frobenius norm."""
    values, vectors = eigh(symmetric(a))
    return (vectors * jnp.maximum(values, 0.0)[..., None, :]) @ jnp.swapaxes(vectors, -1, -2)


def _one_by_one(function: Callable, *arrays: Array) -> Any:
    """`function` of single matrices, mapped over leading axes by a loop."""
    if arrays[0].ndim == 2:
        return function(*arrays)
    if len(arrays[0]) == 1:
        return jax.tree.map(lambda leaf: leaf[None], _one_by_one(function, *[a[0] for a in arrays]))
    return jax.lax.map(lambda parts: _one_by_one(function, *parts), arrays)


@jax.custom_jvp
def _cholesky(a: Float[Array, "S S"]) -> Float[Array, "S S"]:
    return _cholesky_one(a)


@_cholesky.defjvp
def _cholesky_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    """dL = L·Φ(L⁻¹ dA L⁻ᵀ), Φ the lower triangle with half its diagonal."""
    chol = _cholesky(*primals)
    inner = _solve(chol, _solve(chol, symmetric(*tangents)).T)
    lower = jnp.tril(inner) - 0.5 * jnp.diag(jnp.diag(inner))
    return chol, chol @ lower


def _solve(chol: Float[Array, "S S"], rhs: Float[Array, "S R"]) -> Float[Array, "S R"]:
    return jax.lax.custom_linear_solve(
        lambda x: chol @ x,
        rhs,
        lambda _, b: _forward_one(chol, b),
        lambda _, b: _backward_one(chol, b),
    )


def _solve_transposed(chol: Float[Array, "S S"], rhs: Float[Array, "S R"]) -> Float[Array, "S R"]:
    return jax.lax.custom_linear_solve(
        lambda x: chol.T @ x,
        rhs,
        lambda _, b: _backward_one(chol, b),
        lambda _, b: _forward_one(chol, b),
    )


@sequential_vmap
def _cholesky_one(a: Float[Array, "S S"]) -> Float[Array, "S S"]:
    return jnp.linalg.cholesky(a)


@sequential_vmap
def _eigh_one(a: Float[Array, "S S"]) -> tuple[Float[Array, " S"], Float[Array, "S S"]]:
    values, vectors = jnp.linalg.eigh(a)
    return values, vectors


@sequential_vmap
def _forward_one(chol: Float[Array, "S S"], rhs: Float[Array, "S R"]) -> Float[Array, "S R"]:
    return solve_triangular(chol, rhs, lower=True)


@sequential_vmap
def _backward_one(chol: Float[Array, "S S"], rhs: Float[Array, "S R"]) -> Float[Array, "S R"]:
    return solve_triangular(chol, rhs, lower=True, trans=1)
