"""What a state of kept rows says of channels and latent functions anywhere."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from scipy.linalg import block_diag

from streamgp.inference.components import Parts
from streamgp.inference.dense.state import DenseState
from streamgp.inference.unobserved import unobserved
from streamgp.inference.weight_uncertainty import spread_of_weights
from streamgp.model.composition import Composition

Inputs = Float[np.ndarray, "N P"]
_TOGETHER = 2048  # inputs that are predicted at once: each needs as many numbers as there are rows


def of_channel(
    state: DenseState, x: Inputs, channel: int, *, open_weights: bool
) -> tuple[Float[np.ndarray, "N J"], Float[np.ndarray, "N J J"]]:
    """Mean and covariance of the latent parameters of a channel at each input.

    With `open_weights`, what data leave open about mixing weights is included.
    """
    latents = state.plain.channels[channel].likelihood.latents
    if len(x) > _TOGETHER:
        parts = [
            of_channel(state, x[at : at + _TOGETHER], channel, open_weights=open_weights)
            for at in range(0, len(x), _TOGETHER)
        ]
        means, covariances = zip(*parts, strict=True)
        return np.concatenate(means), np.concatenate(covariances)
    if not len(x):
        return np.zeros((0, latents)), np.zeros((0, latents, latents))
    found = state.marginals(unobserved(state.plain, x, channel))
    mean, covariance = found.mean.reshape(len(x), latents), found.covariance[0]
    if open_weights and (own := state.open_weights[channel]).any():
        means, _ = state.latents(x)
        covariance = covariance + np.einsum("nq,jqkr,nr->njk", means, own, means)
    return mean, covariance


def together(
    state: DenseState, x: Inputs, channels: Sequence[int], *, open_weights: bool
) -> tuple[Float[np.ndarray, " R"], Float[np.ndarray, "R R"]]:
    """Mean and covariance of several channels at all inputs, as `predict_joint` orders them."""
    if not len(x):
        return np.zeros(0), np.zeros((0, 0))
    mean, covariance = state.joint([unobserved(state.plain, x, d) for d in channels])
    if open_weights:
        latents, _ = state.latents(x)
        own = [state.open_weights[channel] for channel in channels]
        covariance = covariance + block_diag(*(spread_of_weights(latents, w) for w in own))
    return mean, covariance


def parts(state: DenseState, x: Inputs, composition: Composition) -> Parts:
    """The parts of latent functions, and the weights of mean functions."""
    factor, centred = state.factor, x - state.plain.origin
    count = len(composition.parts)
    explained = np.empty((count, factor.size, len(x)))
    covariance = np.zeros((len(x), count, count))
    for p, (kernel, q) in enumerate(zip(composition.summands, composition.latent, strict=True)):
        cross = factor.rows.weights[:, q, None] * kernel.matrix(factor.rows.x, centred)
        explained[p] = factor.solve(cross)
        covariance[:, p, p] = kernel.diagonal(centred)
    covariance -= np.einsum("prn,srn->nps", explained, explained)
    weights = state.weights_explained
    return Parts(
        mean=np.einsum("prn,r->np", explained, factor.z),
        covariance=covariance,
        across=-np.einsum("prn,rk->npk", explained, weights),
        weights=weights.T @ factor.z,
        weights_covariance=np.eye(weights.shape[1]) - weights.T @ weights,
    )
