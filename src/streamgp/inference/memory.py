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
from streamgp.inference.conditioning import Marginals
from streamgp.likelihoods import Likelihood
from streamgp.linalg import positive_part
from streamgp.parameters import split


def guarded(model: Generative) -> Float[Array, " T"]:
    """θ as one vector: the trainable parameters of all channels, in order."""
    return ravel_pytree(split(model.channels)[0])[0]


def pull(precision: Float[Array, "T T"], model: Generative, anchor: Generative) -> Float[Array, ""]:
    """½(θ − θ_t)ᵀH(θ − θ_t), the price of leaving what the past settled on."""
    deviation = guarded(model) - guarded(anchor)
    return 0.5 * deviation @ precision @ deviation


def curvature(
    model: Generative,
    batch: Batch,
    precision: Float[Array, "N J J"],
    at_rows: Marginals,
    latent: Marginals,
) -> Float[Array, "T T"]:
    """H of one batch: the positive part of the curvature of −E_q[log p(y|f)] in θ, q(u) fixed.

    In the weights it is the rows' site precision seen through f = W·u, exact for Gaussian channels:
    ½ Σ_n E_q[uᵀ ΔWᵀ P_n ΔW u]. In the likelihoods' own parameters it is the Hessian itself.
    """
    trainable, rest = split(model.channels)
    start, unravel = ravel_pytree(trainable)
    if start.size == 0:
        return jnp.zeros((0, 0))
    before, _ = paramax.unwrap(model).loadings()
    second = latent.covariance + latent.mean[:, :, None] * latent.mean[:, None, :]
    outer = jnp.einsum("njk,nqr->njkqr", precision, second)
    seen = jnp.zeros((len(before), *outer.shape[1:])).at[batch.channel].add(outer)

    def loss(theta: Float[Array, " T"]) -> Float[Array, ""]:
        channels = eqx.combine(unravel(theta), rest)
        plain = paramax.unwrap(eqx.tree_at(lambda m: m.channels, model, channels))
        change = plain.loadings()[0] - before
        weights = 0.5 * jnp.einsum("djq,djkqr,dkr->", change, seen, change)
        return weights - jnp.sum(
            plain.per_row(_own_density, batch, at_rows.mean, at_rows.covariance)
        )

    return positive_part(jax.hessian(loss)(start))


def _own_density(likelihood: Likelihood, *row: Array) -> Float[Array, ""]:
    """The expected log-density, where the likelihood has parameters that could change it."""
    if not jax.tree.leaves(eqx.filter(likelihood, eqx.is_inexact_array)):
        return jnp.zeros(())
    return likelihood.expected_log_density(*row)
