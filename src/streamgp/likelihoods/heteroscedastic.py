"""HeteroscedasticGaussian: real numbers with normal noise whose size varies."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float

from streamgp.likelihoods.base import Likelihood, site_at_mode
from streamgp.likelihoods.gaussian import Gaussian
from streamgp.likelihoods.quadrature import spread
from streamgp.registry import storable

_LARGEST_LOG = 200.0  # of a precision; the exponential of larger values is clipped


@storable
class HeteroscedasticGaussian(Likelihood):
    """Real numbers with normal noise whose size depends on the inputs.

    y is any real number. There are two latent parameters, which both vary over the inputs: y has
    mean f₀ and standard deviation exp(f₁). There are no other parameters.
    """

    @property
    def latents(self) -> int:
        return 2

    def distribution(self, f: Float[Array, "*b J"]) -> dist.Distribution:
        return dist.Normal(f[..., 0], _deviation(f[..., 1]))

    def location(self, y: Float[np.ndarray, " N"]) -> tuple[np.ndarray, np.ndarray]:
        offset, scale = Gaussian().location(y)
        return np.append(offset, np.log(0.3 * scale)), np.append(scale, 1.0)

    def expected_log_density(
        self, y: Float[Array, ""], mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> Float[Array, ""]:
        weight, _, square = _weighted(y, mean, covariance)
        return -0.5 * np.log(2 * np.pi) - mean[1] - 0.5 * weight * square

    def curvature(
        self, y: Float[Array, ""], mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> tuple[Float[Array, " J"], Float[Array, "J J"]]:
        """As in the base class, with another way to make the precision positive semi-definite.

        The off-diagonal element of the Hessian is reduced just as far as needed. Unlike the nearest
        positive semi-definite matrix, this does not depend on units and keeps the diagonal. Over
        many rows the off-diagonal elements cancel and the diagonals add up.
        """
        weight, residual, square = _weighted(y, mean, covariance)
        gradient = jnp.stack([weight * residual, weight * square - 1])
        largest = jnp.sqrt(2 * square)
        cross = jnp.clip(2 * residual, -largest, largest)
        return gradient, weight * jnp.array([[1.0, cross], [cross, 2 * square]])

    def first_site(
        self, y: Float[Array, ""], mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> tuple[Float[Array, " J"], Float[Array, "J J"]]:
        """A residual far above its predicted size begins with noise of its own size."""
        mode = 0.5 * jnp.log((y - mean[0]) ** 2 + covariance[0, 0] + 1e-300)
        distance = 2 * (mode - mean[1] + covariance[1, 1])
        gradient, precision = site_at_mode(
            mode, jnp.asarray(2.0), distance, mean[1], covariance[1, 1]
        )
        return jnp.zeros(2).at[1].set(gradient), jnp.zeros((2, 2)).at[1, 1].set(precision)

    def log_predictive(
        self, y: Float[Array, ""], mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> Float[Array, ""]:
        given, weights = _given_noise(mean, covariance)
        return jax.nn.logsumexp(given.log_prob(y), b=weights)

    def predictive_cdf(
        self, y: Float[Array, ""], mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> Float[Array, ""]:
        given, weights = _given_noise(mean, covariance)
        return jnp.dot(weights, given.cdf(y))


def _deviation(f: Float[Array, "*b"]) -> Float[Array, "*b"]:
    return jnp.exp(jnp.clip(f, -0.5 * _LARGEST_LOG, 0.5 * _LARGEST_LOG))


def _weighted(
    y: Float[Array, ""], mean: Float[Array, " J"], covariance: Float[Array, "J J"]
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """w = E_q[exp(−2f₁)], and the means of r = y − f₀ and r² under q weighted by exp(−2f₁).

    Weighting a normal by an exponential shifts it: E[f₀] by −2·Cov(f₀, f₁).
    """
    weight = jnp.exp(jnp.minimum(2 * (covariance[1, 1] - mean[1]), _LARGEST_LOG))
    residual = y - mean[0] + 2 * covariance[0, 1]
    return weight, residual, residual**2 + covariance[0, 0]


def _given_noise(
    mean: Float[Array, " J"], covariance: Float[Array, "J J"]
) -> tuple[dist.Distribution, np.ndarray]:
    """y given f₁ at each node, with f₀ integrated out; and the weights of the nodes."""
    f, weights = spread(mean[1:], covariance[1:, 1:], fine=True)
    slope = covariance[0, 1] / (covariance[1, 1] + 1e-300)
    left = jnp.maximum(covariance[0, 0] - slope * covariance[0, 1], 0.0)
    centre = mean[0] + slope * (f[:, 0] - mean[1])
    return dist.Normal(centre, jnp.sqrt(left + _deviation(f[:, 0]) ** 2)), weights
