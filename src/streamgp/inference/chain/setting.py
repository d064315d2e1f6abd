"""Rows that meet a chain: what they see of its states, and what their sites say of them."""

import dataclasses
import functools
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import block_diag

from streamgp.data.batch import Batch, Run
from streamgp.inference.chain.elements import Forward, Gains, PairSites, joined, taken
from streamgp.inference.chain.known import Known, Window
from streamgp.inference.chain.law import Between
from streamgp.inference.chain.segments import ByInterval, GroupSums, Segment, triangle
from streamgp.inference.chain.stretch import Pairs, Stretch, Weights, paired
from streamgp.inference.e_step import Fit
from streamgp.inference.posterior import Marginals, add
from streamgp.inference.sites import RowSites, inner, times
from streamgp.model.mixing import Features, Mixed, basis_design
from streamgp.model.multitask import MultiTaskGP


@dataclasses.dataclass(frozen=True, eq=False)
class Seen:
    """What rows see of the intervals that they lie in.

    Attributes:
        model: Plain.
        batch: The rows.
        between: The latent functions at the rows, from the states at the ends of their intervals.
        design: f = offset + design·x + basis·β + slack, x = (a, c) scaled.
        basis: The mean functions' part of it.
        features: Offset and slack of the rows.
    """

    model: MultiTaskGP
    batch: Batch
    between: Between
    design: Float[np.ndarray, "R 2d"]
    basis: Float[np.ndarray, "R K"]
    features: Features

    @classmethod
    def of(
        cls, known: Known, model: MultiTaskGP, batch: Batch, ends: tuple[np.ndarray, np.ndarray]
    ) -> "Seen":
        """Rows between two states each.

        Args:
            known: The chain.
            model: Plain.
            batch: The rows.
            ends: Where the interval of each row begins, and where it ends.
        """
        law, (left, right) = known.law, ends
        between = law.between(left, batch.x[:, 0], right)
        return cls.through(known, model, batch, between)

    @classmethod
    def through(cls, known: Known, model: MultiTaskGP, batch: Batch, between: Between) -> "Seen":
        """Rows that see states in some way."""
        basis = basis_design(model, batch)
        mixed = Mixed.of(model, batch, factorised=False, basis=basis)
        scaled = between.design * np.tile(known.law.scale, 2)
        owner = np.tile(known.law.owner, 2)
        design = np.empty((batch.flat_size, scaled.shape[1]))
        for run, w in zip(batch.runs, mixed.weights, strict=True):
            part = w[:, :, owner] * scaled[run.rows, None, :]
            design[run.flat] = part.reshape(-1, scaled.shape[1])
        features = Features((), mixed.slack(between.open), mixed.offset)
        return cls(model, batch, between, design, basis, features)

    def of_latents(self, values: Int[np.ndarray, " N"]) -> Int[np.ndarray, " R"]:
        """Numbers of rows as numbers of their latent parameters."""
        if self.batch.flat_size == self.batch.size:
            return values
        runs = [np.repeat(values[run.rows], run.latents) for run in self.batch.runs]
        return np.concatenate(runs)

    def marginals(self, pairs: Pairs, weights: Weights) -> Marginals:
        """q(f) of each row, from q of the states around it and of β; one pair per row."""
        batch = self.batch
        flat = self.of_latents(np.arange(batch.size))
        coefficients = np.einsum("ri,rik->rk", self.design, pairs.mean[flat])
        coefficients[:, 1:] += self.basis
        block_means = coefficients @ weights.first
        bent = np.einsum("ri,rij->rj", self.design, pairs.covariance[flat])
        own = inner(batch, bent, self.design)
        of_beta = coefficients[:, 1:]
        explained = add(own, inner(batch, of_beta @ weights.covariance, of_beta))
        return Marginals(
            mean=self.features.offset + block_means,
            covariance=add(explained, self.features.slack),
            block_means=block_means[:, None],
            explained=explained,
        )


class ChainPosterior(NamedTuple):
    """What all data say, new rows included, of β and of a stretch of a chain, if that is needed."""

    stretch: Stretch | None
    gains: Gains
    weights: Weights

    @property
    def log_evidence(self) -> float:
        """log ∫ p(s, β) t(s, β)."""
        return self.weights.log_evidence


@dataclasses.dataclass(frozen=True, eq=False)
class ChainSetting:
    """A batch that meets a chain.

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

    @classmethod
    def of(cls, known: Known, model: MultiTaskGP, batch: Batch) -> "ChainSetting":
        """Rows that lie within a chain's times."""
        x = batch.x[:, 0]
        window = known.window(float(x.min()), float(x.max()))
        place = window.segment.place(x)
        times = window.segment.times
        seen = Seen.of(known, model, batch, (times[place], times[place + 1]))
        is_last = window.stop == len(known.links) and bool(np.all(place == len(times) - 2))
        return (LastInterval if is_last else cls)(known, window, place, seen)

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

    @property
    def blocks(self) -> int:
        """One: states and weights are joint."""
        return 1

    def conditioned(self, rows: RowSites) -> tuple[ChainPosterior, Marginals]:
        """q given the past and these row sites, and what it says at the rows."""
        stretch = dataclasses.replace(self.base, sites=self.base.sites + self.sites(rows))
        return self._conditioned(stretch)

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
            stretch = dataclasses.replace(base, sites=sites)
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
        )

    def sites(self, rows: RowSites) -> PairSites:
        """What rows say of the states of the stretch."""
        seen, batch = self.seen, self.batch
        size, weights = seen.design.shape[1], seen.basis.shape[1]
        whole = np.concatenate([seen.design, seen.basis], axis=1)
        bent = times(batch, rows.precision, whole)
        pulled = whole * rows.linear
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
        model, batch = self.model, self.batch
        features = np.concatenate([self.seen.between.design, model.basis(batch)], axis=1)
        upper, lower, _ = triangle(features.shape[1])
        found = []
        for group in batch.groups:
            strength = model.channels[group.channel].likelihood.strength
            own, by = features[group.rows], ByInterval.of(self.place[group.rows])
            squares = own[:, upper] * own[:, lower]
            b = rows.linear[group.flat, 0].reshape(-1, group.latents) / strength
            p = rows.precision[group.run][group.within] / strength
            pairs = model.outputs.pairs_of(group.channel)
            first = int(model.outputs.first[group.channel])
            j, k = model.outputs.left[pairs] - first, model.outputs.right[pairs] - first
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


