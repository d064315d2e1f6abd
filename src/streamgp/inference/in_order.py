"""Rows that are learned one after the other, a block at a time.

With E the covariance of the block's f, H a root of the rows' precisions and LLᵀ = I + HᵀEH, row k
of L⁻¹ is what row k says that those before it did not. Sums over leading rows are therefore what is
known before, and after, each row.

The site of a conjugate row is known beforehand. Any other row's site depends on what was predicted
for it, and so on the rows before it. All sites of a block are guessed, predictions are computed
from them, and sites from the predictions, until nothing changes: since row k depends on earlier
rows only, that ends with the sites that one row after the other would have got.
"""

import dataclasses
from typing import ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from streamgp.data.batch import Batch, Group
from streamgp.inference.e_step import Setting, exact_sites, no_sites
from streamgp.inference.posterior import Marginals, add
from streamgp.inference.single_rows import Before, single_fits
from streamgp.inference.sites import RunBlocks, firm
from streamgp.likelihoods import Likelihood
from streamgp.likelihoods.quadrature import root
from streamgp.numerics.linalg import cholesky_of_identity_plus, solve_lower

_SAME = 1e-9  # relative: sites that change by less between two sweeps have been found
_LEAST = 1e-12  # times what is known: a precision that is as good as none


class _AtRows(NamedTuple):
    """q(f) of each row, less the offset and the open variance."""

    mean: Float[np.ndarray, " R"]
    explained: RunBlocks

    @classmethod
    def blank(cls, batch: Batch) -> "_AtRows":
        shapes = [(run.rows.stop - run.rows.start, run.latents, run.latents) for run in batch.runs]
        return cls(np.empty(batch.flat_size), tuple(np.empty(shape) for shape in shapes))

    def marginals(self, setting: Setting) -> Marginals:
        features = setting.features
        covariance = add(self.explained, features.slack)
        mean = features.offset + self.mean
        return Marginals(mean, covariance, self.mean, self.explained)


@dataclasses.dataclass(frozen=True, eq=False)
class _Part:
    """The rows of one channel in a block.

    Attributes:
        group: The number of the channel's group in the batch.
        rows: Where they are in the batch.
        within: Where they are in their run.
        flat: Where their latent parameters are in the batch, (n, J).
        columns: Where their latent parameters are in the block, (n, J).
    """

    group: int
    rows: Int[np.ndarray, " n"]
    within: Int[np.ndarray, " n"]
    flat: Int[np.ndarray, "n J"]
    columns: Int[np.ndarray, "n J"]


@dataclasses.dataclass(frozen=True, eq=False)
class Block:
    """Some rows of a batch in the order in which they came.

    Attributes:
        parts: The rows of each channel.
        owner: The row in the block of each latent parameter.
        order: Where each latent parameter of the block is in the batch.
    """

    parts: list[_Part]
    owner: Int[np.ndarray, " R"]
    order: Int[np.ndarray, " R"]

    @classmethod
    def of(cls, batch: Batch, come: Int[np.ndarray, " B"]) -> "Block":
        """The rows at these places of a batch."""
        parts, owner = _parts(batch, come)
        return cls(parts, owner, _in_order(parts, len(owner)))


class InOrder:
    """Rows that are learned one after the other, by blocks.

    Attributes:
        sites: The site of each row.
        before: q(f) of each row before it was learned.
        after: q(f) of each row right after.
    """

    block: ClassVar[int] = 48  # rows: enough for products of matrices, few beside those before

    def __init__(
        self,
        setting: Setting,
        rounds: int,
        tolerance: float,
        reach: Float[np.ndarray, " D"] | None = None,
    ):
        self.setting, self.rounds, self.tolerance = setting, rounds, tolerance
        self.reach = np.full(len(setting.model.channels), np.inf) if reach is None else reach
        self.sites = exact_sites(setting, no_sites(setting))
        self.before, self.after = _AtRows.blank(setting.batch), _AtRows.blank(setting.batch)

    def learn_all(
        self, mean: Float[np.ndarray, " R"], covariance: Float[np.ndarray, "R R"]
    ) -> None:
        """Find the sites of all rows of a small batch; see `learn`."""
        batch = self.setting.batch
        block = Block.of(batch, np.argsort(batch.order))
        self.learn(block, mean[block.order], covariance[np.ix_(block.order, block.order)])

    def learn(
        self, block: Block, mean: Float[np.ndarray, " R"], covariance: Float[np.ndarray, "R R"]
    ) -> "_News":
        """Find the sites of a block's rows.

        Args:
            block: The rows.
            mean: Of their f before the block, less the offset.
            covariance: Of their f before the block, open variance apart.
        """
        news = self._settled(_Known(mean, covariance, block.owner), block.parts, block.order)
        for place, (own_mean, spread) in ((self.before, news.before()), (self.after, news.after())):
            place.mean[block.order] = own_mean
            for part in block.parts:
                own = spread[part.columns[:, :, None], part.columns[:, None, :]]
                place.explained[self._group(part).run][part.within] = own
        return news

    def _settled(self, known: "_Known", parts: list[_Part], order: np.ndarray) -> "_News":
        """What the rows say, once the site of each is the one it gets in its turn."""
        news = self._news(known, parts, order)
        open_parts = [part for part in parts if not self._likelihood(part).conjugate]
        for _ in range(len(order) if open_parts else 0):
            mean, spread = news.before()
            changed = [self._found(part, mean, spread) for part in open_parts]
            if not any(changed):
                break
            news = self._news(known, parts, order)
        return news

    def _found(self, part: _Part, mean: np.ndarray, spread: np.ndarray) -> bool:
        """Find the sites of a part's rows under these predictions, and say if they have changed."""
        features, group = self.setting.features, self._group(part)
        centre = mean[part.columns]
        before = Before(
            features.offset[part.flat] + centre,
            spread[part.columns[:, :, None], part.columns[:, None, :]],
            features.slack[group.run][part.within],
        )
        y = group.y[part.rows - group.rows.start]
        likelihood = self._likelihood(part)
        fit = single_fits(likelihood, y, before, rounds=self.rounds, tolerance=self.tolerance)
        linear, precision = fit.linear, fit.precision
        limit = self.reach[group.channel]
        if np.isfinite(limit):  # of one latent parameter
            linear, held = firm(linear, precision[:, :, 0], fit.shift, limit)
            precision = held[:, :, None]
        linear = linear + (precision @ centre[:, :, None])[:, :, 0]  # about the offset
        old = self.sites.linear[part.flat], self.sites.precision[group.run][part.within]
        self.sites.linear[part.flat] = linear
        self.sites.precision[group.run][part.within] = precision
        return not (_is_same(linear, old[0]) and _is_same(precision, old[1]))

    def _news(self, known: "_Known", parts: list[_Part], order: np.ndarray) -> "_News":
        size = len(order)
        half, linear = np.zeros((size, size)), self.sites.linear[order]
        seen = np.empty(size)
        for part in parts:
            precision = self.sites.precision[self._group(part).run][part.within]
            own = known.covariance[part.columns[:, :, None], part.columns[:, None, :]]
            precision = _at_least_a_little(precision, own)
            if part.columns.shape[1] == 1:
                column = part.columns[:, 0]
                half[column, column] = np.sqrt(precision[:, 0, 0])
                seen[column] = linear[column] / half[column, column]
                continue
            roots = root(precision)
            half[part.columns[:, :, None], part.columns[:, None, :]] = roots
            target = linear[part.columns][:, :, None]
            seen[part.columns] = np.linalg.solve(roots, target)[:, :, 0]
        return _News.of(known, half, seen)

    def _group(self, part: _Part) -> Group:
        return self.setting.batch.groups[part.group]

    def _likelihood(self, part: _Part) -> Likelihood:
        return self.setting.model.channels[self._group(part).channel].likelihood


