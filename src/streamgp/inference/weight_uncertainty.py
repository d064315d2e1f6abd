"""How sure the weights are: what data leave open about the mixing of each channel.

Weights are learned as numbers, but few rows determine them poorly. Given the latent functions, a
channel's rows are a linear regression on them, whose precision is that of the loadings' prior plus
Σ s P E_q[u uᵀ]. What it leaves open is added to predictions,

    Cov[f(x)] += ū(x)ᵀ Cov[ℓ] ū(x),   ū = E_q[u],

so that a channel that has been silent for long is not predicted as if its weights were known.
"""

import numpy as np
from jaxtyping import Float

from streamgp.model.multitask import Channel, MultiTaskGP, Outputs
from streamgp.parameters import Node, Real, unwrap


def open_weights(
    model: MultiTaskGP, stiffness: Float[np.ndarray, "C Q Q"]
) -> tuple[Float[np.ndarray, "_J Q _J Q"], ...]:
    """The covariance of each channel's loadings, given q(u).

    Args:
        model: Still wrapped.
        stiffness: Σ s P E_q[u uᵀ] over all rows, of each pair of latent parameters.
    """
    return tuple(
        _covariance(model.outputs, d, channel.weights, unwrap(channel), stiffness)
        for d, channel in enumerate(model.channels)
    )


def spread_of_weights(
    latents: Float[np.ndarray, "N Q"], own: Float[np.ndarray, "J Q J Q"]
) -> Float[np.ndarray, "R R"]:
    """What is open about the weights of a channel, between all inputs.

    Args:
        latents: E_q[u] at the inputs.
        own: The covariance of the channel's loadings.
    """
    size = len(latents) * len(own)
    left = np.einsum("nq,jqkr,mr->njmk", latents, own, latents, optimize=True)
    return left.reshape(size, size)


def _covariance(
    outputs: Outputs,
    d: int,
    weights: Node,
    plain: Channel,
    stiffness: Float[np.ndarray, "C Q Q"],
) -> Float[np.ndarray, "J Q J Q"]:
    shape = plain.weights.shape
    if not isinstance(weights, Real):  # fixed: there is nothing to be unsure of
        return np.zeros((*shape, *shape))
    precision = np.zeros((shape[0], shape[0], shape[1], shape[1]))
    pairs, j, k = outputs.within[d]
    precision[j, k] = stiffness[pairs]
    precision[k, j] = np.swapaxes(stiffness[pairs], 1, 2)
    flat = precision.transpose(0, 2, 1, 3).reshape(2 * (np.prod(shape),))
    prior = np.repeat(1 / (weights.spread * plain.scale) ** 2, shape[1])
    covariance = np.linalg.inv(flat + np.diag(prior))
    return covariance.reshape(*shape, *shape)
