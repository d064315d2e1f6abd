"""Categorical: one of K classes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float

from streamgp.errors import ConfigurationError, problem
from streamgp.likelihoods.base import Likelihood
from streamgp.likelihoods.quadrature import spread
from streamgp.registry import storable


@storable
class Categorical(Likelihood):
    """One of several classes without an order.

    y is a class number from 0 to K − 1, or a label such as "rain". There is one latent parameter
    per class, and the probabilities of the classes are softmax(f).

    Args:
        classes: The number K of classes; at least 2. There is no default. Count every class that
            may occur, also those that the first data do not have.

    Raises:
        ConfigurationError: If `classes` is not a whole number of at least 2.

    Example:
        >>> import streamgp as sgp
        >>> sgp.ContinualGP({"sky": sgp.Categorical(3)}).channels
        ('sky',)
    """

    classes: int = eqx.field(static=True)

    log_concave = True
    ordered = False

    def __check_init__(self) -> None:
        check_classes(self.classes)

    @property
    def latents(self) -> int:
        return self.classes

    def location(self, y: Float[np.ndarray, " N"]) -> tuple[np.ndarray, np.ndarray]:
        counts = np.bincount(y.astype(int), minlength=self.classes) + 1.0
        log_share = np.log(counts / counts.sum())
        return log_share - log_share.mean(), np.ones(self.classes)

    def distribution(self, f: Float[Array, "*b J"]) -> dist.Distribution:
        return dist.Categorical(logits=f)

    def moments(self, f: Float[Array, "*b J"]) -> tuple[Array, Array]:
        """Mean and variance of the K indicators of the classes: class numbers have no mean."""
        probabilities = jax.nn.softmax(f, axis=-1)
        return probabilities, probabilities * (1 - probabilities)

    def log_density(self, y: Float[Array, ""], f: Float[Array, " J"]) -> Float[Array, ""]:
        return jax.nn.log_softmax(f)[y.astype(jnp.int32)]

    def expected_log_density(
        self, y: Float[Array, ""], mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> Float[Array, ""]:
        f, weights = spread(mean, covariance)
        return mean[y.astype(jnp.int32)] - weights @ jax.nn.logsumexp(f, axis=-1)

    def curvature(
        self, y: Float[Array, ""], mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> tuple[Float[Array, " J"], Float[Array, "J J"]]:
        """E[onehot(y) − π] and E[diag(π) − ππᵀ], with π = softmax(f)."""
        f, weights = spread(mean, covariance)
        p = jax.nn.softmax(f, axis=-1)
        average = weights @ p
        gradient = jax.nn.one_hot(y.astype(jnp.int32), self.classes, dtype=mean.dtype) - average
        return gradient, jnp.diag(average) - jnp.einsum("k,kj,ki->ji", weights, p, p)


def check_classes(classes: int) -> None:
    """Raise a `ConfigurationError` if there are not at least two classes."""
    if not (isinstance(classes, int) and classes >= 2):
        raise ConfigurationError(
            problem("at least 2 classes", repr(classes), "Count every class that may occur.")
        )
