"""NegativeBinomial: counts that vary more than those of a Poisson distribution."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.scipy.special import gammaln
from jaxtyping import Array, Float

from streamgp.likelihoods.base import Likelihood
from streamgp.likelihoods.incomplete import lower_beta
from streamgp.parameters import Parameter, positive
from streamgp.registry import storable

_LARGEST_LOG_MEAN = 60.0


@storable
class NegativeBinomial(Likelihood):
    """Counts that vary more than those of `Poisson`.

    y is a whole number from 0 on. It has mean μ = exp(f) and variance μ + μ²/concentration, where f
    is the latent parameter.

    Args:
        concentration: How close y is to a Poisson distribution; positive. By default it starts
            where half of the variance that the channel's first data have beyond Poisson's is
            noise. It is learned, unless it is given as `fixed(…)`.
    """

    concentration: Parameter = None

    log_concave = True

    def distribution(self, f: Float[Array, "*b J"]) -> dist.Distribution:
        mean = jnp.exp(jnp.clip(f[..., 0], -_LARGEST_LOG_MEAN, _LARGEST_LOG_MEAN))
        return dist.NegativeBinomial2(mean, self.concentration)

    def start(self, y: Float[np.ndarray, " N"]) -> "NegativeBinomial":
        """As in the base class: half of the variance beyond Poisson's is taken for noise."""
        mean, variance = (np.mean(y), np.var(y)) if len(y) else (1.0, 1.0)
        excess = max(variance - mean, 0.0)
        concentration = np.clip(2 * mean**2 / excess, 0.5, 100.0) if excess > 0 else 10.0
        return NegativeBinomial(positive(self.concentration, concentration))

    def location(self, y: Float[np.ndarray, " N"]) -> tuple[np.ndarray, np.ndarray]:
        average = np.mean(y) if len(y) else 1.0
        return np.log(np.array([max(average, 0.1)])), np.ones(1)

    def cdf(self, y: Float[Array, "*b"], f: Float[Array, "*b J"]) -> Float[Array, "*b"]:
        mean = self.distribution(f).mean
        y, k = jnp.broadcast_arrays(y, jnp.floor(jnp.maximum(y, 0.0)))
        r = jnp.broadcast_to(self.concentration, k.shape)
        return jnp.where(y < 0, 0.0, lower_beta(r, k + 1, r / mean))

    def log_density(self, y: Float[Array, ""], f: Float[Array, " J"]) -> Float[Array, ""]:
        r = self.concentration
        y, odds = jnp.maximum(y, 0.0), f[0] - jnp.log(r)  # y may belong to another channel
        ways = gammaln(y + r) - gammaln(r) - gammaln(y + 1)
        return ways + y * odds - (y + r) * jax.nn.softplus(odds)
