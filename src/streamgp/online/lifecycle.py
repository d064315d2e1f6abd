"""Lifecycle: how a state begins, meets new channels and learns the scale of its inputs."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from streamgp.data.axes import Axis, input_names
from streamgp.data.batch import Rows
from streamgp.inference.learner import Learner
from streamgp.inference.memory import Memory
from streamgp.inference.sites import Site
from streamgp.inference.state import State
from streamgp.model.initial_scales import spread_of
from streamgp.model.multitask import MultiTaskGP
from streamgp.model.specification import Specification, no_observations
from streamgp.parameters import free_size, replaced, unwrap

_MANY = 8  # so many distinct points are never at one place


def begin(
    specification: Specification,
    learner: Learner,
    x: Float[np.ndarray, "N P"],
    first: Mapping[str, np.ndarray],
    axes: Sequence[Axis] = (),
) -> State:
    """The state before any data, on the scale of the first batch."""
    model = specification.model(x, next(iter(first.values())), input_names(axes))
    no_points = tuple(np.zeros((0, x.shape[1])) for _ in range(sum(specification.draws)))
    return learner.init(model, no_points)


def introduce(specification: Specification, state: State, first: Mapping[str, np.ndarray]) -> State:
    """Channels take their scale from their first data. No site depends on it yet."""
    channels = tuple(
        specification.channel(name, first[name]) if name in first else channel
        for name, channel in zip(specification.names, state.model.channels, strict=True)
    )
    return state.replace(model=replaced(state.model, channels=channels))


def restarted(
    specification: Specification, state: State, rows: Rows, axes: Sequence[Axis] = ()
) -> MultiTaskGP | None:
    """The model with kernels started anew, while all inputs so far were at one place.

    Once inputs have a spread there is nothing to start anew, and the answer is None.
    """
    if max(map(len, state.points)) > _MANY:
        return None
    known = np.concatenate([rows.x[:0], *state.points])
    if not len(known) or spread_of(known).any():
        return None
    first = specification.names[int(rows.channel[0])]
    y = rows.of(int(rows.channel[0]), specification.channels[first].observation_dim)
    kernels = specification.kernels(np.concatenate([known, rows.x]), y, input_names(axes))
    return replaced(state.model, kernels=kernels)


def add_channel(specification: Specification, state: State) -> State:
    """The state with a channel for the last name of the specification, which has no memory yet."""
    name, likelihood = list(specification.channels.items())[-1]
    channel = specification.channel(name, no_observations(likelihood))
    model = replaced(state.model, channels=(*state.model.channels, channel))
    more = free_size(channel)
    remembered = Memory(
        np.pad(state.memory.gradient, (0, more)), np.pad(state.memory.precision, (0, more))
    )
    merged = state.merged
    if merged is not None:
        merged = _widened(merged, state.plain.basis_spreads().shape, unwrap(model).basis_spreads())
    return state.replace(
        model=model,
        past=state.past.with_channel(likelihood.latents, model.basis_size),
        memory=remembered,
        heard=np.append(state.heard, 0.0),
        merged=merged,
    )


def _widened(site: Site, old: tuple[int, int], new: np.ndarray) -> Site:
    """The site with room for the mean weights of a further channel, of which it says nothing."""
    *linear, last = site.linear
    *precision, square = site.precision
    begin = len(last) - old[0] * old[1]
    weights = np.arange(new.size).reshape(new.shape)[: old[0], : old[1]]
    places = np.concatenate([np.arange(begin), begin + weights.ravel()])
    wider = np.zeros(begin + new.size)
    wide = np.zeros((len(wider), len(wider)))
    wider[places], wide[np.ix_(places, places)] = last, square
    return Site((*linear, wider), (*precision, wide))
