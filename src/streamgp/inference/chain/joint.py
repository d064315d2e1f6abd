"""What a chain says of several inputs and channels together."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from streamgp.inference.chain.nodes import Nodes
from streamgp.inference.chain.places import Places, places
from streamgp.inference.chain.seen import Seen
from streamgp.inference.chain.state import ChainState
from streamgp.inference.learner import unobserved
from streamgp.model.mixing import open_covariance


def joint(
    state: ChainState, x: Float[np.ndarray, "N P"], channels: Sequence[int]
) -> tuple[Float[np.ndarray, " R"], Float[np.ndarray, "R R"]]:
    """Mean and covariance of R numbers.

    They are in the order of channels, then of inputs, then of latent parameters.
    """
    known, model, found = state.known, state.plain, places(state.known, x[:, 0])
    weights = known.weights
    nodes = Nodes.of(known, found)
    designs, coefficients, offsets = [], [], []
    for channel in channels:
        batch = unobserved(model, x, channel)
        seen = Seen.through(known, model, batch, found.between)
        design, own = nodes.seen(seen, found)
        designs.append(design)
        coefficients.append(own)
        offsets.append(seen.features.offset)
    design, by_g = np.concatenate(designs), np.concatenate(coefficients)
    covariance = design @ nodes.covariance @ design.T
    covariance += by_g[:, 1:] @ weights.covariance @ by_g[:, 1:].T
    covariance += open_covariance(model, channels, _left_open(state, x, found))
    return np.concatenate(offsets) + by_g @ weights.first, covariance


def _left_open(
    state: ChainState, x: Float[np.ndarray, "N P"], found: Places
) -> Float[np.ndarray, "Q N N"]:
    """The covariance of each latent function between inputs that the states leave open.

    Inputs of one interval share it. It is the prior's less what the states at both ends explain.
    """
    known, model = state.known, state.plain
    law, left = known.law, np.zeros((known.law.latents, len(x), len(x)))
    owner = law.owner_of_two
    for k in range(len(found.number)):
        own = np.flatnonzero(found.of_row == k)
        times = known.links[found.number[k]].segment.times[found.which[k] :][:2]
        prior, inputs = law.pair_covariance(*map(float, times)), x[own] - model.origin
        for q, kernel in enumerate(model.latent_kernels):
            design = found.between.design[own] * (owner == q)
            rest = kernel.matrix(inputs, inputs) - design @ prior @ design.T
            np.fill_diagonal(rest, found.between.open[q, own])
            left[q][np.ix_(own, own)] = rest
    return left
