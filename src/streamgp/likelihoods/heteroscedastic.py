"""Real values with normal noise that varies."""

import dataclasses

import numpy as np
from jaxtyping import Bool, Float
from scipy import special

from streamgp.likelihoods.algebra import LOG_2PI, log_normal, site_at_mode
from streamgp.likelihoods.arrays import Covariances, Latent, Means, Observed, Slopes, Values
from streamgp.likelihoods.base import LEVELS, Expected, Likelihood
from streamgp.likelihoods.gaussian import Gaussian
from streamgp.likelihoods.quadrature import refined_average, refined_log_average
from streamgp.registry import storable

_LARGEST_LOG = 200.0  # of a precision: past it, proposals are damped, not exponentiated


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class HeteroscedasticGaussian(Likelihood):
    """Real numbers with normal noise whose size depends on the inputs.

    y is any real number. There are two latent parameters, which both vary over the inputs: y has
    mean f₀ and standard deviation exp(f₁). There are no other parameters.
    """

    latents = 2

    def location(self, y: Observed) -> tuple[np.ndarray, np.ndarray]:
        offset, scale = Gaussian().location(y)
        return np.append(offset, np.log(0.3 * scale)), np.append(scale, 1.0)

    @property
    def offset_spread(self) -> Float[np.ndarray, " J"]:
        return np.array([LEVELS, 3.0])

    def log_density(self, y: Observed, f: Latent) -> Values:
        log_deviation, _ = _clipped(f[..., 1])
        z = (y - f[..., 0]) * np.exp(-log_deviation)
        return -0.5 * (z**2 + LOG_2PI) - log_deviation

    def derivatives(self, y: Observed, f: Latent) -> Slopes:
        log_deviation, inside = _clipped(f[..., 1])
        weight, residual = np.exp(-2 * log_deviation), y - f[..., 0]
        slope, square = weight * residual, weight * residual**2
        gradient = np.stack([slope, np.where(inside, square - 1, 0.0)], axis=-1)
        cross, bend = np.where(inside, -2 * slope, 0.0), np.where(inside, -2 * square, 0.0)
        return gradient, _matrix(np.zeros(slope.shape) - weight, cross, bend)

    def expected(self, y: Observed, mean: Means, covariance: Covariances) -> Expected:
        weight, residual, square = _weighted(y, mean, covariance)
        value = -0.5 * LOG_2PI - mean[:, 1] - 0.5 * weight * square
        is_free = _log_weight(mean, covariance) < _LARGEST_LOG
        slope, bend = weight * residual, np.where(is_free, weight * square, 0.0)
        by_mean = np.stack([slope, bend - 1], axis=-1)
        return Expected(value, by_mean, _matrix(-0.5 * weight, -slope, -bend))

    def curvature(self, y: Observed, mean: Means, covariance: Covariances) -> Slopes:
        """The Hessian's off-diagonal is shrunk to where the precision is positive semi-definite.

        Unlike the nearest such matrix this depends on no units and keeps the diagonal: over rows
        the off-diagonals cancel and the diagonals add up.
        """
        weight, residual, square = _weighted(y, mean, covariance)
        gradient = np.stack([weight * residual, weight * square - 1], axis=-1)
        largest = np.sqrt(2 * square)
        cross = np.clip(2 * residual, -largest, largest)
        return gradient, _matrix(weight, weight * cross, 2 * weight * square)

    def first_site(self, y: Observed, mean: Means, covariance: Covariances) -> Slopes:
        """A residual far above its predicted size begins with noise of its size, firmly."""
        centre, variance = mean[:, 1], covariance[:, 1, 1]
        mode = 0.5 * np.log((y - mean[:, 0]) ** 2 + covariance[:, 0, 0] + 1e-300)
        distance = 2 * (mode - centre + variance)
        gradient, precision = super().first_site(y, mean, covariance)
        gradient[:, 1], precision[:, 1, 1] = site_at_mode(mode, 2.0, distance, centre, variance)
        return gradient, precision

    def log_predictive(self, y: Observed, mean: Means, covariance: Covariances) -> Values:
        def given_noise(rows: np.ndarray, f: np.ndarray) -> np.ndarray:
            centre, variance = _given_noise(mean[rows], covariance[rows], f)
            return log_normal((y[rows] - centre) ** 2, variance)

        return refined_log_average(given_noise, mean[:, 1], covariance[:, 1, 1])

    def predictive_cdf(self, y: Observed, mean: Means, covariance: Covariances) -> Values:
        def given_noise(rows: np.ndarray, f: np.ndarray) -> np.ndarray:
            centre, variance = _given_noise(mean[rows], covariance[rows], f)
            return special.ndtr((y[rows] - centre) / np.sqrt(variance))

        return refined_average(given_noise, mean[:, 1], covariance[:, 1, 1])

    def predictive_parts(
        self, mean: Means, covariance: Covariances
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        log_noise = np.minimum(2 * (mean[:, 1] + covariance[:, 1, 1]), _LARGEST_LOG)
        return mean[:, 0], np.exp(log_noise), covariance[:, 0, 0]

    def cdf(self, y: Observed, f: Latent) -> Values:
        return special.ndtr((y - f[..., 0]) / _deviation(f[..., 1]))

    def log_tail(self, y: Observed, f: Latent, upper: bool) -> Values:
        z = (y - f[..., 0]) / _deviation(f[..., 1])
        return special.log_ndtr(-z if upper else z)

    def moments(self, f: Latent) -> tuple[np.ndarray, np.ndarray]:
        return f[..., 0], _deviation(f[..., 1]) ** 2

    def sample(self, f: Latent, rng: np.random.Generator) -> np.ndarray:
        return rng.normal(f[..., 0], _deviation(f[..., 1]))


def _clipped(f: Values) -> tuple[Values, Bool[np.ndarray, "*#b"]]:
    """The logarithm of the noise, and whether it is f itself."""
    clipped = np.clip(f, -0.5 * _LARGEST_LOG, 0.5 * _LARGEST_LOG)
    return clipped, clipped == f


def _deviation(f: Values) -> Values:
    return np.exp(_clipped(f)[0])


def _matrix(first: np.ndarray, cross: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Symmetric matrices of two rows."""
    result = np.empty((*cross.shape, 2, 2))
    result[..., 0, 0], result[..., 1, 1] = first, second
    result[..., 0, 1] = result[..., 1, 0] = cross
    return result


def _log_weight(mean: Means, covariance: Covariances) -> Values:
    return 2 * (covariance[:, 1, 1] - mean[:, 1])


def _weighted(y: Observed, mean: Means, covariance: Covariances) -> tuple[Values, Values, Values]:
    """w = E_q[exp(−2f₁)], and the means of r = y − f₀ and r² under q weighted by exp(−2f₁).

    Weighting a normal by an exponential shifts it: E[f₀] by −2·Cov(f₀, f₁).
    """
    weight = np.exp(np.minimum(_log_weight(mean, covariance), _LARGEST_LOG))
    residual = y - mean[:, 0] + 2 * covariance[:, 0, 1]
    return weight, residual, residual**2 + covariance[:, 0, 0]


def _given_noise(
    mean: Means, covariance: Covariances, noise: Float[np.ndarray, "K N"]
) -> tuple[Float[np.ndarray, "K N"], Float[np.ndarray, "K N"]]:
    """Mean and variance of y given f₁, f₀ integrated out."""
    slope = covariance[:, 0, 1] / (covariance[:, 1, 1] + 1e-300)
    left = np.maximum(covariance[:, 0, 0] - slope * covariance[:, 0, 1], 0.0)
    centre = mean[:, 0] + slope * (noise - mean[:, 1])
    return centre, left + _deviation(noise) ** 2
