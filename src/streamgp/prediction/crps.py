"""The continuous ranked probability score of predictive distributions.

CRPS = ∫ (F(z) − 1{y ≤ z})² dz, in the units of y, is the distance from y to a prediction that is
certain, and less than that where a prediction knows that it is not (Gneiting & Raftery, 2007).
Some families have a formula. Counts and grades add up; any other family has an integral over its
quantiles.
"""

import numpy as np
from jaxtyping import Float
from scipy import special

from streamgp.likelihoods import Likelihood
from streamgp.prediction.quantiles import quantiles

_TAIL = 1e-8  # probability on each side that is left out: its square is what is missed
_BLOCKS = 256  # sums of counts are taken by so many blocks of neighbours at most
_NODES = 24  # of the integral on each side of the observation
_ELEMENTS = 2**15  # values of distribution functions that are computed together


def crps(
    likelihood: Likelihood,
    y: Float[np.ndarray, "N ..."],
    mean: Float[np.ndarray, "N J"],
    covariance: Float[np.ndarray, "N J J"],
) -> Float[np.ndarray, " N"]:
    """The score of each row; lower is better.

    Args:
        likelihood: An ordered family, with plain numbers for its parameters.
        y: The observations.
        mean: The means of f.
        covariance: The covariances of f.
    """
    closed = likelihood.predictive_crps(y, mean, covariance)
    if closed is not None:
        return closed
    method = _added_up if likelihood.support.is_discrete else _integrated
    return method(likelihood, y, mean, covariance)


def _added_up(
    likelihood: Likelihood,
    y: Float[np.ndarray, " N"],
    mean: Float[np.ndarray, "N J"],
    covariance: Float[np.ndarray, "N J J"],
) -> Float[np.ndarray, " N"]:
    """Σ_k (F(k) − 1{y ≤ k})², over the counts k that are possible in earnest.

    Counts go upwards and downwards from y. If they are many, blocks of neighbours are taken at
    their middle: F is then smooth. Beyond the last quantile F is 1 and every count up to y adds 1.
    """
    low, high = quantiles(likelihood, mean, covariance, np.array([[_TAIL], [1 - _TAIL]]))
    inside = np.clip(y, low, high + 1)
    width = 2 * (np.maximum(high - low, 0) // (2 * _BLOCKS)) + 1  # odd: it has a middle
    steps = int(np.max((high + 1 - low) // width, initial=0)) + 1
    middle = width * (np.arange(steps)[:, None] + 0.5) - 0.5
    above = _cdf(likelihood, inside + middle, mean, covariance)
    below = _cdf(likelihood, inside - 1 - middle, mean, covariance)
    return np.abs(y - inside) + width * np.sum((1 - above) ** 2 + below**2, axis=0)


def _integrated(
    likelihood: Likelihood,
    y: Float[np.ndarray, " N"],
    mean: Float[np.ndarray, "N J"],
    covariance: Float[np.ndarray, "N J J"],
) -> Float[np.ndarray, " N"]:
    """2 ∫ (1{y ≤ Q(u)} − u)(Q(u) − y) du, over the normal score of u on both sides of y."""
    end = -special.ndtri(_TAIL)
    below = likelihood.predictive_cdf(y, mean, covariance)
    at = np.clip(special.ndtri(np.clip(below, _TAIL, 1 - _TAIL)), -end, end)
    points, weights = np.polynomial.legendre.leggauss(_NODES)
    points, weights = (points[:, None] + 1) / 2, weights[:, None] / 2
    total = np.zeros(len(y))
    for side in (-1.0, 1.0):
        length = end - side * at
        score = at + side * length * points
        value = quantiles(likelihood, mean, covariance, special.ndtr(score))
        tail = special.ndtr(-side * score)  # of the probability beyond, seen from y
        density = np.exp(-0.5 * score**2) / np.sqrt(2 * np.pi)
        total += 2 * length * np.sum(weights * tail * density * side * (value - y), axis=0)
    return total


def _cdf(
    likelihood: Likelihood,
    y: Float[np.ndarray, "K N"],
    mean: Float[np.ndarray, "N J"],
    covariance: Float[np.ndarray, "N J J"],
) -> Float[np.ndarray, "K N"]:
    """P(Y ≤ y) at several whole y of each row, a bounded number of them at a time."""
    row = np.tile(np.arange(y.shape[1]), len(y))
    flat, found = np.ravel(y), np.empty(y.size)
    least, most = 0.0, likelihood.support.highest
    for begin in range(0, y.size, _ELEMENTS):
        some = slice(begin, begin + _ELEMENTS)
        q = mean[row[some]], covariance[row[some]]
        found[some] = likelihood.predictive_cdf(np.clip(flat[some], least, most), *q)
    return np.where(y < least, 0.0, found.reshape(y.shape))
