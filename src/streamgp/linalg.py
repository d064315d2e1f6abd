"""The one nugget, the one Cholesky, and the few matrix helpers the algebra shares."""

import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float
from tinygp.kernels import Kernel

# An inducing value is u(z) plus an independent nugget of this share of its prior variance. It is
# tied to the point, not to the matrix, so two sets of points that share z share its nugget too:
# that is what makes carrying to a superset lossless.
NUGGET = 1e-8
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


def cholesky_of_identity_plus(a: Float[Array, "*b S S"]) -> Float[Array, "*b S S"]:
    """Cholesky factor of I + A for A ⪰ 0 up to rounding.

    Rounding can push an eigenvalue of A below zero by about S·eps·‖A‖; the identity is grown by
    that much, which matters only where A is so large that double precision cannot resolve I.
    """
    size = a.shape[-1]
    largest = jnp.max(jnp.diagonal(a, axis1=-2, axis2=-1), axis=-1)
    slack = size * jnp.finfo(a.dtype).eps * largest
    return jnp.linalg.cholesky(symmetric(a) + (1.0 + slack)[..., None, None] * jnp.eye(size))


def solve_lower(
    chol: Float[Array, "*b S S"], rhs: Float[Array, "*b S R"], *, transpose: bool = False
) -> Float[Array, "*b S R"]:
    """L⁻¹·rhs, or L⁻ᵀ·rhs."""
    return solve_triangular(chol, rhs, lower=True, trans=1 if transpose else 0)


def positive_part(a: Float[Array, "*b S S"]) -> Float[Array, "*b S S"]:
    """The nearest positive semi-definite matrix in Frobenius norm."""
    values, vectors = jnp.linalg.eigh(symmetric(a))
    return (vectors * jnp.maximum(values, 0.0)[..., None, :]) @ jnp.swapaxes(vectors, -1, -2)
