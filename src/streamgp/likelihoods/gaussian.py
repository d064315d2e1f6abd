"""Gaussian: real numbers with normal noise."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float

from streamgp.likelihoods.base import Likelihood
from streamgp.parameters import Parameter, positive
from streamgp.registry import storable

_TINY = 1e-100


@storable
class Gaussian(Likelihood):
    """Real numbers with normal noise of the same size everywhere.

    y is any real number: y = f + noise, where f is the latent parameter.

    Args:
        noise: The standard deviation of the noise, in the units of y; positive. By default it
            starts at 0.3 times the standard deviation of the channel's first data. It is learned,
            unless it is given as `fixed(…)`.

    Example:
        >>> import streamgp as sgp
        >>> channels = {"indoors": sgp.Gaussian(), "outdoors": sgp.Gaussian(noise=0.5)}
        >>> sgp.ContinualGP(channels).channels
        ('indoors', 'outdoors')
    """

    noise: Parameter = None

    conjugate = True
    log_concave = True

    def distribution(self, f: Float[Array, "*b J"]) -> dist.Distribution:
        return dist.Normal(f[..., 0], self.noise)

    @property
    def support(self) -> Any:
        return dist.constraints.real  # known without a distribution, which takes a while to make

    def start(self, y: Float[np.ndarray, " N"]) -> "Gaussian":
        _, scale = self.location(y)
        return Gaussian(positive(self.noise, 0.3 * scale[0]))

    def location(self, y: Float[np.ndarray, " N"]) -> tuple[np.ndarray, np.ndarray]:
        if not len(y):
            return np.zeros(1), np.ones(1)
        offset, scale = np.mean(y), np.std(y)
        if scale <= max(1e-12 * abs(offset), _TINY):  # one value, or always the same: take its size
            scale = abs(offset) if abs(offset) > 1e-12 else 1.0
        return np.array([offset]), np.array([scale])

    def expected_log_density(
        self, y: Float[Array, ""], mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> Float[Array, ""]:
        return self.log_density(y, mean) - 0.5 * covariance[0, 0] / self.noise**2

    def curvature(
        self, y: Float[Array, ""], mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> tuple[Float[Array, " J"], Float[Array, "J J"]]:
        return (y - mean) / self.noise**2, jnp.eye(1) / self.noise**2

    def log_predictive(
        self, y: Float[Array, ""], mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> Float[Array, ""]:
        return self._predictive(mean, covariance).log_prob(y)

    def predictive_cdf(
        self, y: Float[Array, ""], mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> Float[Array, ""]:
        return self._predictive(mean, covariance).cdf(y)

    def _predictive(
        self, mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> dist.Distribution:
        return dist.Normal(mean[0], jnp.sqrt(covariance[0, 0] + self.noise**2))
