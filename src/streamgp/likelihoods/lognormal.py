"""Positive values with noise in proportion."""

import dataclasses
from typing import ClassVar

import numpy as np
from scipy import special

from streamgp.likelihoods.arrays import Covariances, Latent, Means, Observed, PerRow, Values
from streamgp.likelihoods.gaussian import Gaussian
from streamgp.likelihoods.rounding import at_least
from streamgp.likelihoods.warped import Log, Warp, Warped
from streamgp.parameters import Parameter, positive
from streamgp.registry import storable


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class LogNormal(Warped):
    """Positive numbers with noise in proportion to them.

    y is a positive number: log y = f + noise, where f is the latent parameter.

    Args:
        noise: The standard deviation of the noise of log y, in natural log units; positive. By
            default it starts at 0.3 times the standard deviation of log y in the channel's first
            data. It is learned, unless it is given as `fixed(…)`.
    """

    noise: Parameter = None

    warp: ClassVar[Warp] = Log()

    @property
    def base(self) -> Gaussian:  # type: ignore[override]
        return Gaussian(self.noise)

    def start(self, y: Observed) -> "LogNormal":
        return LogNormal(positive(self.noise, 0.3 * self.location(y)[1][0]))

    def with_least_noise(self, part: float, y: Observed) -> "LogNormal":
        return LogNormal(at_least(self.noise, part * float(self.location(y)[1][0])))

    def location(self, y: Observed) -> tuple[np.ndarray, np.ndarray]:
        if not len(y):
            return np.zeros(1), np.ones(1)
        offset, scale = np.mean(np.log(y)), np.std(np.log(y))
        return np.array([offset]), np.array([scale if scale > 1e-12 else 1.0])

    @np.errstate(over="ignore", invalid="ignore")
    def predictive_crps(self, y: Observed, mean: Means, covariance: Covariances) -> PerRow:
        """Baran and Lerch (2015), equation 3, in logarithms: a mean may be beyond all numbers."""
        z = self.predictive_score(y, mean, covariance)
        variance = covariance[:, 0, 0] + self.noise**2
        deviation, log_mean = np.sqrt(variance), mean[:, 0] + 0.5 * variance
        below = np.exp(log_mean + special.log_ndtr(z - deviation))
        apart = np.exp(log_mean + special.log_ndtr(-deviation / np.sqrt(2)))
        score = y * special.erf(z / np.sqrt(2)) - 2 * (below - apart)
        return np.where(np.isnan(score), np.inf, score)

    def predictive_parts(
        self, mean: Means, covariance: Covariances
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        variance, noise = covariance[:, 0, 0], self.noise**2
        total, between = _moments(mean[:, 0] + 0.5 * noise, variance)
        with np.errstate(over="ignore"):
            within = np.exp(2 * (mean[:, 0] + variance) + noise + _log_expm1(noise))
        return total, within, between

    def moments(self, f: Latent) -> tuple[np.ndarray, np.ndarray]:
        return _moments(f[..., 0], self.noise**2)


@np.errstate(over="ignore")
def _moments(centre: Values, variance: Values) -> tuple[Values, Values]:
    """Mean and variance of y from those of log y; infinite if they are beyond all numbers."""
    log_mean = centre + 0.5 * variance
    return np.exp(log_mean), np.exp(2 * log_mean + _log_expm1(variance))


@np.errstate(divide="ignore")
def _log_expm1(number: Values | float) -> Values | float:
    """log(exp(number) − 1) of a number that is not negative; it may be zero, or very large."""
    return number + np.log(-np.expm1(-number))
