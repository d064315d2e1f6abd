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
_AGREE = 1e-7  # share of a level, or of what it leaves, that it may be missed by
_COUNTS, _BLOCK = 256, 16  # counts that are added up, and how many at a time
_FEW_COUNTS = 64  # that are, where the distribution function is a fast one
_WIDER = 1.0  # variance of q(f) over that of a log waiting time, from where that is narrow
_MANY_COUNTS = 16.0  # from which the logarithm of a waiting time has no tails to speak of
_DOUBLINGS = 200
_ELEMENTS = 2**16  # nodes times rows that are computed together: bounds the memory
_TINY, _BELOW_ONE = 1e-300, 1 - 1e-16
_EXACT, _EXACT_COUNT = 1e-11, 1e-8  # deviations that a root may be missed by
_NARROW = 1e-3  # of a bracket about a jump
_NEAR = 0.25  # deviations about the guess where a root is looked for first

Cdf = Callable[[np.ndarray, Float[np.ndarray, " R"]], Float[np.ndarray, "2 R"]]
Method = Callable[..., tuple[np.ndarray, Bool[np.ndarray, " R"]]]


def quantiles(
    likelihood: Likelihood,
    mean: Float[np.ndarray, "N J"],
    covariance: Float[np.ndarray, "N J J"],
    level: float | Float[np.ndarray, "*l #N"],
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
    closed = family.predictive_value(special.ndtri(levels), mean, covariance)
    if closed is not None:
        return closed
    levels = levels.reshape(int(np.prod(shape[:-1])), rows)
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
    for first in range(0, int(min(most + 1, _COUNTS)), _BLOCK):
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
    if most < _COUNTS:
        return np.ones(len(mean), bool)
    centre, variance = moments(family, mean, covariance)
    reach = 2 * np.sqrt(variance)
    if not _has(family, "waiting"):
        return centre + reach < _COUNTS
    a, b, _ = family.waiting(np.maximum(centre - reach, 0.0))
    most_added = np.where(np.isinf(b), _FEW_COUNTS, _COUNTS)  # there is a fast way for one variate
    return (centre + reach < most_added) & ~_narrowness(a, b, covariance[:, 0, 0])[1]


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

    def evaluate(rows: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        both = cdf(rows, y)
        both = np.where(np.isnan(both), y > centre[rows], both)  # out of the support
        height = special.ndtri(np.clip(both[0], _TINY, _BELOW_ONE)) - target[rows]
        return height, np.abs(both[0] - both[1])

    ends, heights = _widened(evaluate, centre, reach)
    is_discrete = family.support.is_discrete
    narrow = _NARROW if is_discrete and not _has(family, "smooth_cdf") else None
    exact = _EXACT_COUNT if is_discrete else _EXACT
    value, error = chandrupatla(evaluate, ends, heights, narrow, exact)
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

        def direct(rows: np.ndarray, y: np.ndarray) -> np.ndarray:
            below = family.predictive_cdf(y, mean[rows], covariance[rows])
            return np.stack([below, below])

        return direct
    f, weights = _at_nodes(mean, covariance, nodes)
    given = family.smooth_cdf if _has(family, "smooth_cdf") else family.cdf

    def averaged(rows: np.ndarray, y: np.ndarray) -> np.ndarray:
        return weights @ given(y, f[:, rows, None])

    if not _has(family, "waiting"):
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

    With L the logarithm of its waiting time, that is P(L > f) = E[Φ((L − m)/s)]. Nodes for L are
    few where it is narrower than q(f), which is where nodes for f are many.
    """
    centre, variance = mean[:, 0], np.maximum(covariance[:, 0, 0], 0.0)

    def mixed(rows: np.ndarray, y: np.ndarray) -> np.ndarray:
        a, b, mode = np.broadcast_arrays(*family.waiting(y))
        precision, narrow = _narrowness(a, b, variance[rows])
        result, some = np.empty((2, len(rows))), rows[narrow]
        result[:, ~narrow] = averaged(rows[~narrow], y[~narrow])
        moves, weights = _log_times(a[narrow], b[narrow], precision[narrow], nodes)
        z = (mode[narrow] - centre[some] + moves) / np.sqrt(variance[some])
        parts = weights * special.ndtr(z)
        for half, every in enumerate((1, 2)):
            total = np.sum(weights[::every], axis=0)
            result[half, narrow] = np.sum(parts[::every], axis=0) / total
        return result

    return mixed


def _narrowness(
    a: Float[np.ndarray, " R"],
    b: Float[np.ndarray, " R"] | float,
    variance: Float[np.ndarray, " R"],
) -> tuple[Float[np.ndarray, " R"], Bool[np.ndarray, " R"]]:
    """The precision of log G_a − log G_b, and whether it is the narrower beside q(f)."""
    precision = a / (1 + a / b)
    return precision, (np.minimum(a, b) > _MANY_COUNTS) & (precision * variance > _WIDER)


def _log_times(
    a: Float[np.ndarray, " R"],
    b: Float[np.ndarray, " R"],
    precision: Float[np.ndarray, " R"],
    nodes: int,
) -> tuple[Float[np.ndarray, "K R"], Float[np.ndarray, "K R"]]:
    """Nodes for log G_a − log G_b from its mode, and weights up to a factor."""
    moves = even_nodes(nodes)[0][:, None] / np.sqrt(precision)
    raised = np.expm1(moves)
    if np.all(np.isinf(b)):
        return moves, np.exp(a * (moves - raised))
    share = precision / b  # a/(a + b)
    return moves, np.exp(a * moves - (a + b) * np.log1p(share * raised))


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
    """Whether all nodes are enough, where every other is off by that much."""
    return error**2 <= _AGREE * np.minimum(level, 1 - level)
