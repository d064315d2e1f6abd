"""Memory of what sites cannot hold: mixing weights and likelihood parameters (θ).

They appear only in the newest data's term of the bound, so learning them from each batch alone
would forget. The curvature of past terms in θ is summed and pulls θ back to where it was.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import paramax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from streamgp.data import Batch
from streamgp.generative import Generative
from streamgp.linalg import positive_part
from streamgp.parameters import split


def guarded(model: Generative) -> Float[Array, " T"]:
    """θ as one vector: the trainable parameters of all channels, in order."""
    return ravel_pytree(split(model.channels)[0])[0]


def pull(
    precision: Float[Array, "T T"], model: Generative, anchor: Generative
) -> Float[Array, ""]:
    """½(θ − θ_t)ᵀH(θ − θ_t), the price of leaving what the past settled on."""
    deviation = guarded(model) - guarded(anchor)
    return 0.5 * deviation @ precision @ deviation


def curvature(
    model: Generative,
    batch: Batch,
    latent_mean: Float[Array, "N Q"],
    latent_covariance: Float[Array, "N Q Q"],
) -> Float[Array, "T T"]:
    """H of one batch: the positive part of the Hessian of −E_q[log p(y|f)] in θ, q(u) fixed."""
    trainable, rest = split(model.channels)
    start, unravel = ravel_pytree(trainable)

    def loss(theta: Float[Array, " T"]) -> Float[Array, ""]:
        channels = eqx.combine(unravel(theta), rest)
        plain = paramax.unwrap(eqx.tree_at(lambda m: m.channels, model, channels))
        weights, offsets = plain.loadings()
        w = weights[batch.channel]
        mean = offsets[batch.channel] + jnp.einsum("njq,nq->nj", w, latent_mean)
        covariance = jnp.einsum("njq,nqr,nkr->njk", w, latent_covariance, w)
        expected = plain.per_row(
            lambda likelihood, *row: likelihood.expected_log_density(*row), batch, mean, covariance
        )
        return -jnp.sum(expected)

    return positive_part(jax.hessian(loss)(start)) if start.size else jnp.zeros((0, 0))
