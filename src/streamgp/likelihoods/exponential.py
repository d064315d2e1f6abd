"""Waiting times."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from streamgp.likelihoods.gamma import PositiveMean
from streamgp.registry import storable


@storable
class Exponential(PositiveMean):
    """y > 0 has an exponential distribution of mean exp(f)."""

    @property
    def _shape(self) -> Float[Array, ""]:
        return jnp.ones(())
