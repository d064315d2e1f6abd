"""Counts that scatter more than Poisson's."""

import dataclasses
from typing import Any

import numpy as np
from scipy import special

from streamgp.likelihoods.algebra import column, exponential, square
from streamgp.likelihoods.arrays import ByName, Covariances, Latent, Means, Observed, Slopes, Values
from streamgp.likelihoods.base import Likelihood
from streamgp.likelihoods.support import NonNegativeInteger
from streamgp.parameters import Parameter, positive
from streamgp.registry import storable

_LARGEST_LOG_MEAN = 60.0
_LARGEST_DRAWN = 1e18  # rate that NumPy draws from


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class NegativeBinomial(Likelihood):
    """Counts that vary more than those of `Poisson`.

    y is a whole number from 0 on. It has mean μ = exp(f) and variance μ + μ²/concentration, where f
    is the latent parameter.

    Args:
        concentration: How close y is to a Poisson distribution; positive. By default it starts
            where half of the variance that the channel's first data have beyond Poisson's is
            noise. It is learned, unless it is given as `fixed(…)`.
    """

    concentration: Parameter = None

    log_concave = True

    support = NonNegativeInteger()

    def start(self, y: Observed) -> "NegativeBinomial":
        """With half of what the first data's variance has over Poisson's taken for noise."""
        mean, variance = (np.mean(y), np.var(y)) if len(y) else (1.0, 1.0)
        excess = max(variance - mean, 0.0)
        concentration = np.clip(2 * mean**2 / excess, 0.5, 100.0) if excess > 0 else 10.0
        return NegativeBinomial(positive(self.concentration, concentration))

    def location(self, y: Observed) -> tuple[np.ndarray, np.ndarray]:
        average = np.mean(y) if len(y) else 1.0
        return np.log(np.array([max(average, 0.1)])), np.ones(1)

    def log_density(self, y: Observed, f: Latent) -> Values:
        r = self.concentration
        y, odds = self._odds(y, f)
        ways = -np.log(y + r) - special.betaln(r, y + 1)  # differences of log Γ would cancel
        return ways + y * odds + (y + r) * special.log_expit(-odds)

    def derivatives(self, y: Observed, f: Latent) -> Slopes:
        r = self.concentration
        y, odds = self._odds(y, f)
        up, down = special.expit(odds), special.expit(-odds)
        return column(y * down - r * up), square(-(y + r) * up * down)

    def parameter_gradient(self, y: Observed, f: Latent) -> ByName:
        r = self.concentration
        y, odds = self._odds(y, f)
        slope = y * special.expit(-odds) - r * special.expit(odds)
        by_ways = special.psi(y + r) - special.psi(r)
        return {"concentration": by_ways + special.log_expit(-odds) - slope / r}

    def predictive_parts(
        self, mean: Means, covariance: Covariances
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        variance = covariance[:, 0, 0]
        log_mean = np.clip(mean[:, 0] + 0.5 * variance, -_LARGEST_LOG_MEAN, _LARGEST_LOG_MEAN)
        total, square, between = exponential(log_mean, variance)
        return total, total + square / self.concentration, between

    def cdf(self, y: Observed, f: Latent) -> Values:
        return np.where(y < 0, 0.0, self._below(np.floor(np.maximum(y, 0.0)), f))

    def smooth_cdf(self, y: Observed, f: Latent) -> Values:
        return np.where(y <= -1, 0.0, self._below(np.maximum(y, -1 + 1e-12), f))

    def waiting(self, y: Observed) -> tuple[Values, Any, Values]:
        """The time of event y + 1 at a rate that is itself a gamma variate of mean one."""
        return y + 1, self.concentration, np.log(np.maximum(y + 1, 1e-300))

    def moments(self, f: Latent) -> tuple[np.ndarray, np.ndarray]:
        mean = _mean(f[..., 0])
        return mean, mean + mean**2 / self.concentration

    def sample(self, f: Latent, rng: np.random.Generator) -> np.ndarray:
        r = self.concentration
        rate = rng.gamma(r, _mean(f[..., 0]) / r)
        return rng.poisson(np.minimum(rate, _LARGEST_DRAWN)).astype(float)

    def _odds(self, y: Observed, f: Latent) -> tuple[Values, Values]:
        """y, or zero where it is none of this family's, and log(μ/concentration)."""
        return np.maximum(y, 0.0), f[..., 0] - np.log(self.concentration)

    def _below(self, y: Observed, f: Latent) -> Values:
        r = self.concentration
        return special.betainc(r, y + 1, r / (r + _mean(f[..., 0])))


def _mean(f: Values) -> Values:
    return np.exp(np.clip(f, -_LARGEST_LOG_MEAN, _LARGEST_LOG_MEAN))
