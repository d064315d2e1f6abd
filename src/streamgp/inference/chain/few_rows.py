"""Rows that are few and close together: all that is needed of a chain is the joint q(f) at them."""

import dataclasses
import functools
import itertools
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import block_diag, lapack

from streamgp.data.batch import Batch, Run
from streamgp.inference.chain.elements import (
    Forward,
    Gains,
    joined,
    of_intervals,
    onward,
    reached,
    taken,
)
from streamgp.inference.chain.segments import Segment
from streamgp.inference.chain.setting import ChainSetting
from streamgp.inference.chain.stretch import Stretch
from streamgp.inference.e_step import Fit
from streamgp.inference.posterior import Marginals, add
from streamgp.inference.sites import RowSites
from streamgp.model.mixing import Features
from streamgp.model.multitask import MultiTaskGP
from streamgp.numerics.batched import solve

_MOST_ROWS = 192  # latent parameters: from about there on, a pass over the intervals is faster
_MOST_INTERVALS = 128  # from the first to the last one with rows


class Evidence(NamedTuple):
    """The evidence of all data, new rows included."""

    log_evidence: float


@dataclasses.dataclass(frozen=True, eq=False)
class JointRows:
    """Rows whose f is normal before their own sites: N(offset + mean, covariance + slack).

    Attributes:
        model: Plain.
        batch: The rows.
        features: Offset and slack of the rows.
        mean: Of their f, less the offset.
        covariance: Of their f, slack apart.
        evidence: The log evidence of all earlier data.
    """

    model: MultiTaskGP
    batch: Batch
    features: Features
    mean: Float[np.ndarray, " R"]
    covariance: Float[np.ndarray, "R R"]
    evidence: float

    @property
    def blocks(self) -> int:
        """One: all rows are joint."""
        return 1

    def conditioned(self, rows: RowSites) -> tuple[Evidence, Marginals]:
        """q given the past and these row sites, and what it says at the rows.

        With f ~ N(m, V) before sites (b, P), mean and covariance are (I + VP)⁻¹ times m + Vb and V.
        """
        linear, mean, spread = rows.linear[:, 0], self.mean, self.covariance
        scaled, matrix = _times_precision(mean, spread, rows)
        matrix.flat[:: len(matrix) + 1] += 1.0
        sides = np.column_stack([mean + spread @ linear, spread])
        factors, _, solved, failed = lapack.dgesv(matrix, sides, 1, 1)
        found, whole = solved[:, 0], solved[:, 1:]
        rest = linear - scaled
        with np.errstate(all="ignore"):  # what is not finite is refused later
            gained = 0.5 * float((linear + rest) @ mean + rest @ (found - mean))
            gained -= 0.5 * float(np.sum(np.log(np.abs(factors.diagonal()))))
        explained = tuple(
            diagonal_blocks(whole[run.flat, run.flat], run) for run in self.batch.runs
        )
        at_rows = Marginals(
            mean=self.features.offset + found,
            covariance=add(explained, self.features.slack),
            block_means=found[:, None],
            explained=explained,
        )
        return Evidence(np.nan if failed else self.evidence + gained), at_rows

    def told(self, rows: RowSites) -> tuple[Float[np.ndarray, " R"], Float[np.ndarray, "R R"]]:
        """(I + PV)⁻¹(b − Pm) and (I + PV)⁻¹P: per unit of covariance, how means and V change."""
        precision = on_diagonal(rows)
        rest = rows.linear[:, 0] - precision @ self.mean
        matrix = precision @ self.covariance
        matrix.flat[:: len(matrix) + 1] += 1.0
        solved = solve(matrix, np.concatenate([rest[:, None], precision], axis=1))
        bent = solved[:, 1:]
        return solved[:, 0], 0.5 * (bent + bent.T)


