"""Shares, strictly between none and all."""

import dataclasses
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool
from scipy import special

from streamgp.likelihoods import quadrature
from streamgp.likelihoods.algebra import column, square
from streamgp.likelihoods.arrays import ByName, Covariances, Latent, Means, Observed, Slopes, Values
from streamgp.likelihoods.base import Likelihood
from streamgp.likelihoods.support import OpenInterval
from streamgp.numerics.special import trigamma
from streamgp.parameters import Parameter, positive
from streamgp.registry import storable

_FARTHEST = 100.0  # in log odds
_TINY = 1e-300
_BELOW_ONE = 1 - 2.0**-53


class _Sides(NamedTuple):
    """The distribution's two parameters; one minus a mean close to one would be rounded."""

    a: Values
    b: Values
    inside: Bool[np.ndarray, "*#b"]  # where f was not clipped


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Beta(Likelihood):
    """Shares and proportions.

    y is a number strictly between 0 and 1. Given the latent parameter f, it has a beta distribution
    with mean μ = sigmoid(f) and variance μ·(1 − μ)/(1 + concentration).

    Args:
        concentration: How closely y follows its mean; positive. By default it starts where half of
            the variance of the channel's first data is noise. It is learned, unless it is given as
            `fixed(…)`.
    """

    concentration: Parameter = None

    support = OpenInterval(0.0, 1.0)

    def start(self, y: Observed) -> "Beta":
        """With half of the first data's variance taken for noise."""
        mean, variance = (np.mean(y), np.var(y)) if len(y) else (0.5, 0.0)
        excess = 2 * mean * (1 - mean) / variance - 1 if variance > 0 else 10.0
        return Beta(positive(self.concentration, np.clip(excess, 1.0, 1e4)))

    def location(self, y: Observed) -> tuple[np.ndarray, np.ndarray]:
        mean = np.clip(np.mean(y), 1e-6, 1 - 1e-6) if len(y) else 0.5
        return special.logit(np.array([mean])), np.ones(1)

    def log_density(self, y: Observed, f: Latent) -> Values:
        a, b, _ = self._sides(f)
        log_total = special.gammaln(a) + special.gammaln(b) - special.gammaln(self.concentration)
        log_y, log_rest = _logs(y)
        return (a - 1) * log_y + (b - 1) * log_rest - log_total

    def derivatives(self, y: Observed, f: Latent) -> Slopes:
        sides = self._sides(f)
        slope, bend = self._slope(y, sides), self._bend(y, sides)
        return (
            column(np.where(sides.inside, slope, 0.0)),
            square(np.where(sides.inside, bend, 0.0)),
        )

    def gradient(self, y: Observed, f: Latent) -> Latent:
        sides = self._sides(f)
        return column(np.where(sides.inside, self._slope(y, sides), 0.0))

    def parameter_gradient(self, y: Observed, f: Latent) -> ByName:
        a, b, _ = self._sides(f)
        log_y, log_rest = _logs(y)
        total = a * (log_y - special.psi(a)) + b * (log_rest - special.psi(b))
        return {"concentration": total / self.concentration + special.psi(self.concentration)}

    def curvature(self, y: Observed, mean: Means, covariance: Covariances) -> Slopes:
        """With the slope at the farthest odds for those past it, so that proposals come back."""
        f, weights = quadrature.spread(mean, covariance)
        sides = self._sides(f)
        precision = np.maximum(-(weights @ self._bend(y, sides)), 0.0)
        return column(weights @ self._slope(y, sides)), square(precision)

    def cdf(self, y: Observed, f: Latent) -> Values:
        a, b, _ = self._sides(f)
        return special.betainc(a, b, np.clip(y, 0.0, 1.0))

    def moments(self, f: Latent) -> tuple[np.ndarray, np.ndarray]:
        a, b, _ = self._sides(f)
        c = self.concentration
        return a / c, a * b / c**2 / (1 + c)

    def sample(self, f: Latent, rng: np.random.Generator) -> np.ndarray:
        a, b, _ = self._sides(f)
        return np.clip(rng.beta(a, b), _TINY, _BELOW_ONE)

    def _sides(self, f: Latent) -> _Sides:
        clipped = np.clip(f[..., 0], -_FARTHEST, _FARTHEST)
        c = self.concentration
        return _Sides(c * special.expit(clipped), c * special.expit(-clipped), clipped == f[..., 0])

    def _surprise(self, y: Observed, sides: _Sides) -> Values:
        """The derivative by a, where a + b is held."""
        log_y, log_rest = _logs(y)
        return log_y - log_rest - special.psi(sides.a) + special.psi(sides.b)

    def _slope(self, y: Observed, sides: _Sides) -> Values:
        rate = sides.a * sides.b / self.concentration  # da/df = −db/df
        return rate * self._surprise(y, sides)

    def _bend(self, y: Observed, sides: _Sides) -> Values:
        a, b, _ = sides
        rate = a * b / self.concentration
        turn = rate * (b - a) / self.concentration * self._surprise(y, sides)
        return turn - rate**2 * (trigamma(a) + trigamma(b))


def _logs(y: Values) -> tuple[Values, Values]:
    """log y and log(1 − y), finite also for a y that is none of this family's."""
    y = np.clip(y, _TINY, _BELOW_ONE)
    return np.log(y), np.log1p(-y)
