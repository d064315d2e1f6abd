"""Counts."""

import dataclasses

import numpy as np
from jaxtyping import Bool
from scipy import special

from streamgp.likelihoods.algebra import column, exponential, site_at_mode, square
from streamgp.likelihoods.arrays import Covariances, Latent, Means, Observed, Slopes, Values
from streamgp.likelihoods.base import Expected, Likelihood
from streamgp.likelihoods.support import NonNegativeInteger
from streamgp.numerics.special import upper_gamma
from streamgp.registry import storable

_LARGEST_LOG_RATE = 60.0  # a rate of 1e26: past it, proposals are damped, not exponentiated
_LARGE_COUNT = 48.0  # from which a probability that is right to 3e-10 does for quantiles
_LARGEST_DRAWN = 1e18  # rate that NumPy draws from


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Poisson(Likelihood):
    """Counts of events.

    y is a whole number from 0 on. It has a Poisson distribution with mean exp(f), where f is the
    latent parameter.

    Args:
        exposure: Whether every observation brings its exposure (hours, people, area), as a second
            number. The mean is then exposure·exp(f), and predictions are per unit of exposure.

    Examples:
        >>> import streamgp as sgp
        >>> sgp.ContinualGP({"departures": sgp.Poisson()}).channels
        ('departures',)
    """

    exposure: bool = False

    log_concave = True

    @property
    def columns(self) -> tuple[str, ...]:
        return ("count", "exposure") if self.exposure else ("count",)

    support = NonNegativeInteger()

    @property
    def bare(self) -> "Poisson":
        return Poisson() if self.exposure else self

    def location(self, y: Observed) -> tuple[np.ndarray, np.ndarray]:
        count, *exposure = self.split(y)
        average = 1.0
        if len(count):
            average = np.sum(count) / np.sum(exposure) if exposure else np.mean(count)
        least = 0.1 / np.mean(exposure) if exposure and len(count) else 0.1
        return np.log(np.array([max(average, least)])), np.ones(1)

    def valid(self, y: Observed) -> Bool[np.ndarray, " N"]:
        return super().valid(y) & (self.split(y)[-1] > 0) if self.exposure else super().valid(y)

    @np.errstate(over="ignore")
    def log_density(self, y: Observed, f: Latent) -> Values:
        count, log_rate = self._exposed(y, f[..., 0])
        return count * log_rate - np.exp(log_rate) - special.gammaln(count + 1)

    @np.errstate(over="ignore")
    def derivatives(self, y: Observed, f: Latent) -> Slopes:
        count, log_rate = self._exposed(y, f[..., 0])
        slope = count - np.exp(log_rate)
        return column(slope), square(slope - count)

    def expected(self, y: Observed, mean: Means, covariance: Covariances) -> Expected:
        count, log_rate = self._exposed(y, mean[:, 0])
        top = log_rate + 0.5 * covariance[:, 0, 0]
        rate = _exponential(top)
        moving = np.where(top < _LARGEST_LOG_RATE, rate, 0.0)  # past it, the value is held
        value = count * log_rate - rate - special.gammaln(count + 1)
        return Expected(value, column(count - moving), square(-0.5 * moving))

    def curvature(self, y: Observed, mean: Means, covariance: Covariances) -> Slopes:
        count, log_rate = self._exposed(y, mean[:, 0])
        rate = _exponential(log_rate + 0.5 * covariance[:, 0, 0])
        return column(count - rate), square(rate)

    def first_site(self, y: Observed, mean: Means, covariance: Covariances) -> Slopes:
        """A count far below its predicted rate begins at its own mode, firmly."""
        count, log_rate = self._exposed(y, mean[:, 0])
        variance = covariance[:, 0, 0]
        mode = np.log(count + 0.5)
        distance = log_rate + 0.5 * variance - mode
        gradient, precision = site_at_mode(mode, count + 1.0, distance, log_rate, variance)
        return column(gradient), square(precision)

    def predictive_parts(
        self, mean: Means, covariance: Covariances
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        variance = covariance[:, 0, 0]
        log_rate = np.minimum(mean[:, 0] + 0.5 * variance, _LARGEST_LOG_RATE)
        rate, _, between = exponential(log_rate, variance)
        return rate, rate, between

    def cdf(self, y: Observed, f: Latent) -> Values:
        count, log_rate = self._exposed(y, f[..., 0])
        below = upper_gamma(np.floor(np.maximum(count, 0.0)) + 1, _exponential(log_rate))
        return np.where(count < 0, 0.0, below)

    def smooth_cdf(self, y: Observed, f: Latent) -> Values:
        below = upper_gamma(np.maximum(y, -1 + 1e-12) + 1, _exponential(f[..., 0]), _LARGE_COUNT)
        return np.where(y <= -1, 0.0, below)

    def waiting(self, y: Observed) -> tuple[Values, float, Values]:
        """The time of event y + 1 at rate one."""
        return y + 1, np.inf, np.log(np.maximum(y + 1, 1e-300))

    def moments(self, f: Latent) -> tuple[np.ndarray, np.ndarray]:
        rate = _exponential(f[..., 0])
        return rate, rate

    def sample(self, f: Latent, rng: np.random.Generator) -> np.ndarray:
        return rng.poisson(np.minimum(_exponential(f[..., 0]), _LARGEST_DRAWN)).astype(float)

    def _exposed(self, y: Observed, f: Values) -> tuple[Values, Values]:
        """The counts, and the logarithms of their rates."""
        if not self.exposure:
            return y, f
        count, exposure = self.split(y)
        return count, f + np.log(exposure)


def _exponential(log_rate: Values) -> Values:
    return np.exp(np.minimum(log_rate, _LARGEST_LOG_RATE))
