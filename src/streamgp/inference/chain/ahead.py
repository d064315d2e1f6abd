"""What a chain says of times after its last state, without what later data would say of others."""

import numpy as np
from jaxtyping import Float

from streamgp.inference.chain.seen import Seen
from streamgp.inference.chain.state import ChainState
from streamgp.inference.chain.stretch import Pairs
from streamgp.inference.learner import unobserved


def ahead(
    state: ChainState, x: Float[np.ndarray, "N P"], channel: int
) -> tuple[Float[np.ndarray, "N J"], Float[np.ndarray, "N J J"]]:
    """Mean and covariance of the latent parameters of a channel, from the last state alone.

    Args:
        state: With data.
        x: Times after the last of the chain.
        channel: The number of the channel.
    """
    known, model = state.whole.known, state.plain
    size = known.law.size
    last, end = known.links[-1].last, known.links[-1].segment.times[-1]
    pair = Pairs(np.zeros((1, 2 * size, last.mean.shape[2])), np.zeros((1, 2 * size, 2 * size)))
    pair.mean[:, size:], pair.covariance[:, size:, size:] = last
    batch = unobserved(model, x, channel)
    seen = Seen.through(known, model, batch, known.law.beyond(x[:, 0] - end))
    at_rows = seen.marginals_of_one(pair, known.weights)
    latents = model.channels[channel].likelihood.latents
    return at_rows.mean.reshape(len(x), latents), at_rows.covariance[0]
