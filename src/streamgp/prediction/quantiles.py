"""Quantiles of predictive distributions: counts add up, other values are roots.

A predictive distribution is an average over q(f). With one latent parameter that is taken at evenly
spaced nodes, where an average is either exact to rounding or visibly changed by leaving out every
other node. So few nodes are tried first, and only rows that show a difference get more.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float
from scipy import special

from streamgp.likelihoods import Likelihood
from streamgp.likelihoods.quadrature import even_nodes
from streamgp.numerics.roots import chandrupatla
from streamgp.prediction.moments import moments

_NODES = (33, 65, 257, 1025)  # tried in turn; the last is taken as it is
_AGREE = 1e-4  # of a level and what it leaves: error of half the nodes; that of all is its square
_COUNTS, _BLOCK = 512, 16  # counts that are added up, and how many at a time
_FEW_COUNTS = 128  # that are added up where there are waiting times
_MANY_COUNTS = 16.0  # from which the logarithm of a waiting time has no tails to speak of
_DOUBLINGS = 200
_ELEMENTS = 2**16  # nodes times rows that are computed together: bounds the memory
_TINY, _BELOW_ONE = 1e-300, 1 - 1e-16
_NARROW = 1e-3  # of a bracket about a jump
_NEAR = 0.25  # deviations about the guess where a root is looked for first

Cdf = Callable[[np.ndarray, Float[np.ndarray, " R"]], Float[np.ndarray, "2 R"]]
Method = Callable[..., tuple[np.ndarray, Bool[np.ndarray, " R"]]]


def quantiles(
    likelihood: Likelihood,
    mean: Float[np.ndarray, "N J"],
    covariance: Float[np.ndarray, "N J J"],
    level: float | Float[np.ndarray, "*l N"],
) -> Float[np.ndarray, "*l N"]:
    """The smallest y with P(Y ≤ y) ≥ level, row by row.

    Args:
        likelihood: The family, with plain numbers for its parameters.
        mean: The means of f.
        covariance: The covariances of f.
        level: Probabilities, broadcast against the rows: of shape (L, 1) for L levels at all rows,
            which costs little more than one where the values are counts.
    """
    family, rows = likelihood.bare, len(mean)
    level = np.asarray(level, float)
    shape = np.broadcast_shapes(level.shape, (rows,))
    levels = np.broadcast_to(level, shape)
    closed = family.predictive_quantile(levels, mean, covariance)
    if closed is not None:
        return closed
    levels = levels.reshape(-1, rows)
    values = np.full(levels.shape, np.nan)
    if family.latents == 1 and family.support.highest is not None:
        values = _refined(_added_up, family, mean, covariance, levels)
    left = np.isnan(values)
    if left.any():
        row = np.nonzero(left)[1]
        values[left] = _refined(_root, family, mean[row], covariance[row], levels[left])
    return values.reshape(shape)


def _refined(
    method: Method,
    family: Likelihood,
    mean: Float[np.ndarray, "N J"],
    covariance: Float[np.ndarray, "N J J"],
    levels: Float[np.ndarray, "*l N"],
) -> Float[np.ndarray, "*l N"]:
    """By one method, with as many nodes as each row needs; NaN where it gives up."""
    values, left = np.full(levels.shape, np.nan), np.arange(len(mean))
    for nodes in _NODES:
        enough = np.zeros(len(left), bool)
        size = max(_ELEMENTS // nodes, 1)
        for begin in range(0, len(left), size):
            rows = left[begin : begin + size]
            found = method(family, mean[rows], covariance[rows], levels[..., rows], nodes)
            values[..., rows], enough[begin : begin + size] = found
        left = left[~enough]
        if not len(left):
            break
    return values


# -- counts --------------------------------------------------------------------------------------


def _added_up(
    family: Likelihood,
    mean: Float[np.ndarray, "N J"],
    covariance: Float[np.ndarray, "N J J"],
    levels: Float[np.ndarray, "L N"],
    nodes: int,
) -> tuple[Float[np.ndarray, "L N"], Bool[np.ndarray, " N"]]:
    """Probabilities of 0, 1, 2, … summed until they reach the levels.

    A distribution function of counts is an incomplete gamma or beta function, a hundred times
    the price of a probability. Large counts are given up.
    """
    most = family.support.highest
    assert most is not None
    found, error = np.full(levels.shape, np.nan), np.zeros(levels.shape)
    left = np.nonzero(_is_small(family, mean, covariance, most))[0]
    f, weights = _at_nodes(mean[left], covariance[left], nodes)
    below = np.zeros((2, len(left)))
    for first in range(0, int(min(most + 1, _limit(family))), _BLOCK):
        counts = first + np.arange(_BLOCK, dtype=float)
        chances = weights @ np.exp(family.log_density(counts[:, None, None], f[..., None]))
        chances[counts > most] = 0.0
        total = below + np.cumsum(chances, axis=0)  # counts, halves, rows
        total[counts >= most] = 1.0
        reached = total[:, None, 0] >= levels[:, left]  # counts, levels, rows
        level, row = np.nonzero(reached[-1] & np.isnan(found[:, left]))
        at = np.argmax(reached[:, level, row], axis=0)
        found[level, left[row]] = counts[at]
        error[level, left[row]] = np.abs(total[at, 0, row] - total[at, 1, row])
        going = np.any(~reached[-1], axis=0)
        if not going.any():
            break
        left, f, below = left[going], f[:, going], total[-1][:, going]
    return found, np.all(_is_enough(error, levels), axis=0)


def _is_small(
    family: Likelihood,
    mean: Float[np.ndarray, "N J"],
    covariance: Float[np.ndarray, "N J J"],
    most: float,
) -> Bool[np.ndarray, " N"]:
    """Whether adding up counts is likely to end in time."""
    if most < _limit(family):
        return np.ones(len(mean), bool)
    centre, variance = moments(family, mean, covariance)
    return centre + 2 * np.sqrt(variance) < _limit(family)


def _limit(family: Likelihood) -> int:
    return _FEW_COUNTS if _has(family, "waiting_shape") else _COUNTS


# -- other values --------------------------------------------------------------------------------


@np.errstate(invalid="ignore", over="ignore")
def _root(
    family: Likelihood,
    mean: Float[np.ndarray, "N J"],
    covariance: Float[np.ndarray, "N J J"],
    level: Float[np.ndarray, " N"],
    nodes: int,
) -> tuple[Float[np.ndarray, " N"], Bool[np.ndarray, " N"]]:
    """For any family: Chandrupatla's method on the distribution function.

    It is seen through the normal quantile function, which makes most of them nearly straight.
    """
    centre, reach = _bracket(family, mean, covariance, level)
    cdf = _cdf(family, mean, covariance, nodes)
    target = special.ndtri(level)

    def evaluate(rows: np.ndarray, y: Float[np.ndarray, " R"]) -> tuple[np.ndarray, np.ndarray]:
        both = cdf(rows, y)
        both = np.where(np.isnan(both), y > centre[rows], both)  # out of the support
        height = special.ndtri(np.clip(both[0], _TINY, _BELOW_ONE)) - target[rows]
        return height, np.abs(both[0] - both[1])

    ends, heights = _widened(evaluate, centre, reach)
    is_discrete = family.support.is_discrete
    narrow = _NARROW if is_discrete and not _has(family, "smooth_cdf") else None
    value, error = chandrupatla(evaluate, ends, heights, narrow)
    if is_discrete:
        value = np.floor(value + 1e-6) if narrow else np.maximum(np.ceil(value - 1e-6), 0.0)
    return value, _is_enough(error, level)


def _widened(
    evaluate: Callable, centre: Float[np.ndarray, " N"], reach: Float[np.ndarray, " N"]
) -> tuple[Float[np.ndarray, "2 N"], Float[np.ndarray, "2 N"]]:
    """Brackets of the roots, and the heights at their ends: each end moves out until it is one."""
    ends = np.stack([centre - reach, centre + reach])
    heights = np.empty(ends.shape)
    for end, is_short in ((0, np.greater_equal), (1, np.less)):
        left = np.arange(len(centre))
        for _ in range(_DOUBLINGS):
            heights[end, left], _ = evaluate(left, ends[end, left])
            left = left[is_short(heights[end, left], 0.0)]
            if not len(left):
                break
            ends[end, left] = centre[left] + 2 * (ends[end, left] - centre[left])
    return ends, heights


def _bracket(
    family: Likelihood,
    mean: Float[np.ndarray, "N J"],
    covariance: Float[np.ndarray, "N J J"],
    level: Float[np.ndarray, " N"],
) -> tuple[Float[np.ndarray, " N"], Float[np.ndarray, " N"]]:
    """A guess and how far to look, by a normal distribution of the same mean and variance.

    By a log-normal one if values are positive. Nothing much where there are no such moments.
    """
    centre, variance = moments(family, mean, covariance)
    if centre.ndim > 1:  # of the classes' indicators
        return np.zeros(len(mean)), np.ones(len(mean))
    z, deviation = special.ndtri(level), np.sqrt(variance)
    if family.support.is_positive:
        spread = np.sqrt(np.log1p(variance / centre**2))
        centre = centre * np.exp(spread * (z - 0.5 * spread))
        deviation = spread * centre
    else:
        centre = centre + z * deviation
    finite = np.isfinite(centre + deviation) & (deviation > 0)
    return np.where(finite, centre, 0.0), np.where(finite, _NEAR * deviation, 1.0)


def _cdf(
    family: Likelihood,
    mean: Float[np.ndarray, "N J"],
    covariance: Float[np.ndarray, "N J J"],
    nodes: int,
) -> Cdf:
    """P(Y ≤ y) of each row, by all nodes and by every other; the same twice if not by nodes."""
    closed = type(family).predictive_cdf is not Likelihood.predictive_cdf
    if closed or family.latents > 1:

        def direct(rows: np.ndarray, y: Float[np.ndarray, " R"]) -> Float[np.ndarray, "2 R"]:
            below = family.predictive_cdf(y, mean[rows], covariance[rows])
            return np.stack([below, below])

        return direct
    f, weights = _at_nodes(mean, covariance, nodes)
    given = family.smooth_cdf if _has(family, "smooth_cdf") else family.cdf

    def averaged(rows: np.ndarray, y: Float[np.ndarray, " R"]) -> Float[np.ndarray, "2 R"]:
        return weights @ given(y, f[:, rows, None])

    if not _has(family, "waiting_shape"):
        return averaged
    return _waiting(family, averaged, mean, covariance, nodes)


def _waiting(
    family: Likelihood,
    averaged: Cdf,
    mean: Float[np.ndarray, "N J"],
    covariance: Float[np.ndarray, "N J J"],
    nodes: int,
) -> Cdf:
    """P(Y ≤ y) of counts, as the probability that one event more comes too late.

    With G its waiting time at rate one, that is P(G > exp f) = E[Φ((log G − m)/s)]. Nodes for log G
    are few where it is narrower than q(f), which is where nodes for f are many.
    """
    centre, deviation = mean[:, 0], np.sqrt(np.maximum(covariance[:, 0, 0], 0.0))

    def mixed(rows: np.ndarray, y: Float[np.ndarray, " R"]) -> Float[np.ndarray, "2 R"]:
        shape = family.waiting_shape(y)
        narrow = (shape > _MANY_COUNTS) & (shape * deviation[rows] ** 2 > 0.5)
        result = np.empty((2, len(rows)))
        result[:, ~narrow] = averaged(rows[~narrow], y[~narrow])
        log_times, weights = _log_times(shape[narrow], nodes)
        z = (log_times - centre[rows[narrow]]) / deviation[rows[narrow]]
        result[:, narrow] = np.einsum("hkr,kr->hr", weights, special.ndtr(z))
        return result

    return mixed


def _log_times(
    shape: Float[np.ndarray, " R"], nodes: int
) -> tuple[Float[np.ndarray, "K R"], Float[np.ndarray, "2 K R"]]:
    """Nodes for the logarithms of gamma variates, with the weights of all and of every other."""
    moves = even_nodes(nodes)[0][:, None] / np.sqrt(shape)
    weights = np.exp(-shape * (np.expm1(moves) - moves))
    halves = np.stack([weights, weights])
    halves[1, 1::2] = 0.0
    return np.log(shape) + moves, halves / np.sum(halves, axis=1, keepdims=True)


def _has(family: Likelihood, method: str) -> bool:
    """Whether a family has a method that others have not."""
    return getattr(type(family), method) is not getattr(Likelihood, method)


def _at_nodes(
    mean: Float[np.ndarray, "N J"], covariance: Float[np.ndarray, "N J J"], nodes: int
) -> tuple[Float[np.ndarray, "K N"], Float[np.ndarray, "2 K"]]:
    """f at evenly spaced nodes, with the weights of all nodes and of every other."""
    points, weights = even_nodes(nodes)
    deviation = np.sqrt(np.maximum(covariance[:, 0, 0], 0.0))
    return mean[:, 0] + deviation * points[:, None], weights


def _is_enough(
    error: Float[np.ndarray, "*l N"], level: Float[np.ndarray, "*l N"]
) -> Bool[np.ndarray, "*l N"]:
    return error <= _AGREE * np.minimum(level, 1 - level)
