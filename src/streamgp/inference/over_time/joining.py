"""Joining: a table over time that has grown beyond its limit, with fewer rows.

Four neighbouring rows of a channel become two, at the mean of their times plus and minus the
spread, each with half of their count. With their values on the line through the old ones, and the
rest as energy, they say the same wherever f is straight between the old ones:
Σ n_i (y_i − f_i)² = energy + Σ m_k (v_k − f_k)². What is joined is what rows have over the present
posterior mean, so that no known bend of f counts as noise. Rows whose f bends least are joined.

Two neighbouring rows of other families become one, which has their sites and no value.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from streamgp.data.batch import Rows
from streamgp.inference.e_step import exact_sites
from streamgp.inference.kept import (
    ROOM,
    Kept,
    Site,
    adds_up,
    joined,
    joined_as_sites,
    lost_by_joining,
)
from streamgp.inference.over_time.following import ended, following
from streamgp.inference.over_time.state import Place, RowState
from streamgp.inference.over_time.window import Window
from streamgp.inference.unobserved import unobserved
from streamgp.kernels.state_space import Process

_TOGETHER = 4  # rows that become two
_AT_ONCE = 8  # one part in so many rows may go before losses are looked at again


class Four(NamedTuple):
    """Groups of four neighbouring rows of one channel, and what becomes of them.

    Attributes:
        rows: Their numbers.
        place: How far each lies between the two new rows: zero at the first, one at the second.
        time: Of the new rows.
    """

    rows: Int[np.ndarray, "g 4"]
    place: Float[np.ndarray, "g 4"]
    time: Float[np.ndarray, "g 2"]

    @classmethod
    def of(cls, kept: Kept, rows: Int[np.ndarray, "g 4"]) -> "Four":
        """These groups, those of one time left out."""
        time, count = kept.time[rows], kept.count[rows]
        share = count / count.sum(axis=1, keepdims=True)
        centre = np.sum(share * time, axis=1, keepdims=True)
        spread = np.sqrt(np.sum(share * (time - centre) ** 2, axis=1, keepdims=True))
        apart = spread[:, 0] > 0
        rows, time, centre, spread = rows[apart], time[apart], centre[apart], spread[apart]
        new = np.concatenate([centre - spread, centre + spread], axis=1)
        return cls(rows, (time - new[:, :1]) / (2 * spread), new)

    def take(self, which: np.ndarray) -> "Four":
        """Some of them."""
        return Four(*(column[which] for column in self))


class Joins(NamedTuple):
    """Rows that go, row by row of some groups, and those that come for them.

    Attributes:
        old: The numbers of the rows of each group.
        losses: What is lost with each row that there is less, in nats.
        less: How many rows fewer each group makes.
        new: Makes the rows that come in the place of some groups.
    """

    old: Int[np.ndarray, "g k"]
    losses: Float[np.ndarray, " g"]
    less: int
    new: Callable[[np.ndarray], Kept]


def limited(state: RowState, keep: int | None, most_open: int) -> RowState:
    """The state with no more rows than there may be.

    Args:
        state: With all rows.
        keep: The limit; None for none.
        most_open: How many rows of channels that are not conjugate may change as others come.
    """
    if keep is None or state.size <= ROOM * keep:
        return state
    while state.size > keep:
        kinds = [_fours(state), *pairs_of_sites(state)]
        losses = np.concatenate([kind.losses for kind in kinds])
        if not len(losses):
            return state
        less = np.repeat([kind.less for kind in kinds], [len(kind.losses) for kind in kinds])
        order = np.argsort(losses, kind="stable")
        over = min(state.size - keep, max(state.size // _AT_ONCE, 1))
        wanted = order[: 1 + int(np.searchsorted(np.cumsum(less[order]), over))]
        chosen, begin = np.zeros(len(losses), bool), 0
        chosen[wanted] = True
        is_left, new = np.ones(state.size, bool), []
        for kind in kinds:
            own = chosen[begin : begin + len(kind.losses)]
            begin += len(own)
            if own.any():
                is_left[np.ravel(kind.old[own])] = False
                new.append(kind.new(own))
        rows = joined([*new, state.kept.take(is_left)])
        rows = rows.take(np.argsort(rows.time, kind="stable"))
        state = following(state, 0, rows, ended(state.world, Place(0, None), rows, most_open))
    return state


def _fours(state: RowState) -> Joins:
    """Four neighbouring rows of channels whose values add up, and the two that they become."""
    kept, groups = state.kept, _groups(state)
    bends = _bends(state, groups)
    strength = np.array([own.likelihood.strength for own in state.plain.channels])
    of_group = strength[kept.channel[groups.rows[:, 0]]]
    losses = 0.5 * of_group * np.sum(kept.count[groups.rows] * bends, axis=1)
    return Joins(groups.rows, losses, 2, lambda own: _of_fours(state, groups.take(own), bends[own]))


def _groups(state: RowState) -> Four:
    """Neighbouring rows of such channels, four at a time."""
    kept, found = state.kept, [np.zeros((0, _TOGETHER), int)]
    for number in np.flatnonzero(adds_up(state.plain)):
        own = np.flatnonzero(kept.channel == number)
        own = own[: len(own) // _TOGETHER * _TOGETHER]
        found.append(own.reshape(-1, _TOGETHER))
    return Four.of(kept, np.concatenate(found))


def _bends(state: RowState, groups: Four) -> Float[np.ndarray, "g 4"]:
    """Var(f less the line between the new rows) at each old row, before any data.

    It is that of the parts of f that move; of the others, the posterior is sure.
    """
    kept, world = state.kept, state.world
    time = np.concatenate([kept.time[groups.rows], groups.time], axis=1)
    gaps = np.abs(time[:, :, None] - time[:, None, :])
    weights = np.zeros((len(time), _TOGETHER, _TOGETHER + 2))
    weights[:, np.arange(_TOGETHER), np.arange(_TOGETHER)] = 1.0
    weights[:, :, -2], weights[:, :, -1] = groups.place - 1, -groups.place
    total = np.zeros((len(time), _TOGETHER))
    channel = kept.channel[groups.rows[:, 0]]
    for part, latent in zip(world.law.parts, world.law.latent, strict=True):
        if part.driven:
            bend = np.einsum("gij,gjk,gik->gi", weights, _covariance(part, gaps), weights)
            loading = world.loadings[state.plain.outputs.first[channel], latent]
            total += loading[:, None] ** 2 * np.maximum(bend, 0.0)
    return total


def _covariance(part: Process, gaps: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """Over some gaps."""
    distinct, which = np.unique(np.ravel(gaps), return_inverse=True)
    return part.covariances(distinct)[which].reshape(gaps.shape)


def _of_fours(state: RowState, groups: Four, bends: Float[np.ndarray, "g 4"]) -> Kept:
    """Two rows in the place of each of these groups."""
    kept, old = state.kept, groups.rows
    count, channel = kept.count[old], kept.channel[old]
    known, spread = _moments(state, kept.time[old], channel)
    bends = np.minimum(bends, spread)  # what data leave open of them
    likelihoods = [own.likelihood for own in state.plain.channels]
    rest = _each(channel, kept.y[old, 0], [own.summable for own in likelihoods]) - known
    total = count.sum(axis=1)
    place = 2 * groups.place - 1  # −1 and 1 at the new rows, whose mean is zero and spread one
    level = np.sum(count * rest, axis=1) / total
    slope = np.sum(count * place * rest, axis=1) / total
    left = rest - level[:, None] - slope[:, None] * place
    energy = kept.energy[old].sum(axis=1) + np.sum(count * (left**2 + bends), axis=1)
    values = np.stack([level - slope, level + slope], axis=1)
    values += _moments(state, groups.time, channel[:, :2])[0]
    y = np.full((2 * len(old), kept.y.shape[1]), np.nan)
    y[:, 0] = np.ravel(_each(channel[:, :2], values, [own.of_sums for own in likelihoods]))
    new = Rows(np.ravel(groups.time)[:, None], y, np.ravel(channel[:, :2]).astype(int))
    return dataclasses.replace(
        kept.like(new), count=np.repeat(0.5 * total, 2), energy=np.repeat(0.5 * energy, 2)
    )


def _each(
    channel: Int[np.ndarray, "g k"],
    values: Float[np.ndarray, "g k"],
    maps: Sequence[Callable[[np.ndarray], np.ndarray]],
) -> Float[np.ndarray, "g k"]:
    """Values mapped as their channels are."""
    found = np.empty(values.shape)
    for number in np.unique(channel):
        own = channel == number
        found[own] = maps[number](values[own])
    return found


def _moments(
    state: RowState, time: Float[np.ndarray, "g k"], channel: Int[np.ndarray, "g k"]
) -> tuple[Float[np.ndarray, "g k"], Float[np.ndarray, "g k"]]:
    """E[f] and Var[f] at some times of some channels with one latent parameter."""
    flat = np.ravel(time)
    rows = Rows(flat[:, None], np.zeros((len(flat), 1)), np.ravel(channel).astype(int))
    batch = state.plain.batch(rows)
    found = state.marginals(batch)
    variance = np.concatenate([own[:, 0, 0] for own in found.covariance])
    mean, variance = map(batch.as_they_came, (found.mean, variance))
    return mean.reshape(time.shape), variance.reshape(time.shape)


def pairs_of_sites(state: RowState) -> Iterator[Joins]:
    """Two neighbouring rows of each other channel, and the one that they become."""
    kept = state.kept.take(slice(state.closed))
    for number in np.flatnonzero(~adds_up(state.plain)):
        own = np.flatnonzero(kept.channel == number)
        pairs = own[: len(own) // 2 * 2].reshape(-1, 2)
        if len(pairs):
            yield _pairs_of(state, int(number), pairs)


def _pairs_of(state: RowState, channel: int, pairs: Int[np.ndarray, "p 2"]) -> Joins:
    kept, world = state.kept, state.world
    one, other = (_with_sites(state, kept.take(own)) for own in pairs.T)
    gaps = kept.time[pairs[:, 1]] - kept.time[pairs[:, 0]]
    first = state.plain.outputs.first[channel]
    loadings = world.loadings[first : first + one[1][0].shape[1]]
    apart = np.zeros((len(pairs), len(loadings)))  # E[(f − f')²] of what moves, before any data
    for part, latent in zip(world.law.parts, world.law.latent, strict=True):
        if part.driven:
            step = 2 * (_covariance(part, 0 * gaps) - _covariance(part, gaps))
            apart += np.maximum(step, 0.0)[:, None] * loadings[:, latent] ** 2
    losses = lost_by_joining(one[1][1], other[1][1], apart)

    def new(which: np.ndarray) -> Kept:
        rows = [own.take(which) for own, _ in (one, other)]
        sites = [(b[which], p[which]) for _, (b, p) in (one, other)]
        share = rows[0].count / (rows[0].count + rows[1].count)
        x = share[:, None] * rows[0].x + (1 - share)[:, None] * rows[1].x
        means = [
            state.marginals(unobserved(state.plain, at, channel)).centred.reshape(len(x), -1)
            for at in (x, rows[0].x, rows[1].x)
        ]
        return joined_as_sites(x, rows, sites, [own - means[0] for own in means[1:]])

    return Joins(pairs, losses, 1, new)


def _with_sites(state: RowState, rows: Kept) -> tuple[Kept, Site]:
    """Rows of one channel, and their sites."""
    batch = rows.batch(state.plain)
    sites = exact_sites(Window(state.world, batch), rows.sites(batch))
    linear = batch.as_they_came(sites.linear.reshape(rows.size, -1))
    return rows, (linear, batch.as_they_came(np.concatenate(sites.precision)))
