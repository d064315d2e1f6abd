"""Lifecycle: how a state begins, meets new channels and learns the scale of its inputs."""

from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
from jaxtyping import Float

from streamgp.data import Rows
from streamgp.inducing.placement import points_of
from streamgp.inducing.slots import inducing
from streamgp.inference import memory, noise
from streamgp.inference.learner import Learner, State
from streamgp.model.initial_scales import spread_of
from streamgp.model.multitask import Generative
from streamgp.model.specification import Specification


def begin(
    specification: Specification,
    learner: Learner,
    x: Float[np.ndarray, "N P"],
    first: Mapping[str, np.ndarray],
) -> State:
    """The state before any data, on the scale of the first batch."""
    model = specification.model(x, next(iter(first.values())))
    no_points = tuple(np.zeros((0, x.shape[1])) for _ in range(sum(specification.draws)))
    return learner.init(model, inducing(no_points))


def introduce(specification: Specification, state: State, first: Mapping[str, np.ndarray]) -> State:
    """Channels take their scale from their first data. No site depends on it yet."""
    channels = tuple(
        specification.channel(name, first[name]) if name in first else channel
        for name, channel in zip(specification.names, state.model.channels, strict=True)
    )
    return eqx.tree_at(lambda s: s.model.channels, state, channels)


def restarted(specification: Specification, state: State, rows: Rows) -> Generative | None:
    """The model with kernels started anew, while all inputs so far were at one place.

    Once inputs have a spread there is nothing to start anew, and the answer is None.
    """
    known = np.concatenate([rows.x[:0], *points_of(state)])
    if not len(known) or spread_of(known).any():
        return None
    kernels = specification.kernels(np.concatenate([known, rows.x]), rows.y)
    return eqx.tree_at(lambda m: m.kernels, state.model, kernels)


def add_channel(specification: Specification, state: State) -> State:
    """The state with a channel for the last name of the specification, which has no memory yet."""
    remembered = state.memory
    if noise.is_exact(state.model):  # so far known exactly, beside the site
        plain = paramax.unwrap(state.model)
        own = noise.expanded(plain, state.site, state.count, state.energy)
        remembered += memory.joined(memory.blank(state.model.kernels), own)
    channel = specification.channel(specification.names[-1], np.zeros(0))
    model = eqx.tree_at(lambda m: m.channels, state.model, (*state.model.channels, channel))
    more = memory.as_vector(model).size - len(remembered.gradient)
    widened = jax.tree.map(lambda leaf: jnp.pad(leaf, (0, more)), remembered)
    return state.replace(model=model, memory=widened)