class _Known(NamedTuple):
    """What is known of a block's f before the block, and the row of each number."""

    mean: Float[np.ndarray, " R"]
    covariance: Float[np.ndarray, "R R"]
    owner: Int[np.ndarray, " R"]


@dataclasses.dataclass(frozen=True, eq=False)
class _News:
    """What each row of a block says that those before it did not."""

    known: _Known
    root: Float[np.ndarray, "R R"]  # H
    chol: Float[np.ndarray, "R R"]  # L
    innovation: Float[np.ndarray, " R"]
    said: Float[np.ndarray, "R R"]  # L⁻¹HᵀE: by one number, of another

    @classmethod
    def of(cls, known: _Known, half: np.ndarray, seen: np.ndarray) -> "_News":
        shared = half.T @ known.covariance
        chol = cholesky_of_identity_plus(shared @ half)
        sides = np.concatenate([(seen - half.T @ known.mean)[:, None], shared], axis=1)
        news = solve_lower(chol, sides)
        return cls(known, half, chol, news[:, 0], news[:, 1:])

    def before(self) -> tuple[Float[np.ndarray, " R"], Float[np.ndarray, "R R"]]:
        """Mean and covariance of each row's numbers before it; valid within a row only."""
        return self._told(self.known.owner[:, None] < self.known.owner[None, :])

    def after(self) -> tuple[Float[np.ndarray, " R"], Float[np.ndarray, "R R"]]:
        """The same right after it."""
        return self._told(self.known.owner[:, None] <= self.known.owner[None, :])

    def _told(self, by: np.ndarray) -> tuple[Float[np.ndarray, " R"], Float[np.ndarray, "R R"]]:
        told = self.said * by
        return self.known.mean + self.innovation @ told, self.known.covariance - told.T @ told


def _parts(batch: Batch, come: Int[np.ndarray, " B"]) -> tuple[list[_Part], Int[np.ndarray, " R"]]:
    """The rows of a block by channel, and the row in the block of each latent parameter."""
    found, latents = [], np.empty(len(come), int)
    for number, group in enumerate(batch.groups):
        own = np.flatnonzero((come >= group.rows.start) & (come < group.rows.stop))
        if len(own):
            latents[own] = group.latents
            found.append((number, group, own))
    starts = np.cumsum([0, *latents[:-1]])
    parts = []
    for number, group, own in found:
        rows, j = come[own], np.arange(group.latents)
        offset = rows - group.rows.start
        flat = group.flat.start + offset[:, None] * group.latents + j
        columns = starts[own][:, None] + j
        parts.append(_Part(number, rows, offset + group.within.start, flat, columns))
    return parts, np.repeat(np.arange(len(come)), latents)


def _in_order(parts: list[_Part], size: int) -> Int[np.ndarray, " R"]:
    """Where each latent parameter of a block is in the batch."""
    order = np.empty(size, int)
    for part in parts:
        order[part.columns] = part.flat
    return order


def _at_least_a_little(
    precision: Float[np.ndarray, "n J J"], explained: Float[np.ndarray, "n J J"]
) -> Float[np.ndarray, "n J J"]:
    """A precision whose root can be divided by, where a row says next to nothing."""
    variance = np.diagonal(explained, axis1=1, axis2=2)
    least = _LEAST / (np.max(variance, axis=1) + 1e-300)
    return precision + least[:, None, None] * np.eye(precision.shape[1])


def _is_same(new: np.ndarray, old: np.ndarray) -> bool:
    return bool(np.all(np.abs(new - old) <= _SAME * (np.abs(old).max() + 1e-300)))
