"""Components of a channel: what is known of each summand of its latent parameters.

An engine says what it knows of the parts of the latent functions and of the weights of mean
functions at each input (`Parts`). What follows for a channel is the same for all engines.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.inference.posterior import Posterior
from streamgp.inference.sparse.prior import Prior
from streamgp.model.composition import Composition
from streamgp.model.means.constant import LEVEL
from streamgp.model.multitask import MultiTaskGP
from streamgp.numerics.linalg import solve_lower

Inputs = Float[np.ndarray, "N P"]


class Parts(NamedTuple):
    """q of the parts g of all latent functions at each input, and of the whitened weights β.

    Attributes:
        mean: E[g].
        covariance: Cov[g], what inducing values leave open included.
        across: Cov[g, β].
        weights: E[β], of all latent parameters of all channels.
        weights_covariance: Cov[β].
    """

    mean: Float[np.ndarray, "N p"]
    covariance: Float[np.ndarray, "N p p"]
    across: Float[np.ndarray, "N p K"]
    weights: Float[np.ndarray, " K"]
    weights_covariance: Float[np.ndarray, "K K"]


class Contributions(NamedTuple):
    """Mean and covariance of the components c of each latent parameter j of a channel."""

    mean: Float[np.ndarray, "N J c"]
    covariance: Float[np.ndarray, "N J c c"]


def dense_parts(prior: Prior, posterior: Posterior, x: Inputs, composition: Composition) -> Parts:
    """The parts of latent functions that are known by inducing values.

    A part with kernel k_p has the covariance K_p(x, Z) with u(Z), so that given v = L⁻¹u its mean
    is V_pᵀv, V_p = L⁻¹K_p(Z, x), and two parts of one function keep δ·k_p(x, x) − V_pᵀV_p'.
    """
    centred, count = x - prior.origin, len(composition.parts)
    ends = np.cumsum([0, *prior.sizes])
    size = len(posterior.mean)
    design = np.zeros((count, size, len(x)))
    left = np.zeros((len(x), count, count))
    for p, (kernel, q) in enumerate(zip(composition.summands, composition.latent, strict=True)):
        cross = kernel.matrix(prior.points[q] - prior.origin, centred)
        design[p, ends[q] : ends[q + 1]] = solve_lower(prior.chols[q], cross)
        left[:, p, p] = kernel.diagonal(centred)
    same = np.equal.outer(composition.latent, composition.latent)
    left -= same * np.einsum("psn,rsn->npr", design, design)
    mean, covariance = posterior.mean, posterior.covariance
    bent = np.einsum("st,ptn->psn", covariance, design)
    own, weights = slice(ends[-1]), slice(ends[-1], None)
    return Parts(
        mean=np.einsum("psn,s->np", design, mean),
        covariance=np.einsum("psn,rsn->npr", design[:, own], bent[:, own]) + left,
        across=np.einsum("pkn->npk", bent[:, weights]),
        weights=mean[weights],
        weights_covariance=covariance[weights, weights],
    )


def contributions(
    model: MultiTaskGP,
    composition: Composition,
    x: Inputs,
    parts: Parts,
    open_weights: Float[np.ndarray, "J Q J Q"] | None,
) -> Contributions:
    """What each component adds to the latent parameters of a channel.

    Args:
        model: Plain.
        composition: The channel and its components.
        x: The inputs.
        parts: What is known there.
        open_weights: The covariance of the channel's loadings, if it counts: a component is a
            loading times a function, and gains Cov[w_q, w_r]·E[g_p]·E[g_s].
    """
    channel = model.channels[composition.channel]
    first, width = int(model.outputs.first[composition.channel]), model.basis_size
    values, of_mean = channel.mean(x), composition.of_mean
    member = np.array([[name == own for own in composition.basis] for name in of_mean], float)
    latent = np.array(composition.latent, int)
    cut, total = len(of_mean), len(composition.names)
    mean = np.zeros((len(x), len(channel.offset), total))
    covariance = np.zeros((*mean.shape, total))
    for j, offset in enumerate(channel.offset):
        begin = (first + j) * width
        own = slice(begin, begin + channel.mean.size)
        design = member[None] * (values * channel.spread[j])[:, None, :]  # N c B
        loading = channel.loadings[j, latent]
        mean[:, j, :cut] = design @ parts.weights[own]
        mean[:, j, of_mean.index(LEVEL)] += offset
        mean[:, j, cut:] = parts.mean * loading
        bent = design @ parts.weights_covariance[own, own]
        among = parts.covariance * np.outer(loading, loading)
        if open_weights is not None:
            spread = open_weights[j][:, j][np.ix_(latent, latent)]
            among = among + spread * parts.mean[:, :, None] * parts.mean[:, None, :]
        across = design @ np.swapaxes(parts.across[:, :, own] * loading[:, None], 1, 2)
        covariance[:, j, :cut, :cut] = bent @ np.swapaxes(design, 1, 2)
        covariance[:, j, :cut, cut:] = across
        covariance[:, j, cut:, :cut] = np.swapaxes(across, 1, 2)
        covariance[:, j, cut:, cut:] = among
    return Contributions(mean, covariance)
