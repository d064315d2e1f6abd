"""Memory of what sites cannot hold: how past data depend on the hyperparameters.

A site is a function of the inducing values alone. But past data also spoke of the mixing weights
and likelihood parameters, and of the kernels, which say how inducing values extend to where the
data were. Those terms appear only in the newest data's part of the bound, so learning from each
batch alone would forget them. Their second-order expansion, with q(u) as it was, is kept instead:

    Σ_past E_q[log p(y|f)] ≈ gᵀ(θ − θ_t) − ½(θ − θ_t)ᵀH(θ − θ_t),   H ⪰ 0.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
from jax.flatten_util import ravel_pytree
from jax.scipy.linalg import block_diag
from jaxtyping import Array, Float, PyTree

from streamgp.data import Batch
from streamgp.inference.conditioning import Marginals
from streamgp.inference.sites import RowSites
from streamgp.likelihoods import Likelihood
from streamgp.model.multitask import Generative
from streamgp.numerics.linalg import eigh, positive_part, symmetric
from streamgp.parameters import split
from streamgp.registry import storable

_DIFFERENCE = 1e-4  # in log units


@storable
class Memory(eqx.Module):
    """The expansion's g and H, around the hyperparameters of the state it belongs to."""

    gradient: Float[Array, " T"]
    precision: Float[Array, "T T"]

    def value(self, model: Generative, anchor: Generative) -> Float[Array, ""]:
        """What the past says of these hyperparameters, relative to the anchor."""
        step = as_vector(model) - as_vector(anchor)
        return self.gradient @ step - 0.5 * step @ self.precision @ step

    def recentred(self, model: Generative, anchor: Generative) -> "Memory":
        """The same expansion around other hyperparameters."""
        step = as_vector(model) - as_vector(anchor)
        return Memory(self.gradient - self.precision @ step, self.precision)

    def __add__(self, other: "Memory") -> "Memory":
        return Memory(self.gradient + other.gradient, self.precision + other.precision)


def blank(part: PyTree) -> Memory:
    """The memory of no data, for a model or a part of one."""
    size = trainable_size(part)
    return Memory(jnp.asarray(np.zeros(size)), jnp.asarray(np.zeros((size, size))))


def as_vector(model: Generative) -> Float[Array, " T"]:
    """The trainable hyperparameters as one vector: kernels first, then channel by channel."""
    return ravel_pytree(split(model)[0])[0]


def heard(memory: Memory, model: Generative) -> Float[Array, " D"]:
    """How much the past said of each channel's parameters; zero for a channel without data."""
    diagonal, sums, begin = jnp.diag(memory.precision), [], trainable_size(model.kernels)
    for channel in model.channels:
        end = begin + trainable_size(channel)
        sums.append(jnp.sum(diagonal[begin:end]))
        begin = end
    return jnp.stack(sums)


def trainable_size(part: PyTree) -> int:
    """How many trainable numbers a part of the model has."""
    return sum(leaf.size for leaf in jax.tree.leaves(split(part)[0]))


def expand_kernels(expected: Callable[[Generative], Float[Array, ""]], model: Generative) -> Memory:
    """The expansion of a batch's expected log-density in the kernels' parameters.

    Second derivatives are differences of gradients: exact ones would make up most of the program,
    and the parameters are few and in log units. Directions of the wrong curvature keep its size
    with the right sign, so that the gradient cannot carry hyperparameters off along them.
    """
    trainable, rest = split(model.kernels)
    start, unravel = ravel_pytree(trainable)
    size = start.size
    if size == 0:
        return Memory(start, jnp.zeros((0, 0)))

    def value(theta: Float[Array, " T"]) -> Float[Array, ""]:
        kernels = eqx.combine(unravel(theta), rest)
        return expected(eqx.tree_at(lambda m: m.kernels, model, kernels))

    steps = _DIFFERENCE * jnp.concatenate([jnp.zeros((1, size)), jnp.eye(size)])
    gradients = jax.lax.map(jax.grad(value), start + steps)
    hessian = (gradients[1:] - gradients[0]) / _DIFFERENCE
    curvature, vectors = eigh(symmetric(hessian))
    return Memory(gradients[0], (vectors * jnp.abs(curvature)) @ vectors.T)


def expand_channels(
    model: Generative, batch: Batch, rows: RowSites, at_rows: Marginals, latent: Marginals
) -> Memory:
    """The expansion of a batch's expected log-density in the channels' parameters.

    In the weights, f = W·u turns each row's site (its gradient and precision in f) into one on W,
    exactly so for Gaussian channels. In the likelihoods' own parameters it is differentiated.
    """
    trainable, rest = split(model.channels)
    start, unravel = ravel_pytree(trainable)
    if start.size == 0:
        return Memory(start, jnp.zeros((0, 0)))
    before, _ = paramax.unwrap(model).loadings()
    pull, stiffness = _weight_sites(before, batch, rows, at_rows, latent)

    def value(theta: Float[Array, " T"]) -> Float[Array, ""]:
        channels = eqx.combine(unravel(theta), rest)
        plain = paramax.unwrap(eqx.tree_at(lambda m: m.channels, model, channels))
        change = plain.loadings()[0] - before
        quadratic = jnp.einsum("djq,djkqr,dkr->", change, stiffness, change)
        own = plain.per_row(_own_density, batch, at_rows.mean, at_rows.covariance)
        return jnp.sum(pull * change) - 0.5 * quadratic + jnp.sum(own)

    return Memory(jax.grad(value)(start), positive_part(-jax.hessian(value)(start)))


def _weight_sites(
    weights: Float[Array, "D J Q"],
    batch: Batch,
    rows: RowSites,
    at_rows: Marginals,
    latent: Marginals,
) -> tuple[Float[Array, "D J Q"], Float[Array, "D J J Q Q"]]:
    """Gradient and curvature of Σ E_q[log p(y|W·u)] in W, by channel.

    With g, P a row's gradient and precision in f, and u ~ N(ū, C): Σ g ūᵀ − P W C and
    Σ P ⊗ E[uuᵀ].
    """
    # b_g = g + P·m_g of every block g.
    centred = jnp.mean(at_rows.block_means, axis=-1)
    gradient = jnp.mean(rows.linear, axis=-1)
    gradient = gradient - jnp.einsum("njk,nk->nj", rows.precision, centred)
    w = weights[batch.channel]
    spread = jnp.einsum("njk,nkq,nqr->njr", rows.precision, w, latent.covariance)
    pull = gradient[:, :, None] * latent.mean[:, None, :] - spread
    second = latent.covariance + latent.mean[:, :, None] * latent.mean[:, None, :]
    outer = jnp.einsum("njk,nqr->njkqr", rows.precision, second)
    zeros = jnp.zeros((len(weights), *outer.shape[1:]))
    return (
        jnp.zeros_like(weights).at[batch.channel].add(pull),
        zeros.at[batch.channel].add(outer),
    )


def _own_density(likelihood: Likelihood, *row: Array) -> Float[Array, ""]:
    """The expected log-density, where the likelihood has parameters that could change it."""
    if not jax.tree.leaves(eqx.filter(likelihood, eqx.is_inexact_array)):
        return jnp.zeros(())
    return likelihood.expected_log_density(*row)


def joined(kernels: Memory, channels: Memory) -> Memory:
    """The memory of all hyperparameters, kernels first, as `as_vector` has them."""
    return Memory(
        jnp.concatenate([kernels.gradient, channels.gradient]),
        block_diag(kernels.precision, channels.precision),
    )
