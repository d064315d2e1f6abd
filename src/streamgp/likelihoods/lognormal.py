"""Positive values with noise in proportion."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import special

from streamgp.likelihoods.base import LEVELS, Expected, Likelihood
from streamgp.likelihoods.gaussian import Gaussian
from streamgp.likelihoods.rounding import at_least
from streamgp.likelihoods.support import Positive, Support
from streamgp.parameters import Parameter, positive
from streamgp.registry import storable


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class LogNormal(Likelihood):
    """Positive numbers with noise in proportion to them.

    y is a positive number: log y = f + noise, where f is the latent parameter.

    Args:
        noise: The standard deviation of the noise of log y, in natural log units; positive. By
            default it starts at 0.3 times the standard deviation of log y in the channel's first
            data. It is learned, unless it is given as `fixed(…)`.
    """

    noise: Parameter = None

    conjugate = True
    log_concave = True

    @property
    def support(self) -> Support:
        return Positive()

    @property
    def _of_log(self) -> Gaussian:
        return Gaussian(self.noise)

    def start(self, y: Float[np.ndarray, " N"]) -> "LogNormal":
        _, scale = self.location(y)
        return LogNormal(positive(self.noise, 0.3 * scale[0]))

    def with_least_noise(self, part: float, y: Float[np.ndarray, " N"]) -> "LogNormal":
        return LogNormal(at_least(self.noise, part * float(self.location(y)[1][0])))

    def location(self, y: Float[np.ndarray, " N"]) -> tuple[np.ndarray, np.ndarray]:
        if not len(y):
            return np.zeros(1), np.ones(1)
        offset, scale = np.mean(np.log(y)), np.std(np.log(y))
        return np.array([offset]), np.array([scale if scale > 1e-12 else 1.0])

    @property
    def offset_spread(self) -> Float[np.ndarray, " J"]:
        return np.full(1, LEVELS)

    @property
    def scales_sites(self) -> bool:
        return True

    @property
    def strength(self) -> float:
        return self._of_log.strength

    def strength_gradient(self, by_log_strength: float) -> dict[str, Any]:
        return self._of_log.strength_gradient(by_log_strength)

    def log_density(
        self, y: Float[np.ndarray, "*#b"], f: Float[np.ndarray, "*#b J"]
    ) -> Float[np.ndarray, "*#b"]:
        log_y = _log(y)
        return self._of_log.log_density(log_y, f) - log_y

    def derivatives(
        self, y: Float[np.ndarray, "*#b"], f: Float[np.ndarray, "*#b J"]
    ) -> tuple[Float[np.ndarray, "*#b J"], Float[np.ndarray, "*#b J J"]]:
        return self._of_log.derivatives(_log(y), f)

    def parameter_gradient(
        self, y: Float[np.ndarray, "*#b"], f: Float[np.ndarray, "*#b J"]
    ) -> dict[str, Any]:
        return self._of_log.parameter_gradient(_log(y), f)

    def expected(
        self,
        y: Float[np.ndarray, " N"],
        mean: Float[np.ndarray, "N J"],
        covariance: Float[np.ndarray, "N J J"],
    ) -> Expected:
        log_y = _log(y)
        value, *slopes = self._of_log.expected(log_y, mean, covariance)
        return Expected(value - log_y, *slopes)

    def expected_parameter_rows(
        self,
        y: Float[np.ndarray, " N"],
        mean: Float[np.ndarray, "N J"],
        covariance: Float[np.ndarray, "N J J"],
    ) -> dict[str, Any]:
        return self._of_log.expected_parameter_rows(_log(y), mean, covariance)

    def curvature(
        self,
        y: Float[np.ndarray, " N"],
        mean: Float[np.ndarray, "N J"],
        covariance: Float[np.ndarray, "N J J"],
    ) -> tuple[Float[np.ndarray, "N J"], Float[np.ndarray, "N J J"]]:
        return self._of_log.curvature(_log(y), mean, covariance)

    def site_gradient(
        self,
        y: Float[np.ndarray, " N"],
        offset: Float[np.ndarray, "N J"],
        by_linear: Float[np.ndarray, "N J"],
        by_precision: Float[np.ndarray, "N J J"],
    ) -> dict[str, Any]:
        return self._of_log.site_gradient(_log(y), offset, by_linear, by_precision)

    def log_predictive(
        self,
        y: Float[np.ndarray, " N"],
        mean: Float[np.ndarray, "N J"],
        covariance: Float[np.ndarray, "N J J"],
    ) -> Float[np.ndarray, " N"]:
        log_y = _log(y)
        return self._of_log.log_predictive(log_y, mean, covariance) - log_y

    def predictive_cdf(
        self,
        y: Float[np.ndarray, " N"],
        mean: Float[np.ndarray, "N J"],
        covariance: Float[np.ndarray, "N J J"],
    ) -> Float[np.ndarray, " N"]:
        return np.where(y > 0, self._of_log.predictive_cdf(_log(y), mean, covariance), 0.0)

    def predictive_score(
        self,
        y: Float[np.ndarray, " N"],
        mean: Float[np.ndarray, "N J"],
        covariance: Float[np.ndarray, "N J J"],
    ) -> Float[np.ndarray, " N"]:
        score = self._of_log.predictive_score(_log(y), mean, covariance)
        return np.where(y > 0, score, -np.inf)

    def predictive_value(
        self,
        score: Float[np.ndarray, "*#b N"],
        mean: Float[np.ndarray, "N J"],
        covariance: Float[np.ndarray, "N J J"],
    ) -> Float[np.ndarray, "*#b N"]:
        with np.errstate(over="ignore"):
            return np.exp(self._of_log.predictive_value(score, mean, covariance))

    @np.errstate(over="ignore", invalid="ignore")
    def predictive_crps(
        self,
        y: Float[np.ndarray, " N"],
        mean: Float[np.ndarray, "N J"],
        covariance: Float[np.ndarray, "N J J"],
    ) -> Float[np.ndarray, " N"]:
        """Baran and Lerch (2015), equation 3, in logarithms: a mean may be beyond all numbers."""
        z = self.predictive_score(y, mean, covariance)
        variance = covariance[:, 0, 0] + self.noise**2
        deviation, log_mean = np.sqrt(variance), mean[:, 0] + 0.5 * variance
        below = np.exp(log_mean + special.log_ndtr(z - deviation))
        apart = np.exp(log_mean + special.log_ndtr(-deviation / np.sqrt(2)))
        score = y * special.erf(z / np.sqrt(2)) - 2 * (below - apart)
        return np.where(np.isnan(score), np.inf, score)

    def predictive_quantile(
        self,
        level: Float[np.ndarray, "*#b N"],
        mean: Float[np.ndarray, "N J"],
        covariance: Float[np.ndarray, "N J J"],
    ) -> Float[np.ndarray, "*#b N"]:
        return self.predictive_value(special.ndtri(level), mean, covariance)

    def predictive_parts(
        self, mean: Float[np.ndarray, "N J"], covariance: Float[np.ndarray, "N J J"]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        variance, noise = covariance[:, 0, 0], self.noise**2
        total, between = _moments(mean[:, 0] + 0.5 * noise, variance)
        with np.errstate(over="ignore"):
            within = np.exp(2 * (mean[:, 0] + variance) + noise + _log_expm1(noise))
        return total, within, between

    def cdf(
        self, y: Float[np.ndarray, "*#b"], f: Float[np.ndarray, "*#b J"]
    ) -> Float[np.ndarray, "*#b"]:
        return np.where(y > 0, self._of_log.cdf(_log(y), f), 0.0)

    def log_tail(
        self, y: Float[np.ndarray, "*#b"], f: Float[np.ndarray, "*#b J"], upper: bool
    ) -> Float[np.ndarray, "*#b"]:
        return self._of_log.log_tail(_log(y), f, upper)

    def tail_derivatives(
        self, y: Float[np.ndarray, "*#b"], f: Float[np.ndarray, "*#b J"], upper: bool
    ) -> tuple[Float[np.ndarray, "*#b J"], Float[np.ndarray, "*#b J J"]]:
        return self._of_log.tail_derivatives(_log(y), f, upper)

    def tail_parameter_gradient(
        self, y: Float[np.ndarray, "*#b"], f: Float[np.ndarray, "*#b J"], upper: bool
    ) -> dict[str, Any]:
        return self._of_log.tail_parameter_gradient(_log(y), f, upper)

    def moments(self, f: Float[np.ndarray, "*#b J"]) -> tuple[np.ndarray, np.ndarray]:
        return _moments(f[..., 0], self.noise**2)

    def sample(self, f: Float[np.ndarray, "*#b J"], rng: np.random.Generator) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.exp(self._of_log.sample(f, rng))


def _log(y: Float[np.ndarray, "*#b"]) -> Float[np.ndarray, "*#b"]:
    """log y, or zero where y is none of this family's."""
    return np.log(np.where(y > 0, y, 1.0))


@np.errstate(over="ignore")
def _moments(
    centre: Float[np.ndarray, "*#b"], variance: Float[np.ndarray, "*#b"]
) -> tuple[Float[np.ndarray, "*#b"], Float[np.ndarray, "*#b"]]:
    """Mean and variance of y from those of log y; infinite if they are beyond all numbers."""
    log_mean = centre + 0.5 * variance
    return np.exp(log_mean), np.exp(2 * log_mean + _log_expm1(variance))


@np.errstate(divide="ignore")
def _log_expm1(number: Float[np.ndarray, "*#b"] | float) -> Float[np.ndarray, "*#b"] | float:
    """log(exp(number) − 1) of a number that is not negative; it may be zero, or very large."""
    return number + np.log(-np.expm1(-number))
