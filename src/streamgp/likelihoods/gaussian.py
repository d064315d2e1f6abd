"""Real values with normal noise."""

import dataclasses

import numpy as np
from jaxtyping import Bool, Float
from scipy import special

from streamgp.likelihoods.algebra import column, log_normal, square
from streamgp.likelihoods.arrays import ByName, Covariances, Latent, Means, Observed, Slopes, Values
from streamgp.likelihoods.base import LEVELS, Expected, Likelihood
from streamgp.likelihoods.rounding import at_least, rounded_as, rounding_of, step_of
from streamgp.numerics.special import mills
from streamgp.parameters import Parameter, Positive, positive, replaced
from streamgp.registry import storable

_TINY = 1e-100
_FARTHEST = 40.0  # deviations from which a density is nothing
_ROOT_HALF, _TWICE, _OFFSET = np.sqrt([0.5, 2 / np.pi, 1 / np.pi])


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Gaussian(Likelihood):
    """Real numbers with normal noise of the same size everywhere.

    y is any real number: y = f + noise, where f is the latent parameter.

    Args:
        noise: The standard deviation of the noise, in the units of y; positive. By default it
            starts at 0.3 times the standard deviation of the channel's first data. It is learned,
            unless it is given as `fixed(…)`. Over several inputs it stays above the error of
            rounding, if the values of the first batch repeat.
        error: Whether every observation brings the standard deviation of its own measurement error,
            as a second number. It is independent of the noise, so the variances add up.
            Predictions are of values without such an error.

    Examples:
        >>> import streamgp as sgp
        >>> channels = {"indoors": sgp.Gaussian(), "outdoors": sgp.Gaussian(noise=0.5)}
        >>> sgp.ContinualGP(channels).channels
        ('indoors', 'outdoors')
    """

    noise: Parameter = None
    error: bool = False

    conjugate = True
    log_concave = True

    @property
    def columns(self) -> tuple[str, ...]:
        return ("value", "error") if self.error else ("value",)

    @property
    def bare(self) -> "Gaussian":
        return replaced(self, error=False) if self.error else self

    def start(self, y: Observed) -> "Gaussian":
        _, scale = self.location(y)
        return Gaussian(positive(self.noise, 0.3 * scale[0]), self.error)

    def location(self, y: Observed) -> tuple[np.ndarray, np.ndarray]:
        y = self.split(y)[0]
        if not len(y):
            return np.zeros(1), np.ones(1)
        offset, scale = np.mean(y), np.std(y)
        if scale <= max(1e-12 * abs(offset), _TINY):  # one sample, or a constant: go by its size
            scale = abs(offset) if abs(offset) > 1e-12 else 1.0
        return np.array([offset]), np.array([scale])

    def with_least_noise(self, part: float, y: Observed) -> "Gaussian":
        least = part * float(self.location(y)[1][0])
        return self if self.error else replaced(self, noise=at_least(self.noise, least))

    def above_rounding(self, y: Observed, *, first: bool) -> "Gaussian":
        """Rows that stand twice with equal rounded values would else drive the noise to zero."""
        if self.error or not isinstance(self.noise, Positive):
            return self
        least = rounding_of(y) if first else min(self.noise.least, step_of(y) / np.sqrt(12))
        if least == self.noise.least:
            return self
        return replaced(self, noise=replaced(self.noise, least=float(least)))

    def with_rounding_of(self, other: "Gaussian") -> "Gaussian":
        return replaced(self, noise=rounded_as(self.noise, other.noise))

    @property
    def offset_spread(self) -> Float[np.ndarray, " J"]:
        return np.full(1, LEVELS)

    @property
    def scales_sites(self) -> bool:
        return not self.error

    @property
    def adds_up(self) -> bool:
        return not self.error

    @property
    def strength(self) -> float:
        return 1.0 if self.error else float(self.noise) ** -2

    def strength_gradient(self, by_log_strength: float) -> ByName:
        return {} if self.error else {"noise": -2 * by_log_strength / self.noise}

    def valid(self, y: Observed) -> Bool[np.ndarray, " N"]:
        return super().valid(y) & (self.split(y)[-1] >= 0) if self.error else super().valid(y)

    def log_density(self, y: Observed, f: Latent) -> Values:
        y, variance = self._noisy(y)
        return log_normal((y - f[..., 0]) ** 2, variance)

    def derivatives(self, y: Observed, f: Latent) -> Slopes:
        y, variance = self._noisy(y)
        slope = (y - f[..., 0]) / variance
        return column(slope), square(np.zeros(slope.shape) - 1 / variance)

    def parameter_gradient(self, y: Observed, f: Latent) -> ByName:
        y, variance = self._noisy(y)
        return {"noise": self._by_noise((y - f[..., 0]) ** 2, variance)}

    def expected(self, y: Observed, mean: Means, covariance: Covariances) -> Expected:
        y, variance = self._noisy(y)
        residual = y - mean[:, 0]
        precision = 1 / variance
        by_covariance = np.empty(covariance.shape)
        by_covariance[:, 0, 0] = -0.5 * precision
        value = log_normal(residual**2 + covariance[:, 0, 0], variance)
        return Expected(value, column(residual * precision), by_covariance)

    def expected_parameter_rows(self, y: Observed, mean: Means, covariance: Covariances) -> ByName:
        y, variance = self._noisy(y)
        return {"noise": self._by_noise((y - mean[:, 0]) ** 2 + covariance[:, 0, 0], variance)}

    def curvature(self, y: Observed, mean: Means, covariance: Covariances) -> Slopes:
        y, variance = self._noisy(y)
        precision = np.empty(covariance.shape)
        precision[:, 0, 0] = 1 / variance
        return column((y - mean[:, 0]) / variance), precision

    def site_gradient(
        self, y: Observed, offset: Means, by_linear: Means, by_precision: Covariances
    ) -> ByName:
        y, variance = self._noisy(y)
        said = by_linear[:, 0] * (y - offset[:, 0]) + by_precision[:, 0, 0]
        return {"noise": -2 * self.noise * np.sum(said / variance**2)}

    def log_predictive(self, y: Observed, mean: Means, covariance: Covariances) -> Values:
        y, variance = self._noisy(y)
        return log_normal((y - mean[:, 0]) ** 2, covariance[:, 0, 0] + variance)

    def predictive_score(self, y: Observed, mean: Means, covariance: Covariances) -> Values:
        y, variance = self._noisy(y)
        return (y - mean[:, 0]) / np.sqrt(covariance[:, 0, 0] + variance)

    def predictive_value(
        self, score: Float[np.ndarray, "*#b N"], mean: Means, covariance: Covariances
    ) -> Float[np.ndarray, "*#b N"]:
        return mean[:, 0] + np.sqrt(covariance[:, 0, 0] + self.noise**2) * score

    def predictive_crps(self, y: Observed, mean: Means, covariance: Covariances) -> Values:
        """Gneiting and others (2005), equation 5."""
        y, variance = self._noisy(y)
        deviation = np.sqrt(covariance[:, 0, 0] + variance)
        z = np.abs(y - mean[:, 0]) / deviation
        density = np.exp(-0.5 * np.minimum(z, _FARTHEST) ** 2)
        return deviation * (z * special.erf(_ROOT_HALF * z) + _TWICE * density - _OFFSET)

    def predictive_parts(
        self, mean: Means, covariance: Covariances
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return mean[:, 0], np.full(len(mean), self.noise**2), covariance[:, 0, 0]

    def cdf(self, y: Observed, f: Latent) -> Values:
        y, variance = self._noisy(y)
        return special.ndtr((y - f[..., 0]) / np.sqrt(variance))

    def log_tail(self, y: Observed, f: Latent, upper: bool) -> Values:
        return special.log_ndtr(self._signed(y, f, upper)[0])

    def tail_derivatives(self, y: Observed, f: Latent, upper: bool) -> Slopes:
        z, sign, deviation = self._signed(y, f, upper)
        slope, bend = mills(z)
        return column(-sign * slope / deviation), square(-bend / deviation**2)

    def tail_parameter_gradient(self, y: Observed, f: Latent, upper: bool) -> ByName:
        z, _, deviation = self._signed(y, f, upper)
        return {"noise": -mills(z)[0] * z * self.noise / deviation**2}

    def moments(self, f: Latent) -> tuple[np.ndarray, np.ndarray]:
        return f[..., 0], np.full(f.shape[:-1], self.noise**2)

    def sample(self, f: Latent, rng: np.random.Generator) -> np.ndarray:
        return rng.normal(f[..., 0], self.noise)

    def _noisy(self, y: Observed) -> tuple[Values, Values | float]:
        """The values, and the variances of what they have over f."""
        if not self.error:
            return y, self.noise**2
        value, error = self.split(y)
        return value, self.noise**2 + error**2

    def _by_noise(self, squares: np.ndarray, variance: np.ndarray | float) -> np.ndarray:
        """The derivative by the noise, from squared residuals."""
        return self.noise * (squares / variance - 1) / variance

    def _signed(self, y: Observed, f: Latent, upper: bool) -> tuple[np.ndarray, float, np.ndarray]:
        """z with log Φ(z) the tail, the sign of dz/dy, and the noise's deviation."""
        y, variance = self._noisy(y)
        sign, deviation = -1.0 if upper else 1.0, np.sqrt(variance)
        return sign * (y - f[..., 0]) / deviation, sign, deviation