class FewRows(ChainSetting):
    """Rows that meet a chain in few intervals.

    E steps need many rounds, and each of them only the rows' own latent parameters.
    """

    @staticmethod
    def suits(batch: Batch, place: Int[np.ndarray, " N"]) -> bool:
        """Whether rows in these intervals are few and close together."""
        return batch.flat_size <= _MOST_ROWS and int(np.ptp(place)) < _MOST_INTERVALS

    def conditioned(self, rows: RowSites) -> tuple[Evidence, Marginals]:  # type: ignore[override]
        """q given the past and these row sites, and what it says at the rows."""
        return self.joint.conditioned(rows)

    def absorbed(self, rows: RowSites, segment: Segment, fit: Fit | None) -> tuple[Forward, Gains]:
        """What is known at the states of the window, and how gains change, once rows are kept.

        States after the last row are reached in one step if there are no data among or after them.
        """
        base, stop = self.base, self._stop
        rest = base.sites.precision[stop:].any() or base.after.precision.any()
        if rest or self.first + stop == segment.count:
            return ChainSetting.absorbed(self, rows, segment, None)
        inside, here = slice(stop), slice(self.first, self.first + stop)
        moves, before = taken(base.moves, inside), base.before
        sites = self.known.mixing.sites(segment[here].sums)
        now = Stretch(moves, sites, before, base.after)
        then = Stretch(moves, taken(base.sites, inside), before, base.after)
        times = segment.times[self.first + stop :]
        later = self.known.law.moves_over(times[1:] - times[0])
        forward = joined(
            taken(self.window.forward, slice(self.first + 1)),
            taken(now.forward, slice(1, None)),
            reached(taken(now.forward, slice(-1, None)), later),
        )
        return forward, now.gains - then.gains

    @property
    def _stop(self) -> int:
        """How many intervals of the stretch there are up to the last row."""
        return int(self.where.where[-1]) - self.first + 1

    @functools.cached_property
    def joint(self) -> JointRows:
        """The rows by themselves."""
        weights = self.known.weights
        mean, covariance = self._explained
        mean[:, 1:] += self.seen.basis
        of_beta = mean[:, 1:]
        covariance += of_beta @ weights.covariance @ of_beta.T
        own = (self.model, self.batch, self.features)
        return JointRows(*own, mean @ weights.first, covariance, weights.log_evidence)

    @property
    def _explained(self) -> tuple[Float[np.ndarray, "R k"], Float[np.ndarray, "R R"]]:
        """What states tell of the rows given β: the mean, as a function of g, and the covariance.

        Given all earlier data, each state is T·(the one before it) plus what is independent of it.
        So the rows of one interval after the other are met by the covariance of all rows before
        them with the state where it begins: the joint covariance of states is never needed.
        """
        base, size, count = self.base, self.known.law.size, self._stop
        inside = slice(count)
        pairs, steps = base.pairs(inside), base.moves.transition[inside]
        if not base.is_quiet:
            elements = of_intervals(taken(base.moves, inside), taken(base.sites, inside))
            steps = onward(elements, taken(base.backward, slice(1, count + 1)))
        place = self.seen.of_latents(self.place) - self.first
        order = np.argsort(place, kind="stable")
        design, ends = self.seen.design[order], np.searchsorted(place[order], range(count + 1))
        mean, covariance = np.empty((len(order), pairs.mean.shape[2])), np.empty((len(order),) * 2)
        reach = np.zeros((0, size))  # the covariance of the rows so far with a state
        for k, (begin, end) in enumerate(itertools.pairwise(ends.tolist())):
            own = design[begin:end]
            seen = own @ pairs.covariance[k]
            mean[begin:end] = own @ pairs.mean[k]
            covariance[begin:end, begin:end] = seen @ own.T
            onto = own[:, :size] + own[:, size:] @ steps[k]  # of those before, through one state
            covariance[begin:end, :begin] = across = onto @ reach.T
            covariance[:begin, begin:end] = across.T
            reach = np.concatenate([reach @ steps[k].T, seen[:, size:]])
        back = np.argsort(order)
        return mean[back], covariance[np.ix_(back, back)]


def _times_precision(
    mean: Float[np.ndarray, " R"], spread: Float[np.ndarray, "R R"], rows: RowSites
) -> tuple[Float[np.ndarray, " R"], Float[np.ndarray, "R R"]]:
    """Pm and VP."""
    if all(own.shape[1] == 1 for own in rows.precision):
        precision = np.concatenate([np.ravel(own) for own in rows.precision])
        return precision * mean, spread * precision
    precision = on_diagonal(rows)
    return precision @ mean, spread @ precision


def on_diagonal(rows: RowSites) -> Float[np.ndarray, "R R"]:
    """The precisions of all rows as one matrix."""
    if all(own.shape[1] == 1 for own in rows.precision):
        return np.diag(np.concatenate([np.ravel(own) for own in rows.precision]))
    return block_diag(*(p for own in rows.precision for p in own))


def diagonal_blocks(matrix: Float[np.ndarray, "r r"], run: Run) -> Float[np.ndarray, "n J J"]:
    """The block of each row."""
    j = run.latents
    if j == 1:
        return matrix.diagonal().copy()[:, None, None]
    count = len(matrix) // j
    rows = np.arange(count)
    return matrix.reshape(count, j, count, j)[rows, :, rows]
