"""Nodes and weights for expectations under a standard normal in J dimensions."""

import functools

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import special
from scipy.stats import qmc

_NODES_PER_DIMENSION = {1: 24, 2: 12, 3: 8}
_QUASI_RANDOM_PAIRS = 256


@functools.lru_cache(maxsize=32)
def nodes(latents: int) -> tuple[np.ndarray, np.ndarray]:
    """ε of shape (K, J) and weights of shape (K,) that sum to one.

    Gauss-Hermite, nested, up to three latents. Beyond, a scrambled Sobol set with antithetic
    pairs, rescaled so that its first two moments are exact: expectations of quadratics (a
    Gaussian site's) carry no error at all.
    """
    if latents in _NODES_PER_DIMENSION:
        return _gauss_hermite(latents, _NODES_PER_DIMENSION[latents])
    uniform = qmc.Sobol(latents, seed=0).random(_QUASI_RANDOM_PAIRS)
    half = special.ndtri(np.clip(uniform, 1e-12, 1 - 1e-12))
    points = np.concatenate([half, -half])
    scale = np.linalg.cholesky(points.T @ points / len(points))
    return np.linalg.solve(scale, points.T).T, np.full(len(points), 1 / len(points))


def _gauss_hermite(latents: int, order: int) -> tuple[np.ndarray, np.ndarray]:
    x, w = np.polynomial.hermite_e.hermegauss(order)
    w = w / w.sum()
    grid = np.meshgrid(*[x] * latents, indexing="ij")
    weights = functools.reduce(np.multiply.outer, [w] * latents)
    return np.stack([g.ravel() for g in grid], axis=-1), weights.ravel()


def spread(
    mean: Float[Array, "*b J"], covariance: Float[Array, "*b J J"]
) -> tuple[Float[Array, "K *b J"], np.ndarray]:
    """The nodes moved to N(mean, covariance): f_k = m + chol(S)·ε_k, and their weights."""
    latents = mean.shape[-1]
    points, weights = nodes(latents)
    return mean + jnp.einsum("...jk,Kk->K...j", root(covariance), points), weights


def root(covariance: Float[Array, "*b J J"]) -> Float[Array, "*b J J"]:
    """Lower square root of small covariances that may be singular, column by column.

    Written out rather than left to LAPACK: J is a few, the rows are many.
    """
    size = covariance.shape[-1]
    scale = jnp.max(jnp.diagonal(covariance, axis1=-2, axis2=-1), axis=-1)
    floor = 1e-10 * scale + 1e-100
    left, columns = covariance, []
    for j in range(size):
        pivot = jnp.sqrt(jnp.maximum(left[..., j, j], floor))
        column = jnp.where(jnp.arange(size) >= j, left[..., :, j] / pivot[..., None], 0.0)
        columns.append(column)
        left = left - column[..., :, None] * column[..., None, :]
    return jnp.stack(columns, axis=-1)
