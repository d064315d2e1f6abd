"""Open rows: the latest rows of channels that are not conjugate, whose sites may still change.

The site of such a row is the quadratic of its log-density where q(f) is, and later rows move q(f).
A row that was learned by itself would keep the site of a time when little was known around it. The
sites of the latest rows therefore stay open. They are found anew, together, with every row that
comes, and are added to the sums of the chain when the row leaves the window.
"""

import dataclasses

import numpy as np
from jaxtyping import Bool, Float, Int

from streamgp.data.batch import Batch, Rows, join
from streamgp.inference.e_step import Setting, exact_sites, per_row
from streamgp.inference.posterior import Marginals
from streamgp.inference.sites import RowSites, RunBlocks, times
from streamgp.model.multitask import MultiTaskGP
from streamgp.registry import storable

Vectors = Float[np.ndarray, "N J"]
Squares = Float[np.ndarray, "N J J"]


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class OpenRows:
    """Rows in the order in which they came, and their sites.

    Attributes:
        x: As in `Rows`.
        y: As in `Rows`.
        channel: As in `Rows`.
        linear: b of each row, with zeros behind if other rows have more latent parameters.
        precision: P of each row, likewise.
    """

    x: Float[np.ndarray, "N 1"]
    y: Float[np.ndarray, "N C"]
    channel: Int[np.ndarray, " N"]
    linear: Float[np.ndarray, "N J"]
    precision: Float[np.ndarray, "N J J"]

    @classmethod
    def of(
        cls, model: MultiTaskGP, rows: Rows, linear: Vectors, precision: Squares
    ) -> "OpenRows | None":
        """Rows with their sites, if there are any."""
        if not rows.size:
            return None
        width = max(model.channels[d].likelihood.latents for d in np.unique(rows.channel))
        sites = linear[:, :width], precision[:, :width, :width]
        return cls(rows.x, rows.y, rows.channel, *sites)

    @property
    def size(self) -> int:
        """How many rows there are."""
        return len(self.channel)

    @property
    def rows(self) -> Rows:
        """The rows themselves."""
        return Rows(self.x, self.y, self.channel)

    def arrays(self) -> list[np.ndarray]:
        """All numbers that must be finite."""
        return [self.x, self.linear, self.precision]

    def sites(self, batch: Batch) -> RowSites:
        """Their sites, in a batch that begins with them; those of later rows say nothing."""
        more, width = batch.size - self.size, max((run.latents for run in batch.runs), default=0)
        wider = (0, width - self.linear.shape[1])
        linear = np.pad(self.linear, ((0, more), wider))
        return sorted_sites(batch, linear, np.pad(self.precision, ((0, more), wider, wider)))


def followed(held: OpenRows | None, rows: Rows) -> Rows:
    """Open rows, and new ones after them."""
    return rows if held is None else join([held.rows, rows], rows.names)


def staying(model: MultiTaskGP, rows: Rows, most: int) -> Bool[np.ndarray, " N"]:
    """Which rows stay open: so many at most, the latest in time, and none of conjugate channels.

    Later rows come after the latest ones. A row that comes late has all its neighbours already.
    """
    stays = ~np.array([channel.likelihood.conjugate for channel in model.channels])[rows.channel]
    candidates = np.flatnonzero(stays)
    over = len(candidates) - most
    if over > 0:
        by_time = np.argsort(rows.x[candidates, 0], kind="stable")
        stays[candidates[by_time[:over]]] = False
    return stays


def first_sites_beside(
    setting: Setting, held: RowSites, before: Marginals, is_held: Bool[np.ndarray, " N"]
) -> RowSites:
    """The sites that rows begin with: their own if they are held, else by what these say of them.

    Args:
        setting: The rows.
        held: The sites of those that are held, and nothing of the others.
        before: What these say at the rows.
        is_held: Which rows of the batch are held.
    """
    model, batch = setting.model, setting.batch
    known = exact_sites(setting, held)
    if known is not held:
        _, before = setting.conditioned(known)
    gradient, precision = per_row(
        lambda c, *row: c.first_site(*row), model, batch, before.mean, before.covariance
    )
    linear = gradient + times(batch, precision, before.centred)
    for run, own, old in zip(batch.runs, precision, known.precision, strict=True):
        stays = is_held[run.rows]
        own[stays] = old[stays]
        flat = np.repeat(stays, run.latents)
        linear[run.flat][flat] = known.linear[run.flat][flat]
    return RowSites(linear, precision)


# -- some rows of a batch --------------------------------------------------------------------------


def by_row(
    batch: Batch, vector: Float[np.ndarray, " R"], blocks: RunBlocks
) -> tuple[Vectors, Squares]:
    """What each row has, in the order in which rows came, filled up with zeros."""
    width = max((run.latents for run in batch.runs), default=0)
    vectors, squares = np.zeros((batch.size, width)), np.zeros((batch.size, width, width))
    for run, block in zip(batch.runs, blocks, strict=True):
        rows, j = batch.order[run.rows], run.latents
        vectors[rows, :j] = vector[run.flat].reshape(-1, j)
        squares[rows, :j, :j] = block
    return vectors, squares


def sorted_by_run(
    batch: Batch, vectors: Vectors, squares: Squares
) -> tuple[Float[np.ndarray, " R"], RunBlocks]:
    """The way back: what each row has, as a batch has it."""
    flat, blocks = np.empty(batch.flat_size), []
    for run in batch.runs:
        rows, j = batch.order[run.rows], run.latents
        flat[run.flat] = vectors[rows, :j].ravel()
        blocks.append(squares[rows, :j, :j])
    return flat, tuple(blocks)


def sorted_sites(batch: Batch, linear: Vectors, precision: Squares) -> RowSites:
    """Sites of rows as they came, as a batch has them."""
    flat, blocks = sorted_by_run(batch, linear, precision)
    return RowSites(flat, blocks)


def sites_of_some(batch: Batch, sites: RowSites, which: np.ndarray, some: Batch) -> RowSites:
    """The sites of some rows, which are a batch of their own."""
    linear, precision = by_row(batch, sites.linear, sites.precision)
    return sorted_sites(some, linear[which], precision[which])


def marginals_of_some(
    batch: Batch, at_rows: Marginals, which: np.ndarray, some: Batch
) -> Marginals:
    """q(f) of some rows, which are a batch of their own."""
    mean, covariance = by_row(batch, at_rows.mean, at_rows.covariance)
    own, explained = by_row(batch, at_rows.centred, at_rows.explained)
    means, covariances = sorted_by_run(some, mean[which], covariance[which])
    centred, blocks = sorted_by_run(some, own[which], explained[which])
    return Marginals(means, covariances, centred, blocks)
