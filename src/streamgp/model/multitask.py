"""The model of the data: latent functions, how channels mix them, what channels observe."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree
from tinygp.kernels import Kernel

from streamgp.data import ANY_FAMILYS_VALUE, Batch
from streamgp.likelihoods import Likelihood
from streamgp.parameters import Parameter
from streamgp.registry import storable


class _Centred(Kernel):
    kernel: Kernel
    origin: Float[Array, " P"]

    def evaluate(self, X1: Array, X2: Array) -> Array:  # noqa: N803 (tinygp's names)
        return self.kernel.evaluate(X1 - self.origin, X2 - self.origin)


@storable
class Channel(eqx.Module):
    """One stream of observations: its likelihood and how it mixes the latent functions.

    Latent parameter j is f_j(x) = offset_j + scale_j · Σ_q weights_jq u_q(x).
    """

    likelihood: Likelihood
    weights: Parameter  # (J, Q)
    offset: Parameter  # fixed, (J,)
    scale: Parameter  # fixed, (J,)


@storable
class Generative(eqx.Module):
    """Q latent functions and D channels. `draws[k]` latent functions share `kernels[k]`.

    Inputs are in the user's units everywhere; kernels see them from `origin`, so that inputs far
    from zero (a year, a timestamp) lose no digits.
    """

    kernels: tuple[Kernel, ...]
    channels: tuple[Channel, ...]
    origin: Parameter  # fixed, (P,)
    draws: tuple[int, ...] = eqx.field(static=True)

    @property
    def latent_kernels(self) -> tuple[Kernel, ...]:
        """The kernel of each of the Q latent functions, on inputs in the user's units."""
        shared = [_Centred(kernel, self.origin) for kernel in self.kernels]
        return tuple(k for k, n in zip(shared, self.draws, strict=True) for _ in range(n))

    @property
    def conjugate(self) -> bool:
        """Whether every channel's site is known without iterating."""
        return all(channel.likelihood.conjugate for channel in self.channels)

    @property
    def most_latents(self) -> int:
        """The J that rows are padded to."""
        return max(channel.likelihood.latents for channel in self.channels)

    def loadings(self) -> tuple[Float[Array, "D J Q"], Float[Array, "D J"]]:
        """Mixing weights and offsets of all channels; J is padded with zeros."""

        def pad(a: Array) -> Array:
            return jnp.pad(a, [(0, self.most_latents - len(a))] + [(0, 0)] * (a.ndim - 1))

        weights = [pad(c.scale[:, None] * c.weights) for c in self.channels]
        return jnp.stack(weights), jnp.stack([pad(c.offset) for c in self.channels])

    def latent_precision(self, batch: Batch) -> Float[Array, "Q N"]:
        """How precisely each row observes each latent function, judged at the channels' offsets.

        Exact for Gaussian channels, where it is w²/noise²; the right order for the others.
        """
        weights, offsets = self.loadings()
        mean = offsets[batch.channel]
        zeros = jnp.zeros((*mean.shape, mean.shape[-1]))
        _, precision = self.curvature(batch, mean, zeros)
        w = weights[batch.channel]
        return jnp.einsum("njq,njk,nkq->qn", w, precision, w)

    def curvature(
        self, batch: Batch, mean: Float[Array, "N J"], covariance: Float[Array, "N J J"]
    ) -> tuple[Float[Array, "N J"], Float[Array, "N J J"]]:
        """E_q[∇ log p] and −E_q[∇∇ log p] of every row."""
        return self.per_row(
            lambda likelihood, *row: likelihood.curvature(*row), batch, mean, covariance
        )

    def per_row(
        self,
        method: Callable[..., PyTree],
        batch: Batch,
        mean: Float[Array, "N J"],
        covariance: Float[Array, "N J J"],
    ) -> PyTree:
        """`method(likelihood, y, mean, covariance)` of every row, with that row's likelihood.

        Channels of one family are stacked and evaluated together, so the cost is in the number
        of families, not of channels. Array results are padded to J; padding rows give zeros.
        """
        total: PyTree = None
        for members in families([c.likelihood for c in self.channels]):
            likelihood, belongs = _row_likelihoods(self, members, batch.channel)
            j = self.channels[members[0]].likelihood.latents
            keep = belongs & batch.mask
            row = _harmless(keep, batch.y, mean[:, :j], covariance[:, :j, :j])
            values = jax.vmap(method)(likelihood, *row)
            values = jax.tree.map(lambda v, k=keep: _keep(v, k, self.most_latents), values)
            total = values if total is None else jax.tree.map(jnp.add, total, values)
        return total


def families(likelihoods: Sequence[Likelihood]) -> list[list[int]]:
    """Channel indices grouped by what can be stacked: same family, same static settings."""
    groups: dict = {}
    for index, likelihood in enumerate(likelihoods):
        leaves, structure = jax.tree.flatten(likelihood)
        groups.setdefault((structure, tuple(map(jnp.shape, leaves))), []).append(index)
    return list(groups.values())


def _row_likelihoods(
    model: Generative, members: list[int], channel: Int[Array, " N"]
) -> tuple[Likelihood, Array]:
    """The likelihood of each row as one batched module, and which rows it is meant for."""
    slots = np.full(len(model.channels), -1)
    slots[members] = np.arange(len(members))
    slot = jnp.asarray(slots)[channel]
    stacked = jax.tree.map(
        lambda *leaves: jnp.stack(leaves), *[model.channels[d].likelihood for d in members]
    )
    return jax.tree.map(lambda leaf: leaf[slot], stacked), slot >= 0


def _harmless(
    keep: Bool[Array, " N"],
    y: Float[Array, " N"],
    mean: Float[Array, "N J"],
    covariance: Float[Array, "N J J"],
) -> tuple[Array, Array, Array]:
    """Rows of other families replaced by what every family can be evaluated at.

    Masking the result alone would let their infinities into its derivative.
    """
    return (
        jnp.where(keep, y, ANY_FAMILYS_VALUE),
        jnp.where(keep[:, None], mean, 0.0),
        jnp.where(keep[:, None, None], covariance, jnp.eye(mean.shape[1])),
    )


def _keep(values: Array, keep: Array, latents: int) -> Array:
    """Zero for rows not kept; trailing axes padded to the common number of latents."""
    padded = jnp.pad(values, [(0, 0)] + [(0, latents - n) for n in values.shape[1:]])
    return jnp.where(keep.reshape(-1, *[1] * (values.ndim - 1)), padded, 0.0)
