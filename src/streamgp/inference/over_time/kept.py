"""Kept rows: what is kept of the past over time, in the order of time.

Rows lie in blocks, so that a row that comes at the end leaves all blocks but the last as they were.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from streamgp.data.batch import Batch, Rows
from streamgp.inference.sites import RowSites
from streamgp.model.multitask import MultiTaskGP
from streamgp.registry import storable

SIZE = 256  # rows of a block: a late row costs the filter about as many, and a file little more


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Kept:
    """Rows in the order of time, with their sites.

    Attributes:
        time: When.
        channel: The number of the channel.
        y: What was observed, as in `Rows`.
        count: How many observations the row stands for; a faded one counts in part.
        energy: Of a row that stands for several values, the sum of their squares about `y`.
        linear: b of the row's site on its latent parameters, less their offsets; zero where
            `exact_sites` tells it.
        precision: P of the site, its upper triangle row by row.
    """

    time: Float[np.ndarray, " n"]
    channel: Int[np.ndarray, " n"]
    y: Float[np.ndarray, "n C"]
    count: Float[np.ndarray, " n"]
    energy: Float[np.ndarray, " n"]
    linear: Float[np.ndarray, "n J"]
    precision: Float[np.ndarray, "n T"]

    @classmethod
    def none(cls, model: MultiTaskGP) -> "Kept":
        """No rows of a plain model."""
        likelihoods = [channel.likelihood for channel in model.channels]
        width = max(c.observation_dim for c in likelihoods)
        latents = max([c.latents for c in likelihoods if not c.conjugate], default=0)
        sites = np.zeros((0, latents)), np.zeros((0, latents * (latents + 1) // 2))
        nothing = np.zeros(0)
        return cls(nothing, np.zeros(0, np.int32), np.zeros((0, width)), nothing, nothing, *sites)

    @property
    def size(self) -> int:
        """How many rows there are."""
        return len(self.time)

    def columns(self) -> tuple[np.ndarray, ...]:
        """All numbers of the rows."""
        return (
            self.time, self.channel, self.y, self.count, self.energy, self.linear, self.precision,
        )  # fmt: skip

    def take(self, which: slice | np.ndarray) -> "Kept":
        """Some of the rows."""
        return Kept(*[column[which] for column in self.columns()])

    def with_rows(self, rows: Rows) -> tuple["Kept", Int[np.ndarray, " N"]]:
        """With new rows, whose sites say nothing yet, and where each of them is.

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
        return Kept(rows.x[:, 0], rows.channel.astype(np.int32), y, np.ones(n), np.zeros(n), *sites)

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
        rows = model.batch(Rows(self.time[:, None], self.y, self.channel))
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


def joined(parts: Sequence[Kept]) -> Kept:
    """Rows that follow one another."""
    if len(parts) == 1:
        return parts[0]
    return Kept(*map(np.concatenate, zip(*[part.columns() for part in parts], strict=True)))


def cut(rows: Kept) -> tuple[Kept, ...]:
    """Rows as blocks. No two blocks have rows of one time, so that a time tells where one goes."""
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
