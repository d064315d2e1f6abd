"""Gamma: positive numbers whose spread is in proportion to their mean."""

from abc import abstractmethod

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.scipy.special import gammaln
from jaxtyping import Array, Float

from streamgp.likelihoods.base import Likelihood, site_at_mode
from streamgp.parameters import Parameter, positive
from streamgp.registry import storable

_LARGEST_LOG = 200.0  # the mean stays within exp(±200), whatever the units
_LARGEST_LOG_RATIO = 60.0  # the exponential of larger values is clipped


class PositiveMean(Likelihood):
    """What `Gamma` and `Exponential` share: a gamma distribution with mean exp(f).

    With k the shape, log p(y | f) = −k·(f + y·exp(−f)), up to a term that does not depend on f.
    """

    log_concave = True

    @property
    @abstractmethod
    def _shape(self) -> Float[Array, ""]:
        """The shape k."""

    def distribution(self, f: Float[Array, "*b J"]) -> dist.Distribution:
        f = jnp.clip(f[..., 0], -_LARGEST_LOG, _LARGEST_LOG)
        return dist.Gamma(self._shape, self._shape * jnp.exp(-f))

    def location(self, y: Float[np.ndarray, " N"]) -> tuple[np.ndarray, np.ndarray]:
        return np.log(np.array([np.mean(y) if len(y) else 1.0])), np.ones(1)

    def cdf(self, y: Float[Array, "*b"], f: Float[Array, "*b J"]) -> Float[Array, "*b"]:
        return self.distribution(f).cdf(jnp.maximum(y, 0.0))

    def log_density(self, y: Float[Array, ""], f: Float[Array, " J"]) -> Float[Array, ""]:
        return self.expected_log_density(y, f, jnp.zeros((1, 1)))

    def expected_log_density(
        self, y: Float[Array, ""], mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> Float[Array, ""]:
        k = self._shape
        tilt = mean[0] - _log(y) + _expected_ratio(y, mean, covariance)
        return k * jnp.log(k) - gammaln(k) - _log(y) - k * tilt

    def curvature(
        self, y: Float[Array, ""], mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> tuple[Float[Array, " J"], Float[Array, "J J"]]:
        ratio = _expected_ratio(y, mean, covariance)
        return (self._shape * (ratio - 1))[None], (self._shape * ratio)[None, None]

    def first_site(
        self, y: Float[Array, ""], mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> tuple[Float[Array, " J"], Float[Array, "J J"]]:
        """An observation far above its predicted mean begins at its own mode."""
        mode, variance = _log(y), covariance[0, 0]
        distance = mode - mean[0] + 0.5 * variance
        gradient, precision = site_at_mode(mode, self._shape, distance, mean[0], variance)
        return gradient[None], precision[None, None]


@storable
class Gamma(PositiveMean):
    """Positive numbers whose spread is in proportion to their mean.

    y is a positive number. It has a gamma distribution with mean exp(f) and standard deviation
    exp(f)/√shape, where f is the latent parameter.

    Args:
        shape: How closely y follows its mean; positive. By default it starts where half of the
            variance of the channel's first data is noise. It is learned, unless it is given as
            `fixed(…)`.

    Example:
        >>> import streamgp as sgp
        >>> sgp.ContinualGP({"load": sgp.Gamma(shape=sgp.fixed(2.0))}).channels
        ('load',)
    """

    shape: Parameter = None

    @property
    def _shape(self) -> Float[Array, ""]:
        return self.shape

    def start(self, y: Float[np.ndarray, " N"]) -> "Gamma":
        """As in the base class: half of the variance of the first data is taken for noise."""
        variance = np.var(y) if len(y) else 0.0
        shape = np.clip(2 * np.mean(y) ** 2 / variance, 0.5, 100.0) if variance > 0 else 2.0
        return Gamma(positive(self.shape, shape))


def _log(y: Float[Array, ""]) -> Float[Array, ""]:
    """log y; finite if y belongs to another channel."""
    return jnp.log(jnp.where(y > 0, y, 1.0))


def _expected_ratio(
    y: Float[Array, ""], mean: Float[Array, " J"], covariance: Float[Array, "J J"]
) -> Float[Array, ""]:
    """E_q[y·exp(−f)]."""
    return jnp.exp(jnp.minimum(_log(y) - mean[0] + 0.5 * covariance[0, 0], _LARGEST_LOG_RATIO))
