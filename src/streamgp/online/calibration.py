"""Calibration: whether what was predicted of a channel came as often as predicted.

Each row is scored before it is learned. A channel keeps moving averages of its scores, and tracks
the quantiles of its normal scores, which are standard normal if predictions are right. Calibrated
intervals are read off those quantiles.
"""

import functools
import itertools
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy import special

from streamgp.inference.scoring import Scored
from streamgp.numerics.quantile_tracker import QuantileTracker
from streamgp.registry import storable

COVERED = (0.5, 0.8, 0.95)  # the central intervals whose coverage is kept
FAR = 8.0  # normal scores; a standard normal is there once in 10¹⁵ times
_MEMORY = 500.0  # rows that averages look back on
_KEPT = 1 - 1 / _MEMORY
_GOLDEN = 0.5 * (np.sqrt(5) - 1)
_ROUNDING = 1e-15
_BLOCK = 128  # rows that are gone through together,
_FIRST = 16  # and while there are fewer than that


@storable
class Average(NamedTuple):
    """An exponentially weighted mean; of fewer numbers than it looks back on, nearly their mean."""

    weight: float = 0.0
    value: float = 0.0

    def seen(self, numbers: Float[np.ndarray, " n"]) -> "Average":
        """With more numbers, in their order. Those that are not finite do not count."""
        numbers = numbers[np.isfinite(numbers)]
        weights = _fading(len(numbers))
        old = self.weight * _KEPT ** len(numbers)
        total = old + float(weights.sum())
        if not total:
            return self
        return Average(total, (old * self.value + float((weights * numbers).sum())) / total)


@functools.lru_cache(maxsize=256)
def _fading(count: int) -> Float[np.ndarray, " n"]:
    """The weights of so many numbers in a row."""
    return _KEPT ** np.arange(count)[::-1]


_NONE = Average()


@storable
class Calibration(NamedTuple):
    """The running record of where a channel's rows fell in what was predicted.

    Rows wait until there are enough to go through together, or until somebody asks: an update with
    one row need not pay for what is rarely looked at.

    Attributes:
        rows: How many rows there were, those that wait left out.
        nlpd: The mean of minus their log predictive densities, far rows left out: a single one
            would drown all others.
        crps: The mean of their continuous ranked probability scores, far rows left out; empty if
            the family has no formula.
        coverage: The share of rows in each of the `COVERED` intervals.
        tracker: The quantiles of their normal scores.
        far: How many rows have been far out in a row, up to now.
        waiting: The scores of the rows that wait; in the last column 1 if a row begins an update.
    """

    rows: int = 0
    nlpd: Average = _NONE
    crps: Average = _NONE
    coverage: tuple[Average, ...] = (_NONE,) * len(COVERED)
    tracker: QuantileTracker = QuantileTracker()
    far: int = 0
    waiting: Float[np.ndarray, "n 6"] = np.zeros((0, 6))

    @property
    def limit(self) -> float:
        """The normal score beyond which a row is far out.

        It is in units of what is usual: a model whose predictions are often too narrow is not
        believed when it calls a row impossible.
        """
        return FAR * max(self.tracker.spread, 1.0)

    def seen(
        self, scored: Float[np.ndarray, "n 6"], far: int, *, one_by_one: bool = False
    ) -> "Calibration":
        """The record with more rows.

        Args:
            scored: Their scores, in their order.
            far: How many of the last rows are far out.
            one_by_one: Whether each row was an update of its own.
        """
        waiting = np.concatenate([self.waiting, scored])
        waiting[len(self.waiting) :, -1] = 1.0 if one_by_one else np.arange(len(scored)) == 0
        more = self._replace(far=far, waiting=waiting)
        while len(more.waiting) >= (size := _FIRST if more.rows < _BLOCK else _BLOCK):
            more = more._folded(size if one_by_one else len(waiting))
        return more

    @property
    def settled(self) -> "Calibration":
        """The record without rows that wait."""
        return self._folded(len(self.waiting)) if len(self.waiting) else self

    def tracked(self) -> QuantileTracker:
        """The quantiles of all normal scores so far."""
        return self.settled.tracker

    def _folded(self, count: int) -> "Calibration":
        """With the first rows that wait counted in."""
        scored = Scored(self.waiting[:count])
        usual = ~(np.abs(scored.score) > self.limit)
        pit = self._transformed(scored)
        normal = special.ndtri(np.clip(pit, _ROUNDING, 1 - _ROUNDING))
        scores = np.where(np.isnan(scored.score), normal, scored.score)
        placed = ~np.isnan(scores)
        off = np.abs(pit[placed] - 0.5)
        return Calibration(
            self.rows + count,
            self.nlpd.seen(-scored.log_predictive[usual]),
            self.crps.seen(scored.crps[usual]),
            tuple(
                share.seen((off <= 0.5 * level) * 1.0)
                for share, level in zip(self.coverage, COVERED, strict=True)
            ),
            self.tracker.seen(_batches(scores, placed, self.waiting[:count, -1])),
            self.far,
            self.waiting[count:],
        )

    def _transformed(self, scored: Scored) -> Float[np.ndarray, " n"]:
        """P(Y ≤ y), somewhere in the jump at y if values are discrete.

        Places in the jump are multiples of the golden ratio, which fill it evenly. A stream thus
        ends the same however it is cut, and needs no random numbers.
        """
        place = (_GOLDEN * (self.rows + 1 + np.arange(len(scored.low)))) % 1.0
        pit = scored.low + place * (scored.high - scored.low)
        return np.where(np.isnan(pit), special.ndtr(scored.score), pit)


def _batches(
    scores: Float[np.ndarray, " n"],
    placed: Bool[np.ndarray, " n"],
    begins: Float[np.ndarray, " n"],
) -> list[list[float]]:
    """The scores that are there, by update."""
    if begins.all():
        return [[score] for score in scores[placed].tolist()]
    number = np.cumsum(begins)[placed]
    cuts = np.flatnonzero(np.diff(number)) + 1
    values, ends = scores[placed].tolist(), [0, *cuts.tolist(), len(number)]
    return [values[a:b] for a, b in itertools.pairwise(ends) if a < b]
