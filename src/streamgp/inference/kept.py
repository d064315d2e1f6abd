"""Kept rows: a table of what was observed, with the site of each row.

Over time rows are in the order of time, elsewhere in the order in which they came. They lie in
blocks, so that a row that comes at the end leaves all blocks but the last as they were.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from streamgp.data.batch import Batch, Rows
from streamgp.inference.sites import RowSites
from streamgp.model.multitask import MultiTaskGP
from streamgp.numerics.linalg import TINY
from streamgp.registry import storable

Site = tuple[Float[np.ndarray, "n J"], Float[np.ndarray, "n J J"]]  # b and P of some rows
ROOM = 1.25  # of the limit, up to which a table grows before some rows are joined
SIZE = 256  # rows of a block: a late row costs the filter about as many, and a file little more


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Kept:
    """Rows with their sites.

    Attributes:
        x: The inputs.
        channel: The number of the channel.
        y: What was observed, as in `Rows`; NaN of a row that only its site tells of, because it
            stands for several that do not add up.
        count: How many observations the row stands for; a faded one counts in part.
        energy: Of a row that stands for several values, the sum of their squares about `y`.
        linear: b of the row's site on its latent parameters, less their offsets; zero where
            `exact_sites` tells it.
        precision: P of the site, its upper triangle row by row.
    """

    x: Float[np.ndarray, "n P"]
    channel: Int[np.ndarray, " n"]
    y: Float[np.ndarray, "n C"]
    count: Float[np.ndarray, " n"]
    energy: Float[np.ndarray, " n"]
    linear: Float[np.ndarray, "n J"]
    precision: Float[np.ndarray, "n T"]

    @classmethod
    def none(cls, model: MultiTaskGP, columns: int = 1) -> "Kept":
        """No rows of a plain model."""
        likelihoods = [channel.likelihood for channel in model.channels]
        width = max(c.observation_dim for c in likelihoods)
        sums = zip(likelihoods, adds_up(model), strict=True)
        latents = max([c.latents for c, known in sums if not known], default=0)
        sites = np.zeros((0, latents)), np.zeros((0, latents * (latents + 1) // 2))
        nothing = np.zeros(0)
        x, y = np.zeros((0, columns)), np.zeros((0, width))
        return cls(x, np.zeros(0, np.int32), y, nothing, nothing, *sites)

    @property
    def size(self) -> int:
        """How many rows there are."""
        return len(self.channel)

    @property
    def time(self) -> Float[np.ndarray, " n"]:
        """When, of rows over time."""
        return self.x[:, 0]

    def columns(self) -> tuple[np.ndarray, ...]:
        """All numbers of the rows."""
        return (
            self.x, self.channel, self.y, self.count, self.energy, self.linear, self.precision,
        )  # fmt: skip

    @property
    def bytes(self) -> int:
        """How many bytes the columns take."""
        return sum(column.nbytes for column in self.columns())

    def take(self, which: slice | np.ndarray) -> "Kept":
        """Some of the rows."""
        return Kept(*[column[which] for column in self.columns()])

    def in_time(self, rows: Rows) -> tuple["Kept", Int[np.ndarray, " N"]]:
        """With new rows in the order of time, whose sites say nothing yet, and where each is.

        A new row comes after all others of its time.
        """
        new = self.like(rows)
        whole = joined([self, new]) if self.size else new
        order = np.argsort(whole.time, kind="stable")
        place = np.empty(whole.size, int)
        place[order] = np.arange(whole.size)
        return whole.take(order), place[self.size :]

    def like(self, rows: Rows) -> "Kept":
        """Rows as they came, each of which stands for itself, with columns as wide as these."""
        n, latents, width = rows.size, self.linear.shape[1], self.y.shape[1]
        y = rows.y if rows.y.shape[1] == width else _wider(rows.y, width)
        sites = np.zeros((n, latents)), np.zeros((n, self.precision.shape[1]))
        return Kept(rows.x, rows.channel.astype(np.int32), y, np.ones(n), np.zeros(n), *sites)

    def scaled(self, part: float) -> "Kept":
        """The rows with that part of their say."""
        return dataclasses.replace(
            self,
            count=part * self.count,
            energy=part * self.energy,
            linear=part * self.linear,
            precision=part * self.precision,
        )

    def widened(self, none: "Kept") -> "Kept":
        """The rows with room for those of further channels, as no rows of these have it."""
        y = _wider(self.y, none.y.shape[1])
        old, new = self.linear.shape[1], none.linear.shape[1]
        linear = np.pad(self.linear, ((0, 0), (0, new - old)))
        precision = np.zeros((self.size, none.precision.shape[1]))
        precision[:, _entries(none, old)] = self.precision
        return dataclasses.replace(self, y=y, linear=linear, precision=precision)

    # -- for the algebra -------------------------------------------------------------------------

    def batch(self, model: MultiTaskGP) -> Batch:
        """The rows, sorted for the algebra."""
        rows = model.batch(Rows(self.x, self.y, self.channel))
        if np.all(self.count == 1.0):
            return rows
        return dataclasses.replace(
            rows, count=self.count[rows.order], energy=self.energy[rows.order]
        )

    def sites(self, batch: Batch) -> RowSites:
        """The sites of rows that are not conjugate, and nothing of the others."""
        linear = np.zeros(batch.flat_size)
        precision = []
        for run in batch.runs:
            own, j = batch.order[run.rows], run.latents
            blocks = np.zeros((len(own), j, j))
            if j <= self.linear.shape[1]:
                linear[run.flat] = self.linear[own, :j].ravel()
                upper = np.triu_indices(j)
                blocks[:, upper[0], upper[1]] = self.precision[own][:, _entries(self, j)]
                blocks[:, upper[1], upper[0]] = blocks[:, upper[0], upper[1]]
            precision.append(blocks)
        return RowSites(linear, tuple(precision))

    def with_sites(self, model: MultiTaskGP, batch: Batch, sites: RowSites) -> "Kept":
        """The rows with sites as found; those of conjugate channels are not kept."""
        if not self.linear.shape[1]:
            return self
        linear, precision = self.linear.copy(), self.precision.copy()
        for group in batch.groups:
            if not model.channels[group.channel].likelihood.conjugate:
                own, j = batch.order[group.rows], group.latents
                linear[own, :j] = sites.linear[group.flat].reshape(-1, j)
                upper = np.triu_indices(j)
                blocks = sites.precision[group.run][group.within]
                precision[own[:, None], _entries(self, j)] = blocks[:, upper[0], upper[1]]
        return dataclasses.replace(self, linear=linear, precision=precision)

    def with_blocks(
        self, linear: Float[np.ndarray, "n J"], precision: Float[np.ndarray, "n J J"]
    ) -> "Kept":
        """Rows of one channel with these sites."""
        j = linear.shape[1]
        upper = np.triu_indices(j)
        found = self.linear.copy(), self.precision.copy()
        found[0][:, :j] = linear
        found[1][:, _entries(self, j)] = precision[:, upper[0], upper[1]]
        return dataclasses.replace(self, linear=found[0], precision=found[1])


def joined(parts: Sequence[Kept]) -> Kept:
    """Rows that follow one another."""
    if len(parts) == 1:
        return parts[0]
    return Kept(*map(np.concatenate, zip(*[part.columns() for part in parts], strict=True)))


def lost_by_joining(
    one: Float[np.ndarray, "n J J"],
    other: Float[np.ndarray, "n J J"],
    apart: Float[np.ndarray, "n J"],
) -> Float[np.ndarray, " n"]:
    """½ mn/(m + n)·E[(f − f')²] nats: what pairs of rows are expected to lose when they are one.

    Args:
        one: P of one row of each pair, whose diagonal is m.
        other: P of the other, whose diagonal is n.
        apart: E[(f − f')²].
    """
    m, n = (np.diagonal(own, axis1=1, axis2=2) for own in (one, other))
    return 0.5 * np.sum(m * n / np.maximum(m + n, TINY) * apart, axis=1)


def joined_as_sites(
    x: Float[np.ndarray, "n P"],
    rows: Sequence[Kept],
    sites: Sequence[Site],
    steps: Sequence[np.ndarray],
) -> Kept:
    """One row in the place of several of a channel each, that has their sites and no value.

    Args:
        x: Where the new rows are.
        rows: The old ones, each as many as there are new ones.
        sites: b and P of each.
        steps: How far E[f] lies from that of the new row.
    """
    count = np.sum([own.count for own in rows], axis=0)
    blank = dataclasses.replace(
        rows[0], x=x, y=np.full(rows[0].y.shape, np.nan), count=count, energy=0 * count
    )
    linear = [
        b - (p @ step[:, :, None])[:, :, 0] for (b, p), step in zip(sites, steps, strict=True)
    ]
    return blank.with_blocks(np.sum(linear, axis=0), np.sum([p for _, p in sites], axis=0))


def cut(rows: Kept) -> tuple[Kept, ...]:
    """Rows as blocks."""
    return tuple(rows.take(slice(at, at + SIZE)) for at in range(0, rows.size, SIZE))


def cut_in_time(rows: Kept) -> tuple[Kept, ...]:
    """Rows over time as blocks. No two have rows of one time: a time tells where one goes."""
    found, begin = [], 0
    while begin < rows.size:
        end = begin + SIZE
        if end < rows.size:
            end = int(np.searchsorted(rows.time, rows.time[end - 1], side="right"))
        found.append(rows.take(slice(begin, end)))
        begin = end
    return tuple(found)


def _entries(rows: Kept, latents: int) -> Int[np.ndarray, " t"]:
    """Where the upper triangle of J latent parameters is among that of the most that rows have."""
    most = rows.linear.shape[1]
    place = np.zeros((most, most), int)
    place[np.triu_indices(most)] = np.arange(most * (most + 1) // 2)
    return place[:latents, :latents][np.triu_indices(latents)]


def _wider(y: Float[np.ndarray, "n C"], width: int) -> Float[np.ndarray, "n W"]:
    return np.pad(y, ((0, 0), (0, width - y.shape[1])), constant_values=np.nan)


def adds_up(model: MultiTaskGP) -> Bool[np.ndarray, " D"]:
    """Of which channels several values are told by their number, their mean and their scatter."""
    return np.array([channel.likelihood.adds_up for channel in model.channels])
