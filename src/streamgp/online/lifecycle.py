"""Lifecycle: how a state begins, meets new channels and learns the scale of its inputs."""

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from streamgp.data.axes import Axis, input_names
from streamgp.data.batch import Rows
from streamgp.inference.engine import AnyLearner, AnyState
from streamgp.model.initial_scales import spread_of
from streamgp.model.means.constant import LEVEL
from streamgp.model.multitask import Channel, MultiTaskGP
from streamgp.model.specification import Specification, no_observations
from streamgp.parameters import (
    free_size,
    prior_of,
    recentred,
    replaced,
    unwrap,
    with_free,
)

_MANY = 8  # so many distinct points are never at one place
_MUCH_WIDER = 2.0  # than the priors expect: the ground up to which they stay as they are


def begin(
    specification: Specification,
    learner: AnyLearner,
    x: Float[np.ndarray, "N P"],
    first: Mapping[str, np.ndarray],
    axes: Sequence[Axis] = (),
) -> Any:
    """The state before any data, on the scale of the first batch."""
    model = specification.model(x, next(iter(first.values())), input_names(axes), axes)
    return learner.begin(model, x.shape[1])


def introduce(
    specification: Specification,
    learner: AnyLearner,
    state: AnyState,
    first: Mapping[str, np.ndarray],
    rows: Rows,
    axes: Sequence[Axis] = (),
) -> Any:
    """Channels take their scale, and a start of their weights, from their first data.

    No site depends on it yet.
    """
    channels, ground = [], np.concatenate([rows.x, state.explored])
    for index, (name, channel) in enumerate(
        zip(specification.names, state.model.channels, strict=True)
    ):
        if name in first:
            channel = specification.channel(name, first[name], ground, axes)
            likelihood = channel.likelihood.with_least_noise(learner.least_noise, first[name])
            channel = replaced(channel, likelihood=likelihood)
            if state.count and free_size(channel.weights):
                x = rows.x[rows.channel == index]
                known = learner.latent_means(state, x)
                channel = _with_fitting_weights(known, channel, first[name])
        channels.append(channel)
    return state.replace(model=replaced(state.model, channels=tuple(channels)))


def above_rounding(
    specification: Specification, state: AnyState, first: Mapping[str, np.ndarray], rows: Rows
) -> Any:
    """Noises are no less than the rounding of values, if there are several inputs.

    Few rows over several inputs can be explained one by one, and rows that stand twice with equal
    values then say that there is no noise. Over one input, neighbours tell what noise there is.
    """
    if rows.x.shape[1] == 1 or specification.scale is False:
        return state
    channels = list(state.model.channels)
    for index in np.unique(rows.channel):
        likelihood = channels[index].likelihood
        y = rows.of(index, likelihood.observation_dim)
        above = likelihood.above_rounding(y, first=specification.names[index] in first)
        if above is not likelihood:
            channels[index] = replaced(channels[index], likelihood=above)
    if all(map(operator.is_, channels, state.model.channels)):  # what the state has computed stays
        return state
    return state.replace(model=replaced(state.model, channels=tuple(channels)))


def _with_fitting_weights(
    known: Float[np.ndarray, "N Q"], channel: Channel, y: np.ndarray
) -> Channel:
    """The channel with weights that fit its first data, as far as the latent functions are known.

    One step of ridge regression from the random start: with the means U of the latent functions at
    the rows, and the rows' sites (b, P) at the offset, W ← W + (UᵀPU + I)⁻¹ Uᵀ(b − PUW). From a
    start of the wrong sign, the functions would turn to the new channel and leave the old ones.
    """
    plain = unwrap(channel)
    count, latents = len(known), len(plain.scale)
    offset = np.broadcast_to(plain.offset, (count, latents))
    b, p = plain.likelihood.curvature(y, offset, np.zeros((count, latents, latents)))
    weights = plain.weights.copy()
    for j, scale in enumerate(plain.scale):
        u, own = scale * known, p[:, j, j]
        stiffness = (u.T * own) @ u + np.eye(u.shape[1])
        weights[j] += np.linalg.solve(stiffness, u.T @ (b[:, j] - own * (u @ weights[j])))
    return replaced(channel, weights=with_free(channel.weights, np.ravel(weights)))


