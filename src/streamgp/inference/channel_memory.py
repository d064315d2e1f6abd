"""What a batch says of its channels' parameters, for later.

In the weights, f = W·u turns each row's site (its gradient and precision in f) into one on W,
exactly so for Gaussian channels. In the likelihoods' own parameters it is differentiated.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Group
from streamgp.inference import memory
from streamgp.inference.e_step import Setting
from streamgp.inference.memory import Memory, Vector
from streamgp.inference.posterior import Marginals, Posterior
from streamgp.inference.sites import RowSites, times
from streamgp.model.mixing import Projection
from streamgp.model.multitask import Channel, MultiTaskGP, of_groups
from streamgp.numerics.linalg import positive_part
from streamgp.parameters import free_gradient, free_size, free_vector, unwrap, with_free


class Latents(NamedTuple):
    """q(u) at each row: what is known of the latent functions there."""

    mean: Float[np.ndarray, "N Q"]
    covariance: Float[np.ndarray, "N Q Q"]


def expand_channels(
    wrapped: MultiTaskGP,
    setting: Setting,
    projection: Projection,
    rows: RowSites,
    at_rows: Marginals,
    posterior: Posterior,
) -> Memory:
    """The expansion of a batch's expected log-density in the channels' parameters."""
    latents = latents_at_rows(projection, posterior)
    return expand_at(wrapped, setting, rows, at_rows, latents)


def expand_at(
    wrapped: MultiTaskGP,
    setting: Setting,
    rows: RowSites,
    at_rows: Marginals,
    latents: Latents,
) -> Memory:
    """The same, with q(u) at each row given."""
    model, batch = setting.model, setting.batch
    said = [memory.blank(channel) for channel in wrapped.channels]
    # b_g = gradient + P·m_g of every block g.
    centred = at_rows.block_means.mean(axis=-1)
    gradient = rows.linear.mean(axis=-1) - times(batch, rows.precision, centred)
    moments = of_groups(model, batch, at_rows.mean, at_rows.covariance)
    sites = of_groups(model, batch, gradient, rows.precision)
    for (group, _, mean, covariance), (_, _, slope, precision) in zip(moments, sites, strict=True):
        channel = wrapped.channels[group.channel]
        own = _of_likelihood(channel, group, mean, covariance)
        weights = _of_weights(
            channel, model.channels[group.channel], group, slope, precision, latents
        )
        said[group.channel] = memory.joined(own, weights)
    return memory.joined(*said)


def latents_at_rows(projection: Projection, posterior: Posterior) -> Latents:
    """q(u) at each row."""
    values, count = projection.values, len(projection.values)
    means = np.stack(
        [v.T @ m for v, m in zip(values, _split(posterior.mean, values), strict=True)], axis=-1
    )
    covariance = np.zeros((means.shape[0], count, count))
    if len(posterior.mean) == count:
        for q, (v, c) in enumerate(zip(values, posterior.covariance, strict=True)):
            covariance[:, q, q] = np.einsum("mn,mn->n", v, c @ v)
    else:
        ends = np.cumsum([0, *map(len, values)])
        for q, v in enumerate(values):
            reach = posterior.covariance[0][:, ends[q] : ends[q + 1]] @ v
            for r in range(q, count):
                part = np.einsum("mn,mn->n", values[r], reach[ends[r] : ends[r + 1]])
                covariance[:, q, r] = covariance[:, r, q] = part
    diagonal = np.arange(count)
    covariance[:, diagonal, diagonal] += projection.open.T
    return Latents(means, covariance)


def _split(
    mean: tuple[Float[np.ndarray, " _"], ...], values: tuple[Float[np.ndarray, "_ N"], ...]
) -> list[Float[np.ndarray, " _"]]:
    if len(mean) == len(values):
        return list(mean)
    return np.split(mean[0], np.cumsum([len(v) for v in values])[:-1])


def _of_likelihood(
    channel: Channel,
    group: Group,
    mean: Float[np.ndarray, "n J"],
    covariance: Float[np.ndarray, "n J J"],
) -> Memory:
    """The expansion in the likelihood's own parameters."""
    wrapped = channel.likelihood

    def gradient(theta: Vector) -> Vector:
        there = with_free(wrapped, theta)
        by = unwrap(there).expected_parameter_gradient(group.y, mean, covariance)
        return free_gradient(there, by)

    here, hessian = memory.expand(gradient, free_vector(wrapped), central=True)
    return Memory(here, positive_part(-hessian))


def _of_weights(
    channel: Channel,
    plain: Channel,
    group: Group,
    slope: Float[np.ndarray, "n J"],
    precision: Float[np.ndarray, "n J J"],
    latents: Latents,
) -> Memory:
    """The expansion of Σ E_q[log p(y|W·u)] in W.

    With g, P a row's gradient and precision in f, and u ~ N(ū, C): Σ g ūᵀ − P W C and
    Σ P ⊗ E[uuᵀ].
    """
    if not free_size(channel.weights):
        return memory.blank(channel.weights)
    mean, covariance = latents.mean[group.rows], latents.covariance[group.rows]
    spread = precision @ (plain.loadings @ covariance)
    pull = slope.T @ mean - spread.sum(axis=0)
    second = covariance + mean[:, :, None] * mean[:, None, :]
    stiffness = np.einsum("njk,nqr->jqkr", precision, second)
    scale = plain.scale
    gradient = free_gradient(channel.weights, scale[:, None] * pull)
    stiffness = stiffness * scale[:, None, None, None] * scale[None, None, :, None]
    return Memory(gradient, positive_part(stiffness.reshape(pull.size, pull.size)))
