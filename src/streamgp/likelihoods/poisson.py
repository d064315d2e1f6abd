"""Poisson: counts."""

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.scipy.special import gammaln
from jaxtyping import Array, Float

from streamgp.likelihoods.base import Likelihood, site_at_mode
from streamgp.likelihoods.incomplete import upper_gamma
from streamgp.registry import storable

_LARGEST_LOG_RATE = 60.0  # a rate of 1e26; the exponential of larger values is clipped


@storable
class Poisson(Likelihood):
    """Counts of events.

    y is a whole number from 0 on. It has a Poisson distribution with mean exp(f), where f is the
    latent parameter. There are no other parameters.

    Example:
        >>> import streamgp as sgp
        >>> sgp.ContinualGP({"departures": sgp.Poisson()}).channels
        ('departures',)
    """

    log_concave = True

    def distribution(self, f: Float[Array, "*b J"]) -> dist.Distribution:
        return dist.Poisson(jnp.exp(jnp.minimum(f[..., 0], _LARGEST_LOG_RATE)))

    def location(self, y: Float[np.ndarray, " N"]) -> tuple[np.ndarray, np.ndarray]:
        average = np.mean(y) if len(y) else 1.0
        return np.log(np.array([max(average, 0.1)])), np.ones(1)

    def cdf(self, y: Float[Array, "*b"], f: Float[Array, "*b J"]) -> Float[Array, "*b"]:
        below = upper_gamma(jnp.floor(jnp.maximum(y, 0.0)) + 1, self.distribution(f).rate)
        return jnp.where(y < 0, 0.0, below)

    def log_density(self, y: Float[Array, ""], f: Float[Array, " J"]) -> Float[Array, ""]:
        return y * f[0] - jnp.exp(f[0]) - gammaln(y + 1)

    def expected_log_density(
        self, y: Float[Array, ""], mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> Float[Array, ""]:
        return y * mean[0] - _expected_rate(mean, covariance) - gammaln(y + 1)

    def curvature(
        self, y: Float[Array, ""], mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> tuple[Float[Array, " J"], Float[Array, "J J"]]:
        rate = _expected_rate(mean, covariance)
        return (y - rate)[None], rate[None, None]

    def first_site(
        self, y: Float[Array, ""], mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> tuple[Float[Array, " J"], Float[Array, "J J"]]:
        """A count far below its predicted rate begins at its own mode."""
        mode = jnp.log(y + 0.5)
        distance = mean[0] + 0.5 * covariance[0, 0] - mode
        gradient, precision = site_at_mode(mode, y + 1.0, distance, mean[0], covariance[0, 0])
        return gradient[None], precision[None, None]


def _expected_rate(mean: Float[Array, " J"], covariance: Float[Array, "J J"]) -> Float[Array, ""]:
    """E_q[exp f] = exp(m + v/2)."""
    return jnp.exp(jnp.minimum(mean[0] + 0.5 * covariance[0, 0], _LARGEST_LOG_RATE))
