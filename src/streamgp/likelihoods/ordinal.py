"""Ordinal: one of K classes in order, such as grades."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import paramax
from jaxtyping import Array, Float
from scipy import special

from streamgp.errors import ConfigurationError, problem
from streamgp.likelihoods.base import Likelihood
from streamgp.likelihoods.categorical import check_classes
from streamgp.parameters import Parameter, Real, positive
from streamgp.registry import storable

_SPREAD = 3.0  # the standard deviation of the prior of the first cutpoint, in log odds


@storable
class Ordinal(Likelihood):
    """One of several classes in order, such as grades or ratings.

    y is a class number from 0 (the lowest) to K − 1 (the highest), or a label of a categorical data
    type. A larger latent parameter f makes higher classes more probable:
    P(y ≤ k) = sigmoid(c_k − f) with K − 1 cutpoints c. They are described by the first of them and
    by the gaps between them, so that they stay in order.

    Args:
        classes: The number K of classes; at least 2. There is no default. Count every class that
            may occur, also those that the first data do not have.
        first: The first cutpoint c_0, in log odds. By default it starts where the lowest class has
            its share of the channel's first data at f = 0. It is learned, unless it is given as
            `fixed(…)`.
        gaps: The K − 2 gaps between neighbouring cutpoints; positive. By default they start where
            the other classes have their shares. They are learned, unless given as `fixed(…)`.

    Raises:
        ConfigurationError: If `classes` is not a whole number of at least 2.

    Example:
        >>> import streamgp as sgp
        >>> sgp.ContinualGP({"grade": sgp.Ordinal(5)}).channels
        ('grade',)
    """

    classes: int = eqx.field(static=True)
    first: Parameter = None
    gaps: Parameter = None

    log_concave = True

    def __check_init__(self) -> None:
        check_classes(self.classes)

    @property
    def cutpoints(self) -> Float[Array, " C"]:
        """The K − 1 cutpoints, in increasing order."""
        return self.first + jnp.concatenate([jnp.zeros(1), jnp.cumsum(self.gaps)])

    def distribution(self, f: Float[Array, "*b J"]) -> dist.Distribution:
        return dist.OrderedLogistic(f[..., 0], self.cutpoints)

    def start(self, y: Float[np.ndarray, " N"]) -> "Ordinal":
        """As in the base class: every class has its share of the first data at f = 0.

        Raises:
            ConfigurationError: If there is another number of gaps than K − 2.
        """
        counts = np.bincount(y.astype(int), minlength=self.classes) + 1.0
        cutpoints = special.logit(np.cumsum(counts)[:-1] / counts.sum())
        first = cutpoints[0] if self.first is None else self.first
        if not isinstance(first, paramax.AbstractUnwrappable):
            first = Real(first, _SPREAD)
        gaps = positive(self.gaps, np.diff(cutpoints))
        shape = np.shape(paramax.unwrap(gaps))
        if shape != (self.classes - 2,):
            raise ConfigurationError(
                problem(
                    f"gaps of shape ({self.classes - 2},)",
                    f"shape {shape}",
                    "Give one per pair of neighbouring cutpoints.",
                )
            )
        return Ordinal(self.classes, first, gaps)

    def moments(self, f: Float[Array, "*b J"]) -> tuple[Array, Array]:
        """Mean and variance of the K indicators of the classes: the numbers are only an order."""
        probabilities = self.distribution(f).probs
        return probabilities, probabilities * (1 - probabilities)

    def cdf(self, y: Float[Array, "*b"], f: Float[Array, "*b J"]) -> Float[Array, "*b"]:
        k = jnp.clip(jnp.floor(y), 0, self.classes - 2).astype(jnp.int32)
        inside = jax.nn.sigmoid(self.cutpoints[k] - f[..., 0])
        return jnp.where(y < 0, 0.0, jnp.where(y < self.classes - 1, inside, 1.0))

    def log_density(self, y: Float[Array, ""], f: Float[Array, " J"]) -> Float[Array, ""]:
        """log p(y | f), in a form without cancellation.

        With l < u the cutpoints on both sides of the class,
        σ(u−f) − σ(l−f) = σ(u−f)·σ(f−l)·(1 − exp(l−u)).
        """
        k = jnp.clip(y, 0, self.classes - 1).astype(jnp.int32)
        has_lower, has_upper = k > 0, k < self.classes - 1
        lower = self.cutpoints[jnp.maximum(k - 1, 0)]
        upper = self.cutpoints[jnp.minimum(k, self.classes - 2)]
        gap = jnp.where(has_lower & has_upper, upper - lower, 1.0)
        return (
            jnp.where(has_upper, jax.nn.log_sigmoid(upper - f[0]), 0.0)
            + jnp.where(has_lower, jax.nn.log_sigmoid(f[0] - lower), 0.0)
            + jnp.where(has_lower & has_upper, jnp.log(-jnp.expm1(-gap)), 0.0)
        )
