"""Rows that meet a chain: what they see of its states, and what their sites say of them."""

import dataclasses
import functools
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from streamgp.data.batch import Batch
from streamgp.inference.chain.elements import Forward, Gains, PairSites, joined, taken
from streamgp.inference.chain.known import Known, Window
from streamgp.inference.chain.seen import Seen
from streamgp.inference.chain.segments import ByInterval, GroupSums, Segment, triangle
from streamgp.inference.chain.stretch import Stretch, Weights
from streamgp.inference.e_step import Fit
from streamgp.inference.posterior import Marginals
from streamgp.inference.sites import RowSites, times
from streamgp.model.mixing import Features
from streamgp.model.multitask import MultiTaskGP


class ChainPosterior(NamedTuple):
    """What all data say, new rows included, of β and of a stretch of a chain."""

    stretch: Stretch
    gains: Gains
    weights: Weights

    @property
    def log_evidence(self) -> float:
        """log ∫ p(s, β) t(s, β)."""
        return self.weights.log_evidence


@dataclasses.dataclass(frozen=True, eq=False)
class ChainSetting:
    """A batch that meets a chain; see `meeting`.

    Attributes:
        known: The chain, whose times hold all rows.
        window: The links that hold the rows.
        place: The interval of each row in the window.
        seen: What the rows see.
    """

    known: Known
    window: Window
    place: Int[np.ndarray, " N"]
    seen: Seen

    @property
    def model(self) -> MultiTaskGP:
        """The hyperparameters, plain."""
        return self.seen.model

    @property
    def batch(self) -> Batch:
        """The rows."""
        return self.seen.batch

    @property
    def features(self) -> Features:
        """The rows' latent parameters before any data."""
        return self.seen.features

    def conditioned(self, rows: RowSites) -> tuple[ChainPosterior, Marginals]:
        """q given the past and these row sites, and what it says at the rows."""
        sites = self.base.sites + self.sites(rows)
        return self._conditioned(dataclasses.replace(self.base, sites=sites, filtered=None))

    @functools.cached_property
    def before(self) -> tuple[ChainPosterior, Marginals]:
        """q given the past alone."""
        return self._conditioned(self.base)

    def _conditioned(self, stretch: Stretch) -> tuple[ChainPosterior, Marginals]:
        gains = self.known.gains
        if stretch is not self.base:
            gains = gains + (stretch.gains - self.base.gains)
        weights = Weights.of(gains)
        pairs = taken(stretch.pairs(self.where.where - self.first), self._of_row)
        at_rows = self.seen.marginals(pairs, weights)
        return ChainPosterior(stretch, gains, weights), at_rows

    def absorbed(self, rows: RowSites, segment: Segment, fit: Fit | None) -> tuple[Forward, Gains]:
        """What is known at the states of the window, and how gains change, once rows are kept.

        Args:
            rows: The sites that are kept.
            segment: The window's with what they said.
            fit: The fit that they come from, if these are its sites as they are.
        """
        base = self.base
        if fit is not None:
            stretch = fit.posterior.stretch
        else:
            sites = self.known.mixing.sites(segment[self.first :].sums)
            stretch = dataclasses.replace(base, sites=sites, filtered=None)
        forward = joined(
            taken(self.window.forward, slice(self.first + 1)),
            taken(stretch.forward, slice(1, None)),
        )
        return forward, stretch.gains - base.gains

    # -- the stretch that the rows lie in ----------------------------------------------------------

    @functools.cached_property
    def where(self) -> ByInterval:
        """Rows by interval."""
        return ByInterval.of(self.place)

    @property
    def first(self) -> int:
        """The first interval with rows."""
        return int(self.where.where[0])

    @functools.cached_property
    def _of_row(self) -> Int[np.ndarray, " N"]:
        """The number of each row's interval among those with rows."""
        return np.searchsorted(self.where.where, self.place)

    @functools.cached_property
    def base(self) -> Stretch:
        """From the first interval with rows to the end of the window, without the rows."""
        begin, segment = self.first, self.window.segment
        law, mixing = self.known.law, self.known.mixing
        return Stretch(
            law.moves(segment.times[begin:]),
            mixing.sites(segment[begin:].sums),
            taken(self.window.forward, slice(begin, begin + 1)),
            self.window.after,
            taken(self.window.forward, slice(begin, None)),
        )

    def sites(self, rows: RowSites) -> PairSites:
        """What rows say of the states of the stretch."""
        seen, batch = self.seen, self.batch
        size, weights = seen.design.shape[1], seen.basis.shape[1]
        whole = np.concatenate([seen.design, seen.basis], axis=1)
        bent = times(batch, rows.precision, whole)
        pulled = whole * rows.linear[:, None]
        columns = 1 + weights
        both = np.einsum("ri,rj->rij", whole, bent)
        by_row = self._of_flat
        where, total = by_row.where - self.first, self.base.moves.noise.shape[0]
        linear = np.zeros((total, size, columns))
        precision, gram = np.zeros((total, size, size)), np.zeros((total, columns, columns))
        summed, sum_pull = by_row.summed(both), by_row.summed(pulled)
        precision[where] = summed[:, :size, :size]
        linear[where, :, 0] = sum_pull[:, :size]
        linear[where, :, 1:] = -summed[:, :size, size:]
        gram[where, 0, 1:] = gram[where, 1:, 0] = sum_pull[:, size:]
        gram[where, 1:, 1:] = -summed[:, size:, size:]
        return PairSites(linear, precision, gram)

    @functools.cached_property
    def _of_flat(self) -> ByInterval:
        """Latent parameters of rows by interval."""
        if self.batch.flat_size == self.batch.size:
            return self.where
        return ByInterval.of(self.seen.of_latents(self.place))

    # -- what is kept ------------------------------------------------------------------------------

    def said(self, rows: RowSites) -> list[GroupSums]:
        """What rows said of natural states, unmixed and at unit noise, by interval and channel."""
        model, batch, outputs = self.model, self.batch, self.model.outputs
        features = np.concatenate([self.seen.between.design, self.seen.values], axis=1)
        upper, lower, _ = triangle(features.shape[1])
        found = []
        for group in batch.groups:
            strength = model.channels[group.channel].likelihood.strength
            own, by = features[group.rows], ByInterval.of(self.place[group.rows])
            squares = own[:, upper] * own[:, lower]
            b = rows.linear[group.flat].reshape(-1, group.latents) / strength
            p = rows.precision[group.run][group.within] / strength
            pairs, j, k = outputs.within[group.channel]
            first = int(outputs.first[group.channel])
            found.append(
                GroupSums(
                    by.where,
                    slice(first, first + group.latents),
                    pairs,
                    by.summed(b[:, :, None] * own[:, None, :]),
                    by.summed(p[:, j, k][:, :, None] * squares[:, None, :]),
                )
            )
        return found


def meeting(known: Known, model: MultiTaskGP, batch: Batch) -> ChainSetting:
    """Rows that meet a chain whose times hold them.

    Args:
        known: The chain.
        model: Plain.
        batch: The rows.
    """
    x = batch.x[:, 0]
    window = known.window(float(x.min()), float(x.max()))
    place, times = window.segment.place(x), window.segment.times
    seen = Seen.of(known, model, batch, (times[place], times[place + 1]))
    return ChainSetting(known, window, place, seen)
