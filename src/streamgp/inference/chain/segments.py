"""What past data said, interval by interval, by channel and before mixing.

A row inside an interval sees the states at its two ends through `Between.design`, and its channel's
mean functions h(x): together its features φ. With the row's site (b, P) on its latent parameters,
an interval keeps Σ b[j] φ and Σ P[j, k] φφᵀ of each latent parameter and each pair of them. This is
`past` for chains: weights, noises and levels that are learned later reinterpret all of it.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from streamgp.inference.chain.law import Bridge
from streamgp.registry import storable

SIZE = 128  # intervals of a segment, once there are so many


@functools.lru_cache(maxsize=64)
def triangle(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where the upper triangle of a matrix is, and which of its entries each entry equals."""
    rows, columns = np.triu_indices(size)
    place = np.zeros((size, size), int)
    place[rows, columns] = place[columns, rows] = np.arange(len(rows))
    return rows, columns, place


class Sums(NamedTuple):
    """What data said, by interval: see `Segment`."""

    linear: Float[np.ndarray, "n O S"]
    precision: Float[np.ndarray, "n C T"]


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Segment:
    """Consecutive intervals of a chain. No array is ever changed.

    Attributes:
        times: Where they begin and, last, where the last one ends.
        linear: Σ b φ of each latent parameter, by interval.
        precision: The upper triangle of Σ P φφᵀ of each pair of latent parameters, by interval.
    """

    times: Float[np.ndarray, " ends"]
    linear: Float[np.ndarray, "n O S"]
    precision: Float[np.ndarray, "n C T"]

    @classmethod
    def blank(
        cls, times: Float[np.ndarray, " ends"], outputs: int, pairs: int, features: int
    ) -> "Segment":
        """Intervals without data."""
        count, entries = len(times) - 1, features * (features + 1) // 2
        return cls(times, np.zeros((count, outputs, features)), np.zeros((count, pairs, entries)))

    @property
    def sums(self) -> Sums:
        """What data said."""
        return Sums(self.linear, self.precision)

    @property
    def count(self) -> int:
        """How many intervals there are."""
        return len(self.linear)

    @property
    def has_data(self) -> bool:
        """Whether data said anything."""
        return bool(self.precision.any() or self.linear.any())

    @property
    def features(self) -> int:
        """How many numbers φ has."""
        return self.linear.shape[2]

    def can_split(self, states: int) -> Bool[np.ndarray, " n"]:
        """Which intervals have no data but at their ends, so that their two states are apart.

        Args:
            states: d, how many numbers a state has.
        """
        across = np.ravel(triangle(self.features)[2][:states, states : 2 * states])
        return np.logical_not(self.precision[:, :, across].any(axis=(1, 2)))

    def __getitem__(self, which: slice) -> "Segment":
        """Some consecutive intervals."""
        begin, end, _ = which.indices(self.count)
        return Segment(self.times[begin : end + 1], self.linear[which], self.precision[which])

    def scaled(self, part: float) -> "Segment":
        """The same with that part of its say."""
        return Segment(self.times, part * self.linear, part * self.precision)

    def place(self, x: Float[np.ndarray, " N"]) -> Int[np.ndarray, " N"]:
        """The interval that each x lies in; of those beyond the ends, the nearest."""
        place = self.times.searchsorted(x, side="right") - 1
        return np.minimum(np.maximum(place, 0), self.count - 1)

    def with_rows(self, said: "Sequence[GroupSums]") -> "Segment":
        """The same with what rows said added."""
        linear, precision = self.linear.copy(), self.precision.copy()
        for group in said:
            linear[group.where, group.outputs] += group.linear
            precision[group.where, group.pairs] += group.precision
        return Segment(self.times, linear, precision)

    def with_channel(self, latents: int, states: int, basis: int) -> "Segment":
        """The same with a further channel, of which nothing is known.

        Args:
            latents: The number of its latent parameters.
            states: How many features are those of states.
            basis: How many mean functions there are now, the new channel's included.
        """
        pairs, more = latents * (latents + 1) // 2, states + basis - self.features
        linear = np.pad(self.linear, ((0, 0), (0, latents), (0, more)))
        size = states + basis
        rows, columns, _ = triangle(self.features)
        wide = np.zeros((self.count, self.precision.shape[1] + pairs, size * (size + 1) // 2))
        wide[:, : self.precision.shape[1], triangle(size)[2][rows, columns]] = self.precision
        return Segment(self.times, linear, wide)

    def split(self, times: Float[np.ndarray, " m"], states: int) -> "Segment":
        """The same with further times, all of them inside intervals that can be split.

        What was said of the first state of an interval, and of mean functions alone, goes to its
        first piece, and what was said of its last state to the last.
        """
        every = np.unique(np.concatenate([self.times, times]))
        source = self.place(0.5 * (every[1:] + every[:-1]))
        first = np.concatenate([[True], source[1:] != source[:-1]])
        last = np.concatenate([source[1:] != source[:-1], [True]])
        linear, precision = self.linear[source], self.precision[source]
        number, rows, columns = np.arange(self.features), *triangle(self.features)[:2]
        of_last = (number >= states) & (number < 2 * states)
        linear *= np.where(of_last, last[:, None], first[:, None])[:, None, :]
        of_last = of_last[rows] | of_last[columns]
        precision *= np.where(of_last, last[:, None], first[:, None])[:, None, :]
        return Segment(every, linear, precision)


class GroupSums(NamedTuple):
    """What the rows of one channel said, summed by interval.

    Attributes:
        where: The intervals, each once.
        outputs: The latent parameters of the channel.
        pairs: The pairs of them.
        linear: By interval and latent parameter.
        precision: By interval and pair, the upper triangle.
    """

    where: Int[np.ndarray, " m"]
    outputs: slice
    pairs: slice
    linear: Float[np.ndarray, "m J S"]
    precision: Float[np.ndarray, "m c T"]


class ByInterval(NamedTuple):
    """Rows grouped by the interval that they lie in.

    Attributes:
        where: The intervals, each once.
        begin: Where the rows of each interval begin, once they are in order.
        order: Puts rows in that order.
    """

    where: Int[np.ndarray, " m"]
    begin: Int[np.ndarray, " m"]
    order: Int[np.ndarray, " N"]

    @classmethod
    def of(cls, index: Int[np.ndarray, " N"]) -> "ByInterval":
        """From the interval of each row."""
        if len(index) == 1:
            return cls(index, np.zeros(1, int), np.zeros(1, int))
        order = np.argsort(index, kind="stable")
        ordered = index[order]
        begin = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        return cls(ordered[begin], begin, order)

    def summed(self, values: Float[np.ndarray, "N ..."]) -> Float[np.ndarray, "m ..."]:
        """Values of rows added up by interval."""
        if len(values) == 1:
            return values
        return np.add.reduceat(values[self.order], self.begin)


def joined(segments: Sequence[Segment]) -> Segment:
    """Segments that follow one another as one."""
    if len(segments) == 1:
        return segments[0]
    times = [segments[0].times[:1], *(segment.times[1:] for segment in segments)]
    return Segment(
        np.concatenate(times),
        np.concatenate([segment.linear for segment in segments]),
        np.concatenate([segment.precision for segment in segments]),
    )


def cut(segment: Segment) -> list[Segment]:
    """A long segment as several of the usual size, the last one perhaps shorter."""
    if segment.count <= SIZE:
        return [segment]
    return [segment[begin : begin + SIZE] for begin in range(0, max(segment.count, 1), SIZE)]


# -- fewer times -----------------------------------------------------------------------------------


def thinned(
    segment: Segment, first: Int[np.ndarray, " m"], bridge: Bridge
) -> tuple[Segment, Float[np.ndarray, "m C d d"]]:
    """The segment without the times between some intervals and the ones after them.

    The state b that goes is near·a + far·c + rest, so that φ_b is read through a and c.

    Args:
        segment: All intervals.
        first: The earlier interval of each two that become one. No interval is in two pairs.
        bridge: The state that goes, between the ones that stay, for each pair.

    Returns:
        The shorter segment, and Σ P φ_bφ_bᵀ of each pair of intervals: with the spread of the
        rest it says what is now left open.
    """
    size, features = bridge.near.shape[1], segment.features
    kept = np.ones(segment.count, bool)
    kept[first + 1] = False
    turn_left, turn_right = _turns(bridge, features)
    linear, precision = segment.linear.copy(), segment.precision.copy()
    linear[first] = linear[first] @ turn_left + segment.linear[first + 1] @ turn_right
    rows, columns, place = triangle(features)
    left, right = segment.precision[first][:, :, place], segment.precision[first + 1][:, :, place]
    told = _about(turn_left, left) + _about(turn_right, right)
    precision[first] = told[:, :, rows, columns]
    own, other = slice(size, 2 * size), slice(size)
    of_b = left[:, :, own, own] + right[:, :, other, other]
    times = np.concatenate([segment.times[:-1][kept], segment.times[-1:]])
    return Segment(times, linear[kept], precision[kept]), of_b


def _turns(bridge: Bridge, features: int) -> tuple[np.ndarray, np.ndarray]:
    """φ → φ·turn for the interval (a, b) and for (b, c), as features of (a, c)."""
    count, size = len(bridge.near), bridge.near.shape[1]
    left, right = np.zeros((2, count, features, features))
    rest = np.arange(2 * size, features)
    left[:, rest, rest] = right[:, rest, rest] = 1.0
    a, c, every = slice(size), slice(size, 2 * size), np.arange(size)
    left[:, every, every] = 1.0  # a stays a
    left[:, c, a], left[:, c, c] = bridge.near, bridge.far
    right[:, a, a], right[:, a, c] = bridge.near, bridge.far
    right[:, size + every, size + every] = 1.0  # c stays c
    return left, right


def _about(turn: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """turnᵀ·sums·turn of each pair of intervals and each pair of latent parameters."""
    return np.swapaxes(turn, 1, 2)[:, None] @ sums @ turn[:, None]
