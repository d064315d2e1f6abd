"""Rows as they came, and the same rows sorted for the algebra."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

_ONE = np.ones(1, bool)


class Rows(NamedTuple):
    """Observations in the order in which they came, each with the index of its channel.

    `names` has the names of all the model's channels, which the indices refer to. `y` has one
    column per number of an observation; where channels differ in that, the rest of a row is NaN.
    """

    x: Float[np.ndarray, "N P"]
    y: Float[np.ndarray, "N C"]
    channel: Int[np.ndarray, " N"]
    names: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return len(self.y)

    def take(self, which: slice | np.ndarray) -> "Rows":
        return Rows(self.x[which], self.y[which], self.channel[which], self.names)

    def of(self, channel: int, width: int) -> np.ndarray:
        """The observations of one channel, (n,) or (n, C) for C numbers per observation."""
        own = self.y[self.channel == channel]
        return own[:, 0] if width == 1 else own[:, :width]

    def by_channel(self) -> Iterator[tuple[str, Bool[np.ndarray, " N"]]]:
        """The name of each channel that has rows, and which rows they are."""
        count = len(self.channel)
        if count == 1 or (len(self.names) == 1 and count):
            yield self.names[self.channel[0]], _ONE if count == 1 else np.ones(count, bool)
            return
        for index in np.unique(self.channel):
            yield self.names[index], self.channel == index


@dataclasses.dataclass(frozen=True, eq=False)
class Parts:
    """Rows in parts of at most `size`, the same ones each time they are gone through.

    A part is taken out when its turn comes, so that the rows are not held twice.
    """

    rows: Rows
    order: Int[np.ndarray, " N"]
    size: int

    @classmethod
    def of(cls, rows: Rows, size: int, seed: int | None) -> "Parts":
        """Random parts that follow from a seed; without one, parts in the order of inputs."""
        if seed is None:
            return cls(rows, np.argsort(rows.x[:, 0], kind="stable"), size)
        return cls(rows, np.random.default_rng(seed).permutation(rows.size), size)

    def __iter__(self) -> Iterator[Rows]:
        for begin in range(0, self.rows.size, self.size):
            yield self.rows.take(self.order[begin : begin + self.size])


def join(parts: Sequence[Rows], names: tuple[str, ...]) -> Rows:
    """Rows of several channels, one after the other; narrower observations are filled with NaN."""
    if len(parts) == 1:
        return parts[0]._replace(names=names)
    width = max(part.y.shape[1] for part in parts)
    filled = [
        np.pad(part.y, [(0, 0), (0, width - part.y.shape[1])], constant_values=np.nan)
        if part.y.shape[1] < width
        else part.y
        for part in parts
    ]
    return Rows(
        np.concatenate([part.x for part in parts]),
        np.concatenate(filled),
        np.concatenate([part.channel for part in parts]),
        names,
    )


class Group(NamedTuple):
    """The rows of one channel in a batch, which lie together.

    Attributes:
        channel: The index of the channel.
        latents: J, the number of its latent parameters.
        rows: Where its rows are.
        flat: Where its latent parameters are, J per row.
        run: The number of the run that its rows belong to.
        within: Where its rows are in that run.
        y: Its observations, (n,) or (n, C).
        is_observed: Whether `y` says what was observed. Else there is nothing, or a site alone.
    """

    channel: int
    latents: int
    rows: slice
    flat: slice
    run: int
    within: slice
    y: Float[np.ndarray, "n ..."]
    is_observed: bool = True


class Run(NamedTuple):
    """Neighbouring rows with the same number J of latent parameters."""

    latents: int
    rows: slice
    flat: slice


@dataclasses.dataclass(frozen=True, eq=False)
class Batch:
    """N rows sorted by J, then by channel, so that rows of a kind are one slice.

    The R latent parameters of all rows are listed row after row. What belongs to one row (a
    precision, a covariance) is kept per run, as an array (n, J, J).

    Attributes:
        x: The inputs, sorted.
        channel: The channel of each row, sorted.
        groups: The rows of each channel.
        runs: Stretches of rows with the same J.
        order: Where each sorted row was among the rows that came.
        count: How many observations each row stands for; None if each stands for itself.
        energy: Of rows that stand for several values, the sum of their squares about `y`.
    """

    x: Float[np.ndarray, "N P"]
    channel: Int[np.ndarray, " N"]
    groups: tuple[Group, ...]
    runs: tuple[Run, ...]
    order: Int[np.ndarray, " N"]
    count: Float[np.ndarray, " N"] | None = None
    energy: Float[np.ndarray, " N"] | None = None

    @property
    def size(self) -> int:
        """N."""
        return len(self.channel)

    @property
    def flat_size(self) -> int:
        """R, the number of latent parameters of all rows."""
        return self.runs[-1].flat.stop if self.runs else 0

    def as_they_came(self, values: Shaped[np.ndarray, "N ..."]) -> Shaped[np.ndarray, "N ..."]:
        """Values per sorted row, in the order in which the rows came."""
        back = np.empty_like(values)
        back[self.order] = values
        return back


def sorted_batch(rows: Rows, latents: Sequence[int], widths: Sequence[int]) -> Batch:
    """Rows made ready for the algebra.

    Args:
        rows: The rows as they came.
        latents: The number of latent parameters of each channel.
        widths: How many numbers one observation of each channel is.
    """
    channel, order = rows.channel, None
    unseen = np.isnan(rows.y[:, 0])
    mixed = unseen.any() and not unseen.all()
    if len(latents) > 1 or mixed:
        ranks = 2 * (np.asarray(latents)[channel] * (len(latents) + 1) + channel) + unseen
        order = np.argsort(ranks, kind="stable") if np.any(ranks[1:] < ranks[:-1]) else None
    x, y = (rows.x, rows.y) if order is None else (rows.x[order], rows.y[order])
    channel = channel if order is None else channel[order]
    unseen = unseen if order is None else unseen[order]
    kind = 2 * channel + unseen
    groups: list[Group] = []
    runs: list[Run] = []
    begin = flat = 0
    while begin < len(channel):
        own = int(channel[begin])
        end = begin + _leading(kind[begin:] == kind[begin])
        j, width = latents[own], widths[own]
        part, parameters = slice(begin, end), slice(flat, flat + j * (end - begin))
        values = y[part, 0] if width == 1 else y[part, :width]
        if runs and runs[-1].latents == j:  # the run goes on
            last = runs.pop()
            runs.append(
                Run(j, slice(last.rows.start, end), slice(last.flat.start, parameters.stop))
            )
        else:
            runs.append(Run(j, part, parameters))
        first = runs[-1].rows.start
        within = slice(begin - first, end - first)
        seen = not unseen[begin]
        groups.append(Group(own, j, part, parameters, len(runs) - 1, within, values, seen))
        begin, flat = end, parameters.stop
    order = np.arange(len(channel)) if order is None else order
    return Batch(x, channel, tuple(groups), tuple(runs), order)


def _leading(flags: Bool[np.ndarray, " N"]) -> int:
    """How many flags are true before the first that is not."""
    return len(flags) if flags.all() else int(np.argmin(flags))
