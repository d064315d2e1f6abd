"""One of K classes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Float

from streamgp.likelihoods.base import Likelihood


class Categorical(Likelihood):
    """y is a class 0 … K−1 with probabilities softmax(f): one latent parameter a class."""

    classes: int = eqx.field(static=True)

    log_concave = True

    def __check_init__(self) -> None:
        if self.classes < 2:
            raise ValueError(f"expected at least 2 classes; got {self.classes}.")

    @property
    def latents(self) -> int:
        return self.classes

    def distribution(self, f: Float[Array, "*b J"]) -> dist.Distribution:
        return dist.Categorical(logits=f)

    def moments(self, f: Float[Array, "*b J"]) -> tuple[Array, Array]:
        """Of the K indicators of the classes: a class number has no mean."""
        probabilities = jax.nn.softmax(f, axis=-1)
        return probabilities, probabilities * (1 - probabilities)

    def log_density(self, y: Float[Array, ""], f: Float[Array, " J"]) -> Float[Array, ""]:
        return jax.nn.log_softmax(f)[y.astype(jnp.int32)]
