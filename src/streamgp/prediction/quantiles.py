"""Quantiles of predictive distributions: counts add up, other values are roots.

A predictive distribution is an average over q(f). With one latent parameter that is taken at evenly
spaced nodes, where an average is either exact to rounding or visibly changed by leaving out every
other node. So few nodes are tried first, and only rows that show a difference get more.
"""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri
from jaxtyping import Array, Bool, Float
from numpyro.distributions import constraints

from streamgp.data import by_chunks
from streamgp.likelihoods import Likelihood
from streamgp.likelihoods.quadrature import even_nodes, spread
from streamgp.numerics.precision import double_precision
from streamgp.numerics.roots import chandrupatla

_NODES = (65, 257, 1025)  # tried in turn; the last is taken as it is
_AGREE = 1e-4  # of a level and what it leaves: error of half the nodes; that of all is its square
_COUNTS, _BLOCK = 1024, 32  # counts that are added up, and how many at a time
_DOUBLINGS = 200
_ROWS = 128  # that are computed together: all wait for the slowest
_TINY, _BELOW_ONE = 1e-300, 1 - 1e-16

Cdf = Callable[[Float[Array, "*e N"]], Float[Array, "*e N 2"]]


@double_precision
def quantiles(
    likelihood: Likelihood,
    mean: Float[np.ndarray, "N J"],
    covariance: Float[np.ndarray, "N J J"],
    level: Float[np.ndarray, " N"],
) -> Float[np.ndarray, " N"]:
    """The smallest y with P(Y ≤ y) ≥ level, row by row."""
    if likelihood.latents > 1 or _highest_count(likelihood) is None:
        return _refined(_root, likelihood, mean, covariance, level)
    values = _refined(_added_up, likelihood, mean, covariance, level)
    large = np.isnan(values)
    if large.any():
        rows = (mean[large], covariance[large], level[large])
        values[large] = _refined(_root, likelihood, *rows)
    return values


def _refined(
    method: Callable,
    likelihood: Likelihood,
    mean: Float[np.ndarray, "N J"],
    covariance: Float[np.ndarray, "N J J"],
    level: Float[np.ndarray, " N"],
) -> Float[np.ndarray, " N"]:
    """By one method, with as many nodes as each row needs; NaN where it gives up."""
    values, left = np.full(len(level), np.nan), np.arange(len(level))
    for nodes in _NODES:
        values[left], enough = by_chunks(
            lambda *rows, nodes=nodes: method(likelihood, *map(jnp.asarray, rows), nodes),
            mean[left],
            covariance[left],
            level[left],
            most=_ROWS,
        )
        left = left[~(enough | np.isnan(values[left]))]
        if not len(left):
            break
    return values


def _highest_count(likelihood: Likelihood) -> float | None:
    """The largest y of a family whose values are 0, 1, 2, …; None for every other family."""
    support = likelihood.support
    if support is constraints.boolean:
        return 1.0
    if support is constraints.nonnegative_integer:
        return math.inf
    if isinstance(support, type(constraints.integer_interval(0, 1))) and support.lower_bound == 0:
        return float(support.upper_bound)
    return None


# -- counts --------------------------------------------------------------------------------------


