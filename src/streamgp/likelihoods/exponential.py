"""Exponential: waiting times."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from streamgp.likelihoods.gamma import PositiveMean
from streamgp.registry import storable


@storable
class Exponential(PositiveMean):
    """Waiting times between events that occur at random.

    y is a positive number. It has an exponential distribution with mean exp(f), where f is the
    latent parameter. There are no other parameters.
    """

    @property
    def _shape(self) -> Float[Array, ""]:
        return jnp.ones(())
