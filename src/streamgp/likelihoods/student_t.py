"""Real values with outliers."""

import dataclasses
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import special

from streamgp.likelihoods.algebra import column, log_normal, square
from streamgp.likelihoods.arrays import ByName, Covariances, Latent, Means, Observed, Slopes, Values
from streamgp.likelihoods.base import LEVELS, Expected, Likelihood
from streamgp.likelihoods.gaussian import Gaussian
from streamgp.likelihoods.quadrature import log_sum
from streamgp.numerics.special import digamma_step, log_gamma_step
from streamgp.parameters import Parameter, fixed, positive
from streamgp.registry import storable

_PER_UNIT = 14  # nodes of the log precision: zero is among them, a normal's, df → ∞
_FIRST, _LAST = -70 * _PER_UNIT, 4 * _PER_UNIT
_UNIT = np.linspace(0.0, 1.0, 96)[:, None]
_HIGH = 3.7
_FARTHEST = 1e300
_WEIGHTLESS = -45.0  # log weight that no probability shows


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class StudentT(Likelihood):
    """Real numbers with outliers.

    y is any real number: y = f + noise, where f is the latent parameter and the noise has Student's
    t distribution. Outliers have little influence on what is learned.

    Args:
        scale: The scale of the noise, in the units of y; positive. By default it starts at 0.3
            times the spread of the channel's first data, measured by their quartiles. It is
            learned, unless it is given as `fixed(…)`.
        df: The degrees of freedom; positive. Fewer of them mean heavier tails. By default they are
            fixed at 4. A number that is given is where learning starts, and `fixed(…)` keeps it.
            The variance of y is infinite for `df` up to 2.

    Examples:
        >>> import streamgp as sgp
        >>> sgp.ContinualGP({"price": sgp.StudentT(df=sgp.fixed(3.0))}).channels
        ('price',)
    """

    scale: Parameter = None
    df: Parameter = None

    def start(self, y: Observed) -> "StudentT":
        _, scale = self.location(y)
        return StudentT(positive(self.scale, 0.3 * scale[0]), positive(self.df, fixed(4.0)))

    def location(self, y: Observed) -> tuple[np.ndarray, np.ndarray]:
        """Median and the middle half's width, which outliers do not move."""
        offset, scale = Gaussian().location(y)
        low, middle, high = np.quantile(y, [0.25, 0.5, 0.75]) if len(y) else (0.0, 0.0, 0.0)
        if high - low <= 1e-12 * max(abs(low), abs(high)):
            return offset, scale
        return np.array([middle]), np.array([(high - low) / 1.349])  # a normal's is 1.349 σ

    @property
    def offset_spread(self) -> Float[np.ndarray, " J"]:
        return np.full(1, LEVELS)

    def log_density(self, y: Observed, f: Latent) -> Values:
        ratio = self._ratio(y, f)
        return self._peak() - 0.5 * (self.df + 1) * np.log1p(np.minimum(ratio**2, _FARTHEST))

    def derivatives(self, y: Observed, f: Latent) -> Slopes:
        ratio = self._ratio(y, f)
        width = np.sqrt(self.df) * self.scale
        shrink = 1 / (1 + np.minimum(ratio**2, _FARTHEST))
        slope = (self.df + 1) / width * ratio * shrink
        return column(slope), square((self.df + 1) / width**2 * (1 - 2 * shrink) * shrink)

    def parameter_gradient(self, y: Observed, f: Latent) -> ByName:
        distance = np.minimum(self._ratio(y, f) ** 2, _FARTHEST)
        return self._by_parameters(np.log1p(distance), distance / (1 + distance))

    def expected(self, y: Observed, mean: Means, covariance: Covariances) -> Expected:
        part, width = self._expected_log1p(y, mean, covariance), self.df * self.scale**2
        half = 0.5 * (self.df + 1)
        by_mean = 2 * half * (y - mean[:, 0]) / width * part.by_distance
        by_variance = -half / width * part.by_spread
        return Expected(self._peak() - half * part.value, column(by_mean), square(by_variance))

    def expected_parameter_rows(self, y: Observed, mean: Means, covariance: Covariances) -> ByName:
        part = self._expected_log1p(y, mean, covariance)
        by_log_width = part.distance * part.by_distance + part.spread * part.by_spread
        return self._by_parameters(part.value, by_log_width)

    def curvature(self, y: Observed, mean: Means, covariance: Covariances) -> Slopes:
        _, slope, half_bend = self.expected(y, mean, covariance)
        return slope, np.maximum(-2 * half_bend, 0.0)

    def log_predictive(self, y: Observed, mean: Means, covariance: Covariances) -> Values:
        precision, log_weights = self._precisions()
        total = covariance[:, 0, 0] + self.scale**2 / precision[:, None]
        square_distance = np.minimum(np.abs(y - mean[:, 0]), 1e150) ** 2
        given_precision = log_normal(square_distance, total) + log_weights[:, None]
        return log_sum(given_precision, np.ones(len(precision)))

    def predictive_cdf(self, y: Observed, mean: Means, covariance: Covariances) -> Values:
        precision, log_weights = self._precisions()
        heavy = log_weights > _WEIGHTLESS
        total = covariance[:, 0, 0] + self.scale**2 / precision[heavy, None]
        return np.exp(log_weights[heavy]) @ special.ndtr((y - mean[:, 0]) / np.sqrt(total))

    def predictive_parts(
        self, mean: Means, covariance: Covariances
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        centre, noise = self.moments(mean)
        return centre, noise, covariance[:, 0, 0]

    def cdf(self, y: Observed, f: Latent) -> Values:
        return special.stdtr(self.df, (y - f[..., 0]) / self.scale)

    def log_tail(self, y: Observed, f: Latent, upper: bool) -> Values:
        z = (y - f[..., 0]) / self.scale
        with np.errstate(divide="ignore"):
            return np.log(special.stdtr(self.df, -z if upper else z))

    def tail_derivatives(self, y: Observed, f: Latent, upper: bool) -> Slopes:
        """The slope is ±p(y)/P, and its own derivative follows by the quotient rule."""
        slope = np.exp(self.log_density(y, f) - self.log_tail(y, f, upper))
        slope = slope if upper else -slope
        return column(slope), square(slope * (self.gradient(y, f)[..., 0] - slope))

    def moments(self, f: Latent) -> tuple[np.ndarray, np.ndarray]:
        centre, df = f[..., 0], self.df
        variance = self.scale**2 * df / (df - 2) if df > 2 else np.inf if df > 1 else np.nan
        return (centre if df > 1 else centre + np.nan), np.full(centre.shape, variance)

    def sample(self, f: Latent, rng: np.random.Generator) -> np.ndarray:
        return f[..., 0] + self.scale * rng.standard_t(self.df, f.shape[:-1])

    def _peak(self) -> float:
        """The log density of y = f."""
        return log_gamma_step(0.5 * self.df) - 0.5 * np.log(np.pi * self.df) - np.log(self.scale)

    def _ratio(self, y: Observed, f: Latent) -> Values:
        """What log p is −½(df + 1)·log1p of, before it is squared."""
        ratio = (y - f[..., 0]) / (np.sqrt(self.df) * self.scale)
        return np.clip(ratio, -1e150, 1e150)

    def _by_parameters(self, log1p: np.ndarray, by_log_width: np.ndarray) -> ByName:
        """From E[log(1 + r²/width)] and minus its derivative by log width, width = df·scale²."""
        half = 0.5 * (self.df + 1)
        by_peak = 0.5 * digamma_step(0.5 * self.df) - 0.5 / self.df
        return {
            "scale": (2 * half * by_log_width - 1) / self.scale,
            "df": by_peak - 0.5 * log1p + half * by_log_width / self.df,
        }

    def _expected_log1p(self, y: Observed, mean: Means, covariance: Covariances) -> "_Log1p":
        width = self.df * self.scale**2
        distance = np.minimum(self._ratio(y, mean) ** 2, _FARTHEST)
        return _expected_log1p(distance, covariance[:, 0, 0] / width)

    def _precisions(self) -> tuple[Float[np.ndarray, " K"], Float[np.ndarray, " K"]]:
        """y as a mixture of normals over the precision τ, where f integrates out.

        Right however wide q(f) is and however far off y. Returns τ at its nodes, relative to the
        scale, and their log weights.
        """
        # log τ, τ ~ Gamma(df/2, df/2), is the wider the fewer degrees of freedom.
        stride = 3 if self.df <= 20 else 2 if self.df <= 50 else 1
        u = np.arange(stride * -(-_FIRST // stride), _LAST + 1, stride) / _PER_UNIT
        log_weights = 0.5 * self.df * (u - np.exp(u))
        return np.exp(u), log_weights - special.logsumexp(log_weights)


class _Log1p(NamedTuple):
    """E[log(1 + r²/width)], by what it is of, and the derivatives by these two."""

    distance: Values
    spread: Values
    value: Values
    by_distance: Values
    by_spread: Values


def _expected_log1p(distance: Values, spread: Values) -> _Log1p:
    """E[log(1 + x²)] for x ~ N(√distance, spread), however narrow or wide that is.

    With log(1 + x) = ∫ (1 − exp(−ux))·exp(−u) du/u, where r integrates out. In log u the integrand
    is smooth and falls off on both sides, so the trapezoidal rule is as good as exact.
    """
    low = -24.0 - np.log1p(distance + spread)
    u = np.exp(low + (_HIGH - low) * _UNIT)
    grown = 1 / (1 + 2 * u * spread)
    pull = u * grown
    lost = -np.expm1(0.5 * np.log(grown) - pull * distance)
    step = np.exp(-u) * ((_HIGH - low) * _UNIT[1])
    kept = (1 - lost) * pull * step
    value = np.einsum("kn,kn->n", lost, step)
    by_distance = np.sum(kept, axis=0)
    by_spread = by_distance - 2 * distance * np.einsum("kn,kn->n", kept, pull)
    return _Log1p(distance, spread, value, by_distance, by_spread)
