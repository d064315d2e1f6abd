"""What a state of kept rows says of channels and latent functions anywhere, past and future."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from scipy.linalg import block_diag

from streamgp.inference.components import Parts
from streamgp.inference.over_time.state import RowState
from streamgp.inference.over_time.window import Window, seen
from streamgp.inference.unobserved import unobserved
from streamgp.inference.weight_uncertainty import spread_of_weights
from streamgp.model.composition import Composition

Inputs = Float[np.ndarray, "N P"]


def of_channel(
    state: RowState, x: Inputs, channel: int, *, open_weights: bool
) -> tuple[Float[np.ndarray, "N J"], Float[np.ndarray, "N J J"]]:
    """Mean and covariance of the latent parameters of a channel at each input.

    With `open_weights`, what data leave open about mixing weights is included.
    """
    latents = state.plain.channels[channel].likelihood.latents
    if not len(x):
        return np.zeros((0, latents)), np.zeros((0, latents, latents))
    batch = unobserved(state.plain, x, channel)
    if open_weights and (own := state.open_weights[channel]).any():
        at = state.states_at(x[:, 0])
        mean, (covariance,) = seen(batch, state.world.design(batch), at)
        mean = mean + Window(state.world, batch).features.offset
        means = _seen(state, x, at.mean)
        covariance = covariance + np.einsum("nq,jqkr,nr->njk", means, own, means)
    else:
        found = state.marginals(batch)
        mean, (covariance,) = found.mean, found.covariance
    return mean.reshape(len(x), latents), covariance


def together(
    state: RowState, x: Inputs, channels: Sequence[int], *, open_weights: bool
) -> tuple[Float[np.ndarray, " R"], Float[np.ndarray, "R R"]]:
    """Mean and covariance of several channels at all inputs, as `predict_joint` orders them."""
    if not len(x):
        return np.zeros(0), np.zeros((0, 0))
    mean, covariance = state.joint([unobserved(state.plain, x, d) for d in channels])
    if open_weights:
        latents = latent_means(state, x)
        own = [state.open_weights[channel] for channel in channels]
        covariance = covariance + block_diag(*(spread_of_weights(latents, w) for w in own))
    return mean, covariance


def parts(state: RowState, x: Inputs, composition: Composition) -> Parts:
    """The parts of latent functions, and the weights of mean functions."""
    at, weights = state.states_at(x[:, 0]), state.plain.basis_spreads().size
    counts = [len(kernel.state_space() or ()) for kernel in composition.summands]
    owner = tuple(np.repeat(np.arange(len(counts)), counts).tolist())
    readouts = state.world.states.readouts(x[:, 0], owner, len(counts))
    last = slice(state.world.states.size - weights, None)
    bent = readouts @ at.covariance
    return Parts(
        mean=(readouts @ at.mean[:, :, None])[:, :, 0],
        covariance=bent @ np.swapaxes(readouts, 1, 2),
        across=bent[:, :, last],
        weights=at.mean[0, last],
        weights_covariance=at.covariance[0, last, last],
    )


def latent_means(state: RowState, x: Inputs) -> Float[np.ndarray, "N Q"]:
    """E_q[u] of each latent function."""
    return _seen(state, x, state.states_at(x[:, 0]).mean)


def _seen(state: RowState, x: Inputs, mean: Float[np.ndarray, "N d"]) -> Float[np.ndarray, "N Q"]:
    law = state.world.law
    readouts = state.world.states.readouts(x[:, 0], law.latent, law.latents)
    return (readouts @ mean[:, :, None])[:, :, 0]
