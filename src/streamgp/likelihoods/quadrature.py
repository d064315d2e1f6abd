"""Quadrature: nodes and weights for expectations under a standard normal in J dimensions."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from scipy import special

_NODES_PER_DIMENSION = {1: 24, 2: 12, 3: 8}
_QUASI_RANDOM_PAIRS = 256
_EVEN = 1025
_FINE = 32
_NEWTON_STEPS = 25
_NEWTON_ERROR = 1e-6  # the last step is smaller, and the error of the mode about its square
_LONGEST_STEP = 3.0


@functools.lru_cache(maxsize=32)
def nodes(latents: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes ε of shape (K, J), and weights of shape (K,) that sum to one.

    For up to three latent parameters they are a grid of Gauss-Hermite nodes. For more they are a
    scrambled Sobol set with antithetic pairs, rescaled so that its first two moments are exact.
    Expectations of quadratic functions, such as the logarithm of a Gaussian, then have no error.
    """
    if latents in _NODES_PER_DIMENSION:
        return _gauss_hermite(latents, _NODES_PER_DIMENSION[latents])
    from scipy.stats import qmc  # imported here, because that takes most of a second

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


@functools.lru_cache(maxsize=32)
def fine_nodes(latents: int) -> tuple[np.ndarray, np.ndarray]:
    """More nodes, for integrands that may be narrow. In one dimension they are evenly spaced."""
    if latents == 2:
        return _gauss_hermite(latents, _FINE)
    if latents > 2:
        return nodes(latents)
    return even_nodes(_EVEN)


@functools.lru_cache(maxsize=32)
def even_nodes(count: int, *, thinned: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Evenly spaced nodes in one dimension. If `thinned`, every second node has no weight."""
    points = np.linspace(-8.5, 8.5, count)
    weights = np.exp(-0.5 * points**2)
    if thinned:
        weights[1::2] = 0.0
    return points[:, None], weights / np.sum(weights)


def spread(
    mean: Float[Array, "*b J"], covariance: Float[Array, "*b J J"], *, fine: bool = False
) -> tuple[Float[Array, "K *b J"], np.ndarray]:
    """Nodes f_k = m + chol(S)·ε_k for expectations under N(m, S), and their weights."""
    latents = mean.shape[-1]
    points, weights = fine_nodes(latents) if fine else nodes(latents)
    return mean + jnp.einsum("...jk,Kk->K...j", root(covariance), points), weights


def log_integral(
    log_density: Callable[[Float[Array, ""]], Float[Array, ""]],
    mean: Float[Array, ""],
    variance: Float[Array, ""],
) -> Float[Array, ""]:
    """log ∫ p(f) N(f; mean, variance) df for log-concave p, by quadrature around the mode.

    Nodes that are spread as the normal would miss a much narrower p, such as that of a large count.
    """
    variance = variance + 1e-18 * (1 + mean**2)  # wide enough for the nodes to differ

    def integrand(f: Float[Array, ""]) -> Float[Array, ""]:
        return log_density(f) - 0.5 * (f - mean) ** 2 / variance

    slope, bend = jax.grad(integrand), jax.grad(jax.grad(integrand))

    def newton(loop: tuple) -> tuple:
        count, f, _ = loop
        step = jnp.clip(-slope(f) / bend(f), -_LONGEST_STEP, _LONGEST_STEP)
        return count + 1, f + step, jnp.abs(step) > _NEWTON_ERROR * (1 + jnp.abs(f))

    def goes_on(loop: tuple) -> Bool[Array, ""]:
        return (loop[0] < _NEWTON_STEPS) & loop[2]

    _, mode, _ = jax.lax.while_loop(goes_on, newton, (0, mean, jnp.asarray(True)))
    width = 1 / jnp.sqrt(-bend(mode))
    points, weights = nodes(1)
    at_nodes = jax.vmap(integrand)(mode + width * points[:, 0])
    terms = at_nodes + 0.5 * points[:, 0] ** 2 + np.log(weights)
    total = jax.nn.logsumexp(terms) + jnp.log(width) - 0.5 * jnp.log(variance)
    return jnp.where(
        jnp.isnan(total), -jnp.inf, total
    )  # if the mode is so far off that it overflows


def root(covariance: Float[Array, "*b J J"]) -> Float[Array, "*b J J"]:
    """The lower square root of small covariances, which may be singular, column by column.

    LAPACK would be slower, since there are many rows and each matrix is small.
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
