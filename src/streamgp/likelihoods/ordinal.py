"""One of K classes in order: grades, ratings."""

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

_SPREAD = 3.0  # of the prior of the first cutpoint, in log odds


@storable
class Ordinal(Likelihood):
    """y is a class 0 … K−1, the higher the larger f: P(y ≤ k) = sigmoid(c_k − f).

    The K−1 cutpoints c are learned as `first` and the K−2 `gaps` between them, which are positive,
    so that they stay in order.
    """

    classes: int = eqx.field(static=True)
    first: Parameter = None
    gaps: Parameter = None

    log_concave = True

    def __check_init__(self) -> None:
        check_classes(self.classes)

    @property
    def cutpoints(self) -> Float[Array, " C"]:
        return self.first + jnp.concatenate([jnp.zeros(1), jnp.cumsum(self.gaps)])

    def distribution(self, f: Float[Array, "*b J"]) -> dist.Distribution:
        return dist.OrderedLogistic(f[..., 0], self.cutpoints)

    def start(self, y: Float[np.ndarray, " N"]) -> "Ordinal":
        """With the cutpoints that give every class its share of the first data where f = 0."""
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
                    f"{self.classes - 2} gaps", f"shape {shape}", "Give one a pair of cutpoints."
                )
            )
        return Ordinal(self.classes, first, gaps)

    def moments(self, f: Float[Array, "*b J"]) -> tuple[Array, Array]:
        """Of the K indicators of the classes: the numbers only say their order."""
        probabilities = self.distribution(f).probs
        return probabilities, probabilities * (1 - probabilities)

    def cdf(self, y: Float[Array, "*b"], f: Float[Array, "*b J"]) -> Float[Array, "*b"]:
        k = jnp.clip(jnp.floor(y), 0, self.classes - 2).astype(jnp.int32)
        inside = jax.nn.sigmoid(self.cutpoints[k] - f[..., 0])
        return jnp.where(y < 0, 0.0, jnp.where(y < self.classes - 1, inside, 1.0))

    def log_density(self, y: Float[Array, ""], f: Float[Array, " J"]) -> Float[Array, ""]:
        """In the form that no rounding reaches: for l < u the cutpoints about the class,

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
