"""Calibration: whether what was predicted of a channel came as often as predicted.

Each row is scored before it is learned. A channel keeps moving averages of its scores, and tracks
the quantiles of its normal scores, which are standard normal if predictions are right. Calibrated
intervals are read off those quantiles.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
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
_BLOCK = 64  # rows that are gone through together


@storable
class Average(NamedTuple):
    """An exponentially weighted mean; of fewer numbers than it looks back on, nearly their mean."""

    weight: float = 0.0
    value: float = 0.0

    def seen(self, numbers: Float[np.ndarray, " n"]) -> "Average":
        """With more numbers, in their order. NaN is none."""
        numbers = numbers[~np.isnan(numbers)]
        weights = _KEPT ** np.arange(len(numbers))[::-1]
        old = self.weight * _KEPT ** len(numbers)
        total = old + float(np.sum(weights))
        if not total:
            return self
        return Average(total, (old * self.value + float(np.sum(weights * numbers))) / total)


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
        waiting: The scores of the rows that wait.
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

    def seen(self, scored: Float[np.ndarray, "n 6"], far: int) -> "Calibration":
        """The record with more rows, in their order, of which so many last ones are far out."""
        waiting = np.concatenate([self.waiting, scored])
        more = self._replace(far=far, waiting=waiting)
        while len(more.waiting) >= _BLOCK:
            more = more._folded(_BLOCK)
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
        usual = ~(np.abs(scored.score) > self.limit) & np.isfinite(scored.log_predictive)
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
            self.tracker.seen(scores[placed].tolist()),
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