class LastInterval(ChainSetting):
    """Rows that all lie in the last interval of a chain, as those of most streams do.

    Nothing comes after them, so all that is needed are their own latent parameters f: given
    g = (1, β) these are N(by_g·g, spread) before the rows, and conditioning is on as many numbers
    as there are latent parameters.
    """

    @functools.cached_property
    def pair(self) -> Pairs:
        """The states at both ends of the interval before the rows."""
        window, last = self.window, slice(self.first, self.first + 1)
        moves = self.known.law.moves(window.segment.times[-2:])
        sites = self.known.mixing.sites(window.segment[last].sums)
        pairs = paired(taken(window.forward, last), moves, sites, window.after)
        return Pairs(pairs.mean[0], pairs.covariance[0])

    @functools.cached_property
    def by_g(self) -> Float[np.ndarray, "R k"]:
        """The mean of f, less its offset, as a function of g."""
        found = self.seen.design @ self.pair.mean
        found[:, 1:] += self.seen.basis
        return found

    @functools.cached_property
    def reach(self) -> Float[np.ndarray, "2d R"]:
        """The covariance of the states with f, given g."""
        return self.pair.covariance @ self.seen.design.T

    @functools.cached_property
    def spread(self) -> Float[np.ndarray, "R R"]:
        """The covariance of f given g, open variance apart."""
        return self.seen.design @ self.reach

    @functools.cached_property
    def before(self) -> tuple[ChainPosterior, Marginals]:
        """q given the past alone."""
        weights = self.known.weights
        at_rows = self._marginals(self.by_g, self.spread, weights)
        return ChainPosterior(None, self.known.gains, weights), at_rows

    def conditioned(self, rows: RowSites) -> tuple[ChainPosterior, Marginals]:
        """q given the past and these row sites, and what it says at the rows."""
        told = self._told(rows)
        gains = self.known.gains + told.gains
        weights = Weights.of(gains)
        by_g = self.by_g + self.spread @ told.pull
        spread = self.spread - self.spread @ told.precision @ self.spread
        return ChainPosterior(None, gains, weights), self._marginals(by_g, spread, weights)

    def absorbed(self, rows: RowSites, segment: Segment, fit: Fit | None) -> tuple[Forward, Gains]:
        """What is known at the states of the window, and how gains change, once rows are kept."""
        told, size = self._told(rows), self.known.law.size
        mean = self.pair.mean[size:] + self.reach[size:] @ told.pull
        gone = self.reach[size:] @ told.precision @ self.reach[size:].T
        spread = self.pair.covariance[size:, size:] - 0.5 * (gone + gone.T)
        last = Forward(mean[None], spread[None])
        return joined(taken(self.window.forward, slice(-1)), last), told.gains

    def _told(self, rows: RowSites) -> "_Told":
        """What sites on f say: T = (I + PV)⁻¹, so that f moves by V·T(b − P·by_g·g)."""
        linear, by_g, spread = rows.linear[:, 0], self.by_g, self.spread
        precision = block_diag(*(p for own in rows.precision for p in own))
        matrix = precision @ spread
        matrix.flat[:: len(matrix) + 1] += 1.0
        solved = np.linalg.solve(matrix, np.concatenate([linear[:, None], precision], axis=1))
        toward, bent = solved[:, 0], solved[:, 1:]
        bent = 0.5 * (bent + bent.T)
        pull = -bent @ by_g
        pull[:, 0] += toward
        gram = by_g.T @ (pull - np.outer(toward, np.eye(1, by_g.shape[1])))
        across = by_g.T @ toward
        gram[:, 0] += across
        gram[0] += across
        gram[0, 0] += linear @ spread @ toward
        evidence = -0.5 * float(np.linalg.slogdet(matrix)[1])
        return _Told(pull, bent, Gains(0.5 * (gram + gram.T), evidence))

    def _marginals(self, by_g: np.ndarray, spread: np.ndarray, weights: Weights) -> Marginals:
        block_means, of_beta = by_g @ weights.first, by_g[:, 1:]
        whole = spread + of_beta @ weights.covariance @ of_beta.T
        features = self.seen.features
        explained = tuple(
            _diagonal_blocks(whole[run.flat, run.flat], run) for run in self.batch.runs
        )
        return Marginals(
            mean=features.offset + block_means,
            covariance=add(explained, features.slack),
            block_means=block_means[:, None],
            explained=explained,
        )


class _Told(NamedTuple):
    """What sites say of f: how its mean moves per unit of covariance, and what they bend."""

    pull: Float[np.ndarray, "R k"]
    precision: Float[np.ndarray, "R R"]
    gains: Gains


def _diagonal_blocks(matrix: Float[np.ndarray, "r r"], run: Run) -> Float[np.ndarray, "n J J"]:
    """The block of each row."""
    j = run.latents
    if j == 1:
        return matrix.diagonal().copy()[:, None, None]
    count = len(matrix) // j
    rows = np.arange(count)
    return matrix.reshape(count, j, count, j)[rows, :, rows]
