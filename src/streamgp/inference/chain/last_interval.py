"""Rows in the last interval of a chain, as those of most streams are."""

import functools
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Batch
from streamgp.inference.chain.elements import Forward, Gains, joined, taken
from streamgp.inference.chain.few_rows import FewRows, diagonal_blocks, on_diagonal
from streamgp.inference.chain.innovations import before_pairs
from streamgp.inference.chain.known import Known
from streamgp.inference.chain.seen import Seen
from streamgp.inference.chain.segments import Segment
from streamgp.inference.chain.setting import ChainPosterior, ChainSetting
from streamgp.inference.chain.stretch import Pairs, Weights, paired
from streamgp.inference.e_step import Fit
from streamgp.inference.posterior import Marginals, add
from streamgp.inference.sites import RowSites
from streamgp.model.multitask import MultiTaskGP
from streamgp.numerics.linalg import solve_with_log_det, symmetric


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
    is_last = window.stop == len(known.links) and bool((place == len(times) - 2).all())
    kind = LastInterval if is_last else FewRows if FewRows.suits(batch, place) else ChainSetting
    return kind(known, window, place, seen)


class LastInterval(ChainSetting):
    """Rows that all lie in the last interval of a chain, as those of most streams do.

    Nothing comes after them, so all that is needed are their own latent parameters f: given
    g = (1, β) these are N(by_g·g, spread) before the rows, and conditioning is on as many numbers
    as there are latent parameters.
    """

    @functools.cached_property
    def pair(self) -> Pairs:
        """The states at both ends of the interval before the rows."""
        window, last = self.window, slice(-1, None)
        segment = window.segment
        moves = self.known.law.moves(segment.times[-2:])
        before, sums = taken(window.forward, slice(-2, -1)), taken(segment.sums, last)
        if sums.precision.any() or sums.linear.any():
            pairs = paired(before, moves, self.known.mixing.sites(sums), window.after)
        else:
            pairs = Pairs(*before_pairs(before, moves))
        return Pairs(pairs.mean[0], pairs.covariance[0])

    @functools.cached_property
    def by_g(self) -> Float[np.ndarray, "R k"]:
        """The mean of f, less its offset, as a function of g."""
        found = self.seen.design @ self.pair.mean
        found[:, 1:] += self.seen.basis
        return found

    @functools.cached_property
    def reach(self) -> Float[np.ndarray, "dd R"]:
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
        precision = on_diagonal(rows)
        matrix = precision @ spread
        matrix.flat[:: len(matrix) + 1] += 1.0
        sides = np.concatenate([linear[:, None], precision], axis=1)
        solved, log_det = solve_with_log_det(matrix, sides)
        toward, bent = solved[:, 0], symmetric(solved[:, 1:])
        pull = -bent @ by_g
        gram = by_g.T @ pull
        pull[:, 0] += toward
        across = by_g.T @ toward
        gram[:, 0] += across
        gram[0] += across
        gram[0, 0] += linear @ spread @ toward
        return _Told(pull, bent, Gains(symmetric(gram), -0.5 * log_det))

    def _marginals(self, by_g: np.ndarray, spread: np.ndarray, weights: Weights) -> Marginals:
        block_means, of_beta = by_g @ weights.first, by_g[:, 1:]
        whole = spread + of_beta @ weights.covariance @ of_beta.T
        features = self.seen.features
        explained = tuple(
            diagonal_blocks(whole[run.flat, run.flat], run) for run in self.batch.runs
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
