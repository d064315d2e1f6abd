"""Positive values whose spread grows with their mean."""

import dataclasses
from abc import abstractmethod

import numpy as np
from scipy import special

from streamgp.likelihoods.algebra import column, exponential, log_of, site_at_mode, square
from streamgp.likelihoods.arrays import ByName, Covariances, Latent, Means, Observed, Slopes, Values
from streamgp.likelihoods.base import Expected, Likelihood
from streamgp.likelihoods.support import Positive
from streamgp.numerics.special import FAR_PAST, gamma_fraction, log_lower_gamma, log_upper_gamma
from streamgp.parameters import Parameter, positive
from streamgp.registry import storable

_LARGEST_LOG = 200.0  # a mean within e^±200, whatever the units
_LARGEST_LOG_RATIO = 60.0  # past it, proposals are damped, not exponentiated


@dataclasses.dataclass(frozen=True, eq=False)
class PositiveMean(Likelihood):
    """y > 0 has a gamma distribution of mean exp(f): what `Gamma` and `Exponential` share.

    With k the shape, log p(y | f) = −k·(f + y·exp(−f)) + what does not depend on f.
    """

    log_concave = True

    @property
    @abstractmethod
    def _shape(self) -> float:
        """k."""

    support = Positive()

    def location(self, y: Observed) -> tuple[np.ndarray, np.ndarray]:
        return np.log(np.array([np.mean(y) if len(y) else 1.0])), np.ones(1)

    def log_density(self, y: Observed, f: Latent) -> Values:
        return self._value(log_of(y), f[..., 0], _ratio(log_of(y) - f[..., 0])[0])

    def derivatives(self, y: Observed, f: Latent) -> Slopes:
        _, moving = _ratio(log_of(y) - f[..., 0])
        return column(self._shape * (moving - 1)), square(-self._shape * moving)

    def expected(self, y: Observed, mean: Means, covariance: Covariances) -> Expected:
        k, log_y = self._shape, log_of(y)
        ratio, moving = _ratio(log_y - mean[:, 0] + 0.5 * covariance[:, 0, 0])
        value = self._value(log_y, mean[:, 0], ratio)
        return Expected(value, column(k * (moving - 1)), square(-0.5 * k * moving))

    def curvature(self, y: Observed, mean: Means, covariance: Covariances) -> Slopes:
        ratio, _ = _ratio(log_of(y) - mean[:, 0] + 0.5 * covariance[:, 0, 0])
        return column(self._shape * (ratio - 1)), square(self._shape * ratio)

    def first_site(self, y: Observed, mean: Means, covariance: Covariances) -> Slopes:
        """A value far above its predicted mean begins at its own mode, firmly."""
        mode, centre, variance = log_of(y), mean[:, 0], covariance[:, 0, 0]
        distance = mode - centre + 0.5 * variance
        gradient, precision = site_at_mode(mode, self._shape, distance, centre, variance)
        return column(gradient), square(precision)

    def predictive_parts(
        self, mean: Means, covariance: Covariances
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        variance = covariance[:, 0, 0]
        log_mean = np.clip(mean[:, 0] + 0.5 * variance, -_LARGEST_LOG, _LARGEST_LOG)
        total, square, between = exponential(log_mean, variance)
        return total, square / self._shape, between

    def cdf(self, y: Observed, f: Latent) -> Values:
        return special.gammainc(self._shape, self._scaled(np.maximum(y, 0.0), f))

    def log_tail(self, y: Observed, f: Latent, upper: bool) -> Values:
        x = self._scaled(np.maximum(y, 1e-300), f)
        return log_upper_gamma(self._shape, x) if upper else log_lower_gamma(self._shape, x)

    def tail_derivatives(self, y: Observed, f: Latent, upper: bool) -> Slopes:
        """With x = k·y·exp(−f) and h = ±x·p(x)/P: the slope is h, the bend −h·(k − x + h)."""
        k, x = self._shape, self._scaled(np.maximum(y, 1e-300), f)
        log_height = k * np.log(x) - x - special.gammaln(k)
        with np.errstate(over="ignore", invalid="ignore"):
            slope = np.exp(log_height - self.log_tail(y, f, upper))
        slope = slope if upper else -slope
        excess = k - x + slope
        if upper:  # where these cancel, by the continued fraction
            far, fraction = x > k + FAR_PAST, gamma_fraction(k, np.maximum(x, k + FAR_PAST))
            slope = np.where(far, x + 1 - k - fraction, slope)
            excess = np.where(far, 1 - fraction, excess)
        return column(slope), square(-slope * excess)

    def moments(self, f: Latent) -> tuple[np.ndarray, np.ndarray]:
        mean = _mean(f[..., 0])
        return mean, mean**2 / self._shape

    def sample(self, f: Latent, rng: np.random.Generator) -> np.ndarray:
        drawn = rng.gamma(self._shape, _mean(f[..., 0]) / self._shape)
        return np.maximum(drawn, 1e-300)  # small shapes would round to zero

    def _scaled(self, y: Observed, f: Latent) -> Values:
        """k·y·exp(−f)."""
        with np.errstate(over="ignore"):
            return self._shape * y * _mean(-f[..., 0])

    def _value(self, log_y: np.ndarray, f: np.ndarray, ratio: np.ndarray) -> np.ndarray:
        """The log density, or its expectation, from y·exp(−f) or the expectation of that."""
        k = self._shape
        return k * np.log(k) - special.gammaln(k) - log_y - k * (f - log_y + ratio)


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Gamma(PositiveMean):
    """Positive numbers whose spread is in proportion to their mean.

    y is a positive number. It has a gamma distribution with mean exp(f) and standard deviation
    exp(f)/√shape, where f is the latent parameter.

    Args:
        shape: How closely y follows its mean; positive. By default it starts where half of the
            variance of the channel's first data is noise. It is learned, unless it is given as
            `fixed(…)`.

    Examples:
        >>> import streamgp as sgp
        >>> sgp.ContinualGP({"load": sgp.Gamma(shape=sgp.fixed(2.0))}).channels
        ('load',)
    """

    shape: Parameter = None

    @property
    def _shape(self) -> float:
        return self.shape

    def start(self, y: Observed) -> "Gamma":
        """With half of the first data's variance taken for noise."""
        variance = np.var(y) if len(y) else 0.0
        shape = np.clip(2 * np.mean(y) ** 2 / variance, 0.5, 100.0) if variance > 0 else 2.0
        return Gamma(positive(self.shape, shape))

    def parameter_gradient(self, y: Observed, f: Latent) -> ByName:
        log_y = log_of(y)
        return {"shape": self._by_shape(log_y, f[..., 0], _ratio(log_y - f[..., 0])[0])}

    def expected_parameter_rows(self, y: Observed, mean: Means, covariance: Covariances) -> ByName:
        log_y = log_of(y)
        ratio, _ = _ratio(log_y - mean[:, 0] + 0.5 * covariance[:, 0, 0])
        return {"shape": self._by_shape(log_y, mean[:, 0], ratio)}

    def _by_shape(self, log_y: np.ndarray, f: np.ndarray, ratio: np.ndarray) -> np.ndarray:
        return np.log(self.shape) + 1 - special.psi(self.shape) - (f - log_y + ratio)


def _mean(f: Values) -> Values:
    return np.exp(np.clip(f, -_LARGEST_LOG, _LARGEST_LOG))


def _ratio(log_ratio: Values) -> tuple[Values, Values]:
    """The expected y·exp(−f), which is held past some size, and its derivative by its logarithm."""
    ratio = np.exp(np.minimum(log_ratio, _LARGEST_LOG_RATIO))
    return ratio, np.where(log_ratio < _LARGEST_LOG_RATIO, ratio, 0.0)