def may_restart(state: AnyState) -> bool:
    """Whether inputs so far may all have been at one place."""
    return max(state.sizes) <= _MANY


def restarted(
    specification: Specification, state: AnyState, rows: Rows, axes: Sequence[Axis] = ()
) -> MultiTaskGP | None:
    """The model with kernels started anew, while all inputs so far were at one place.

    Once inputs have a spread there is nothing to start anew, and the answer is None.
    """
    if not may_restart(state):
        return None
    known = np.concatenate([rows.x[:0], state.explored])
    if not len(known) or spread_of(known).any():
        return None
    first = specification.names[int(rows.channel[0])]
    y = rows.of(int(rows.channel[0]), specification.channels[first].observation_dim)
    kernels = specification.kernels(np.concatenate([known, rows.x]), y, input_names(axes))
    return replaced(state.model, kernels=kernels)


def afresh(
    specification: Specification,
    learner: AnyLearner,
    state: AnyState,
    rows: Rows,
    axes: Sequence[Axis] = (),
) -> MultiTaskGP:
    """The model on the scale of some rows, as if they were its first batch.

    Straight lines keep their origin, and levels that are not learned stay where they are. What is
    known of the rounding of values stays too: those that were joined do not tell it.

    Args:
        specification: Of the model.
        learner: Of such states.
        state: The present one.
        rows: All that are kept, and new ones.
        axes: What their input columns are.
    """
    first = {
        name: rows.of(index, likelihood.observation_dim)
        for index, (name, likelihood) in enumerate(specification.channels.items())
        if np.any(rows.channel == index)
    }
    begun = begin(specification, learner, rows.x, first, axes)
    model = introduce(specification, learner, begun, first, rows, axes).model
    channels = []
    for new, old in zip(model.channels, state.model.channels, strict=True):
        new = replaced(new, likelihood=new.likelihood.with_rounding_of(old.likelihood))
        channels.append(new if _has_free_level(new) else replaced(new, offset=old.offset))
    return replaced(model, origin=state.model.origin, channels=tuple(channels))


def _has_free_level(channel: Channel) -> bool:
    """Whether data alone say where the level of a channel is."""
    pairs = zip(channel.mean.labels(()), channel.mean.spreads, strict=True)
    return any(label == LEVEL and spread is None for label, spread in pairs)


def widened(
    specification: Specification, state: Any, rows: Rows, axes: Sequence[Axis] = ()
) -> MultiTaskGP | None:
    """The model with lengthscales on the scale of the ground, if that has grown much.

    The priors of lengthscales come from the spread of the first batch. If later inputs lie far
    beyond it, the priors follow. Over one input the ground grows for as long as the stream goes on,
    and says nothing of lengthscales.
    """
    kernels = state.model.kernels
    if rows.x.shape[1] == 1 or not state.count or not free_size(kernels):
        return None
    ground = np.concatenate([rows.x, state.explored])
    wide, wider = (_centres(specification, x, axes) for x in (ground, 2 * ground))
    centre, _ = prior_of(kernels)
    follows = wider > wide  # lengthscales, if they were not given
    growth = np.where(follows, np.maximum(wide - centre - np.log(_MUCH_WIDER), 0.0), 0.0)
    if not growth.any():
        return None
    return replaced(state.model, kernels=recentred(kernels, growth))


def _centres(
    specification: Specification, x: Float[np.ndarray, "N P"], axes: Sequence[Axis]
) -> Float[np.ndarray, " T"]:
    """The centres of the kernels' priors, were these the first inputs."""
    first = next(iter(specification.channels.values()))
    return prior_of(specification.kernels(x, no_observations(first), input_names(axes)))[0]


def add_channel(specification: Specification, state: AnyState, axes: Sequence[Axis] = ()) -> Any:
    """The state with a channel for the last name of the specification, which has no data yet."""
    name, likelihood = list(specification.channels.items())[-1]
    ground = state.explored
    channel = specification.channel(name, no_observations(likelihood), ground, axes)
    model = replaced(state.model, channels=(*state.model.channels, channel))
    return state.with_channel(model, likelihood.latents)
