"""Beta: shares, strictly between 0 and 1."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.scipy.special import digamma, gammaln, polygamma
from jaxtyping import Array, Float
from numpyro.distributions import constraints
from scipy import special

from streamgp.likelihoods.base import Likelihood
from streamgp.likelihoods.quadrature import spread
from streamgp.parameters import Parameter, positive
from streamgp.registry import storable

_FARTHEST = 100.0  # in log odds
_TINY = 1e-300
_BELOW_ONE = 1 - 2.0**-53


@storable
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

    def distribution(self, f: Float[Array, "*b J"]) -> dist.Distribution:
        return dist.Beta(*self._sides(f[..., 0]))

    def _sides(self, f: Float[Array, "*b"]) -> tuple[Float[Array, "*b"], Float[Array, "*b"]]:
        """The two parameters of the distribution, without the rounding of one minus the mean."""
        f = jnp.clip(f, -_FARTHEST, _FARTHEST)
        return self.concentration * jax.nn.sigmoid(f), self.concentration * jax.nn.sigmoid(-f)

    @property
    def support(self) -> Any:
        return constraints.open_interval(0.0, 1.0)

    def start(self, y: Float[np.ndarray, " N"]) -> "Beta":
        """As in the base class: half of the variance of the first data is taken for noise."""
        mean, variance = (np.mean(y), np.var(y)) if len(y) else (0.5, 0.0)
        excess = 2 * mean * (1 - mean) / variance - 1 if variance > 0 else 10.0
        return Beta(positive(self.concentration, np.clip(excess, 1.0, 1e4)))

    def location(self, y: Float[np.ndarray, " N"]) -> tuple[np.ndarray, np.ndarray]:
        mean = np.clip(np.mean(y), 1e-6, 1 - 1e-6) if len(y) else 0.5
        return special.logit(np.array([mean])), np.ones(1)

    def log_density(self, y: Float[Array, ""], f: Float[Array, " J"]) -> Float[Array, ""]:
        a, b = self._sides(f[0])
        y = jnp.clip(y, _TINY, _BELOW_ONE)  # stay finite if y belongs to another channel
        log_total = gammaln(a) + gammaln(b) - gammaln(self.concentration)
        return (a - 1) * jnp.log(y) + (b - 1) * jnp.log1p(-y) - log_total

    def curvature(
        self, y: Float[Array, ""], mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> tuple[Float[Array, " J"], Float[Array, "J J"]]:
        """As in the base class, with explicit derivatives: those of polygamma compile slowly."""
        f, weights = spread(mean, covariance)
        a, b = self._sides(f[:, 0])
        y = jnp.clip(y, _TINY, _BELOW_ONE)
        surprise = jnp.log(y) - jnp.log1p(-y) - digamma(a) + digamma(b)
        rate = a * b / self.concentration  # da/df = −db/df
        bend = rate * (b - a) / self.concentration * surprise
        bend -= rate**2 * (polygamma(1, a) + polygamma(1, b))
        precision = jnp.maximum(-jnp.dot(weights, bend), 0.0)
        return jnp.dot(weights, rate * surprise)[None], precision[None, None]

    def cdf(self, y: Float[Array, "*b"], f: Float[Array, "*b J"]) -> Float[Array, "*b"]:
        return self.distribution(f).cdf(jnp.clip(y, 0.0, 1.0))
