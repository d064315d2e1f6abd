"""Joining: a table that has grown beyond its limit, with fewer rows that say nearly the same.

Four neighbouring rows of a channel become two, at the mean of their times plus and minus the
spread, each with half of their count. With their values on the line through the old ones, and the
rest as energy, they say the same wherever f is straight between the old ones:
Σ n_i (y_i − f_i)² = energy + Σ m_k (v_k − f_k)². What is joined is what rows have over the present
posterior mean, so that no known bend of f counts as noise. Rows whose f bends least are joined.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from streamgp.data.batch import Rows
from streamgp.inference.kept import Kept
from streamgp.inference.over_time.following import ended, following
from streamgp.inference.over_time.state import Place, RowState
from streamgp.kernels.state_space import Process
from streamgp.likelihoods import Gaussian

_TOGETHER = 4  # rows that become two
_ROOM = 1.25  # of the limit, up to which a table grows before it is joined


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


def limited(state: RowState, keep: int | None, most_open: int) -> RowState:
    """The state with no more rows than there may be, of channels whose rows can be joined.

    Args:
        state: With all rows.
        keep: The limit; None for none.
        most_open: How many rows of channels that are not conjugate may change as others come.
    """
    while keep is not None and state.size > _ROOM * keep:
        kept, model = state.kept, state.plain
        over = int(np.count_nonzero(_can_be_joined(state)[kept.channel])) - keep
        groups = _groups(state)
        if over <= (_ROOM - 1) * keep or not len(groups.rows):
            return state
        bends = _bends(state, groups)
        strength = np.array([own.likelihood.strength for own in model.channels])
        of_group = strength[kept.channel[groups.rows[:, 0]]]
        losses = of_group * np.sum(kept.count[groups.rows] * bends, axis=1)
        least = np.argsort(losses, kind="stable")[: -(-over // 2)]
        rows = _joined(state, groups.take(least), bends[least])
        state = following(state, 0, rows, ended(state.world, Place(0, None), rows, most_open))
    return state


def _can_be_joined(state: RowState) -> Bool[np.ndarray, " D"]:
    """Of which channels the squares of values add up, and nothing else matters."""
    families = [channel.likelihood for channel in state.plain.channels]
    return np.array([type(own) is Gaussian and own.scales_sites for own in families])


def _groups(state: RowState) -> Four:
    """Neighbouring rows of such channels, four at a time."""
    kept, found = state.kept, [np.zeros((0, _TOGETHER), int)]
    for number in np.flatnonzero(_can_be_joined(state)):
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


def _joined(state: RowState, groups: Four, bends: Float[np.ndarray, "g 4"]) -> Kept:
    """All rows, with two in the place of each of these groups."""
    kept, old = state.kept, groups.rows
    count, channel = kept.count[old], kept.channel[old]
    known, spread = _moments(state, kept.time[old], channel)
    bends = np.minimum(bends, spread)  # what data leave open of them
    rest = kept.y[old, 0] - known
    total = count.sum(axis=1)
    place = 2 * groups.place - 1  # −1 and 1 at the new rows, whose mean is zero and spread one
    level = np.sum(count * rest, axis=1) / total
    slope = np.sum(count * place * rest, axis=1) / total
    left = rest - level[:, None] - slope[:, None] * place
    energy = kept.energy[old].sum(axis=1) + np.sum(count * (left**2 + bends), axis=1)
    values = np.stack([level - slope, level + slope], axis=1)
    values += _moments(state, groups.time, channel[:, :2])[0]
    y = np.full((2 * len(old), kept.y.shape[1]), np.nan)
    y[:, 0] = np.ravel(values)
    new = Rows(np.ravel(groups.time)[:, None], y, np.ravel(channel[:, :2]).astype(int))
    is_left = np.ones(kept.size, bool)
    is_left[np.ravel(old)] = False
    rows, where = kept.take(is_left).in_time(new)
    rows.count[where] = np.repeat(0.5 * total, 2)
    rows.energy[where] = np.repeat(0.5 * energy, 2)
    return rows


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
