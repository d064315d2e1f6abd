"""Positive values with noise in proportion."""

import dataclasses
from typing import ClassVar

import numpy as np
from scipy import special

from streamgp.likelihoods.algebra import exponential
from streamgp.likelihoods.arrays import Covariances, Latent, Means, Observed, Values
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
    def predictive_crps(self, y: Observed, mean: Means, covariance: Covariances) -> Values:
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
        total, _, between = exponential(mean[:, 0] + 0.5 * (noise + variance), variance)
        _, _, within = exponential(mean[:, 0] + variance + 0.5 * noise, noise)
        return total, within, between

    def moments(self, f: Latent) -> tuple[np.ndarray, np.ndarray]:
        mean, _, variance = exponential(f[..., 0] + 0.5 * self.noise**2, self.noise**2)
        return mean, variance
