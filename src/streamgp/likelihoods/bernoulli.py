"""Yes or no."""

import dataclasses
from typing import ClassVar, Literal

import numpy as np
from scipy import special

from streamgp.errors import ConfigurationError, problem
from streamgp.likelihoods.algebra import column, square
from streamgp.likelihoods.arrays import Covariances, Latent, Means, Observed, Slopes, Values
from streamgp.likelihoods.base import Likelihood
from streamgp.likelihoods.support import Boolean
from streamgp.numerics.special import mills
from streamgp.registry import storable


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Bernoulli(Likelihood):
    """Observations that are yes or no.

    y is 0 or 1, a boolean, or one of two labels such as "no" and "yes". False is 0 and True is 1.
    Of two other labels, the second in their order counts as 1. The probability of 1 depends on the
    latent parameter f.

    Args:
        link: How the probability depends on f: "logit" (the default) for sigmoid(f), or "probit"
            for Φ(f), the distribution function of the standard normal.

    Raises:
        ConfigurationError: If the link is another.

    Examples:
        >>> import streamgp as sgp
        >>> sgp.ContinualGP({"rain": sgp.Bernoulli(), "frost": sgp.Bernoulli("probit")}).channels
        ('rain', 'frost')
    """

    link: Literal["logit", "probit"] = "logit"

    log_concave = True
    classes: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if self.link not in ("logit", "probit"):
            raise ConfigurationError(
                problem("link 'logit' or 'probit'", repr(self.link), "Choose one of them.")
            )

    support = Boolean()

    def location(self, y: Observed) -> tuple[np.ndarray, np.ndarray]:
        rate = (np.sum(y) + 1) / (len(y) + 2)  # Laplace's rule: never zero or one
        link = special.logit if self.link == "logit" else special.ndtri
        return np.array([link(rate)]), np.ones(1)

    def log_density(self, y: Observed, f: Latent) -> Values:
        log_probability = special.log_ndtr if self.link == "probit" else special.log_expit
        return log_probability((2 * y - 1) * f[..., 0])

    def derivatives(self, y: Observed, f: Latent) -> Slopes:
        sign = 2 * y - 1
        z = sign * f[..., 0]
        if self.link == "probit":
            slope, bend = mills(z)
        else:
            slope = special.expit(-z)
            bend = slope * special.expit(z)
        return column(sign * slope), square(-(sign**2) * bend)

    def log_predictive(self, y: Observed, mean: Means, covariance: Covariances) -> Values:
        if self.link == "logit":
            return super().log_predictive(y, mean, covariance)
        return self.log_density(y, mean / np.sqrt(1 + covariance[:, 0]))

    def predictive_crps(self, y: Observed, mean: Means, covariance: Covariances) -> Values:
        """Brier's score."""
        no = self.predictive_cdf(np.zeros(y.shape), mean, covariance)
        return (1 - no - y) ** 2

    def cdf(self, y: Observed, f: Latent) -> Values:
        below_one = np.where(y < 0, 0.0, self._probability(-f[..., 0]))
        return np.where(y < 1, below_one, 1.0)

    def moments(self, f: Latent) -> tuple[np.ndarray, np.ndarray]:
        yes = self._probability(f[..., 0])
        return yes, yes * self._probability(-f[..., 0])

    def sample(self, f: Latent, rng: np.random.Generator) -> np.ndarray:
        return (rng.random(f.shape[:-1]) < self._probability(f[..., 0])).astype(float)

    def _probability(self, f: Values) -> Values:
        return special.ndtr(f) if self.link == "probit" else special.expit(f)
