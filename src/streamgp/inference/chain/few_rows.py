"""Rows that are few and close together: all that is needed of a chain is the joint q(f) at them."""

import dataclasses
import functools
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
        weights, size = self.known.weights, self.known.law.size
        mean, covariance = self._states
        design = np.zeros((self.batch.flat_size, len(mean)))
        interval = self.seen.of_latents(self.place) - self.first
        columns = (interval * size)[:, None] + np.arange(2 * size)
        np.put_along_axis(design, columns, self.seen.design, axis=1)
        by_g = design @ mean
        by_g[:, 1:] += self.seen.basis
        of_beta = by_g[:, 1:]
        spread = design @ covariance @ design.T + of_beta @ weights.covariance @ of_beta.T
        own = (self.model, self.batch, self.features)
        return JointRows(*own, by_g @ weights.first, spread, weights.log_evidence)

    @property
    def _states(self) -> tuple[Float[np.ndarray, "S k"], Float[np.ndarray, "S S"]]:
        """Mean, as a function of g, and covariance of all states around the rows.

        Given all earlier data, each state is T·(the one before it) plus what is independent of it.
        """
        base, size = self.base, self.known.law.size
        count = self._stop
        inside = slice(count)
        pairs = base.pairs(inside)
        elements = of_intervals(taken(base.moves, inside), taken(base.sites, inside))
        steps = onward(elements, taken(base.backward, slice(1, count + 1)))
        mean = np.concatenate([pairs.mean[:1, :size], pairs.mean[:, size:]])
        covariance = np.empty((count + 1, size, count + 1, size))
        covariance[0, :, 0] = pairs.covariance[0, :size, :size]
        for k, step in enumerate(steps):
            before = covariance[k, :, : k + 1].reshape(size, -1)
            across = (step @ before).reshape(size, k + 1, size)
            covariance[k + 1, :, : k + 1] = across
            covariance[: k + 1, :, k + 1] = np.moveaxis(across, 0, -1)
            covariance[k + 1, :, k + 1] = pairs.covariance[k, size:, size:]
        whole = (count + 1) * size
        return mean.reshape(whole, -1), covariance.reshape(whole, whole)


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
