"""LogNormal: positive numbers with noise in proportion to them."""

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float

from streamgp.likelihoods.base import Likelihood
from streamgp.parameters import Parameter, positive
from streamgp.registry import storable


@storable
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

    def distribution(self, f: Float[Array, "*b J"]) -> dist.Distribution:
        return dist.LogNormal(f[..., 0], self.noise)

    def start(self, y: Float[np.ndarray, " N"]) -> "LogNormal":
        _, scale = self.location(y)
        return LogNormal(positive(self.noise, 0.3 * scale[0]))

    def location(self, y: Float[np.ndarray, " N"]) -> tuple[np.ndarray, np.ndarray]:
        if not len(y):
            return np.zeros(1), np.ones(1)
        offset, scale = np.mean(np.log(y)), np.std(np.log(y))
        return np.array([offset]), np.array([scale if scale > 1e-12 else 1.0])

    def cdf(self, y: Float[Array, "*b"], f: Float[Array, "*b J"]) -> Float[Array, "*b"]:
        return jnp.where(y > 0, self.distribution(f).cdf(_positive(y)), 0.0)

    def log_density(self, y: Float[Array, ""], f: Float[Array, " J"]) -> Float[Array, ""]:
        return self.distribution(f).log_prob(_positive(y))

    def expected_log_density(
        self, y: Float[Array, ""], mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> Float[Array, ""]:
        return self.log_density(y, mean) - 0.5 * covariance[0, 0] / self.noise**2

    def curvature(
        self, y: Float[Array, ""], mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> tuple[Float[Array, " J"], Float[Array, "J J"]]:
        residual = jnp.log(_positive(y)) - mean
        return residual / self.noise**2, jnp.eye(1) / self.noise**2

    def log_predictive(
        self, y: Float[Array, ""], mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> Float[Array, ""]:
        return self._predictive(mean, covariance).log_prob(_positive(y))

    def predictive_cdf(
        self, y: Float[Array, ""], mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> Float[Array, ""]:
        return jnp.where(y > 0, self._predictive(mean, covariance).cdf(_positive(y)), 0.0)

    def _predictive(
        self, mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> dist.Distribution:
        return dist.LogNormal(mean[0], jnp.sqrt(covariance[0, 0] + self.noise**2))


def _positive(y: Float[Array, "*b"]) -> Float[Array, "*b"]:
    """y; or 1 if y is not positive and so belongs to another channel."""
    return jnp.where(y > 0, y, 1.0)