@eqx.filter_jit
def _added_up(
    likelihood: Likelihood,
    mean: Float[Array, "N J"],
    covariance: Float[Array, "N J J"],
    level: Float[Array, " N"],
    nodes: int,
) -> tuple[Float[Array, " N"], Bool[Array, " N"]]:
    """Probabilities of 0, 1, 2, … summed until they reach the level.

    A distribution function of counts is an incomplete gamma or beta function, a hundred times
    the price of a probability. Large counts are given up.
    """
    most = _highest_count(likelihood)
    assert most is not None
    f, weights = _at_nodes(mean, covariance, nodes)
    log_density = jax.vmap(jax.vmap(likelihood.log_density, (None, 0)), (None, 0))  # K N J → K N

    def add(so_far: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        first, below, found, error = so_far
        counts = first + jnp.arange(_BLOCK, dtype=float)
        chances = jnp.exp(jax.vmap(log_density, (0, None))(counts, f))  # C K N
        chances = jnp.einsum("ckn,kh->cnh", chances, weights)
        total = below + jnp.cumsum(jnp.where((counts <= most)[:, None, None], chances, 0.0), axis=0)
        total = jnp.where((counts >= most)[:, None, None], 1.0, total)
        reached = total[..., 0] >= level
        at = jnp.argmax(reached, axis=0)
        now = jnp.isnan(found) & jnp.any(reached, axis=0)
        both = jnp.take_along_axis(total, at[None, :, None], axis=0)[0]
        found = jnp.where(now, counts[at], found)
        error = jnp.where(now, jnp.abs(both[:, 0] - both[:, 1]), error)
        return first + _BLOCK, total[-1], found, error

    def is_short(so_far: tuple[Array, Array, Array, Array]) -> Bool[Array, ""]:
        return jnp.any(jnp.isnan(so_far[2])) & (so_far[0] < min(most + 1, _COUNTS))

    rows = len(level)
    blank = (jnp.zeros(()), jnp.zeros((rows, 2)), jnp.full(rows, jnp.nan), jnp.full(rows, jnp.inf))
    _, _, found, error = jax.lax.while_loop(is_short, add, blank)
    return found, _is_enough(error, level)


# -- other values --------------------------------------------------------------------------------


@eqx.filter_jit
def _root(
    likelihood: Likelihood,
    mean: Float[Array, "N J"],
    covariance: Float[Array, "N J J"],
    level: Float[Array, " N"],
    nodes: int,
) -> tuple[Float[Array, " N"], Bool[Array, " N"]]:
    """For any family: Chandrupatla's method on the distribution function.

    It is seen through the normal quantile function, which makes most of them nearly straight.
    """
    centre, reach = _bracket(likelihood, mean, covariance, level)
    cdf = _cdf(likelihood, mean, covariance, nodes)
    target = ndtri(level)

    def evaluate(y: Float[Array, "*e N"]) -> tuple[Float[Array, "*e N"], Float[Array, "*e N"]]:
        both = cdf(y)
        both = jnp.where(jnp.isnan(both), (y > centre)[..., None], both)  # out of the support
        height = ndtri(jnp.clip(both[..., 0], _TINY, _BELOW_ONE)) - target
        return height, jnp.abs(both[..., 0] - both[..., 1])

    def widen(so_far: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        ends, _, tries = so_far
        heights, _ = evaluate(ends)
        short = heights * jnp.array([[1.0], [-1.0]]) >= jnp.array([[0.0], [1e-300]])
        return jnp.where(short, centre + 2 * (ends - centre), ends), heights, tries + 1

    def is_short(so_far: tuple[Array, Array, Array]) -> Bool[Array, ""]:
        _, heights, tries = so_far
        return jnp.any((heights[0] >= 0) | (heights[1] < 0)) & (tries < _DOUBLINGS)

    ends = jnp.stack([centre - reach, centre + reach])
    begin = (ends, jnp.stack([jnp.ones_like(centre), -jnp.ones_like(centre)]), jnp.asarray(0))
    ends, heights, _ = jax.lax.while_loop(is_short, widen, begin)
    narrow = 1e-3 if likelihood.support.is_discrete else None
    high, error = chandrupatla(evaluate, ends, heights, narrow)
    value = jnp.floor(high + 1e-6) if likelihood.support.is_discrete else high
    return value, _is_enough(error, level)


def _bracket(
    likelihood: Likelihood,
    mean: Float[Array, "N J"],
    covariance: Float[Array, "N J J"],
    level: Float[Array, " N"],
) -> tuple[Float[Array, " N"], Float[Array, " N"]]:
    """A centre and a distance by Cantelli's inequality, where there is a variance to go by."""
    centre, variance = moments(likelihood, mean, covariance)
    if centre.ndim > 1:  # of the classes' indicators
        centre, variance = jnp.zeros((2, len(mean)))
    finite = jnp.isfinite(centre + variance)  # not every family has both
    reach = jnp.where(finite, jnp.sqrt(variance / jnp.minimum(level, 1 - level)), 0.0)
    return jnp.where(finite, centre, 0.0), 1.0 + reach


def _cdf(
    likelihood: Likelihood,
    mean: Float[Array, "N J"],
    covariance: Float[Array, "N J J"],
    nodes: int,
) -> Cdf:
    """P(Y ≤ y) of each row, by all nodes and by every other; the same twice if not by nodes."""
    closed = type(likelihood).predictive_cdf is not Likelihood.predictive_cdf
    if closed or likelihood.latents > 1:

        def direct(y: Float[Array, "*e N"]) -> Float[Array, "*e N 2"]:
            of_rows = jnp.vectorize(likelihood.predictive_cdf, signature="(),(j),(j,j)->()")
            below = of_rows(y, mean, covariance)
            return jnp.stack([below, below], axis=-1)

        return direct
    f, weights = _at_nodes(mean, covariance, nodes)

    def averaged(y: Float[Array, "*e N"]) -> Float[Array, "*e N 2"]:
        each = likelihood.cdf(*_broadcast(y[..., None, :], f))  # e K N
        return jnp.einsum("...kn,kh->...nh", each, weights)

    return averaged


def _broadcast(
    y: Float[Array, "*e 1 N"], f: Float[Array, "K N J"]
) -> tuple[Float[Array, "*e K N"], Float[Array, "*e K N J"]]:
    shape = (*y.shape[:-2], *f.shape[:-1])
    return jnp.broadcast_to(y, shape), jnp.broadcast_to(f, (*shape, f.shape[-1]))


def _at_nodes(
    mean: Float[Array, "N J"], covariance: Float[Array, "N J J"], nodes: int
) -> tuple[Float[Array, "K N J"], Float[np.ndarray, "K 2"]]:
    """f at evenly spaced nodes, with the weights of all nodes and of every other."""
    points, weights = even_nodes(nodes)
    f = mean + jnp.sqrt(jnp.maximum(covariance[:, 0], 0.0)) * points[:, None]
    return f, np.stack([weights, even_nodes(nodes, thinned=True)[1]], axis=-1)


def _is_enough(error: Float[Array, " N"], level: Float[Array, " N"]) -> Bool[Array, " N"]:
    return error <= _AGREE * jnp.minimum(level, 1 - level)


@eqx.filter_jit
def moments(
    likelihood: Likelihood, mean: Float[Array, "N J"], covariance: Float[Array, "N J J"]
) -> tuple[Array, Array]:
    """Total mean and variance: E[E[y|f]], E[Var[y|f]] + Var[E[y|f]]."""
    f, weights = spread(mean, covariance)
    means, variances = likelihood.moments(f)
    total = jnp.tensordot(weights, means, 1)
    between = jnp.tensordot(weights, (means - total) ** 2, 1)
    return total, between + jnp.tensordot(weights, variances, 1)
