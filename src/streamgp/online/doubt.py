"""Doubt: whether new rows say that hyperparameters do not hold any more.

Each row is scored before it is learned. If its normal scores are wider or narrower than predicted,
two running sums grow: the nats by which recent rows would be more likely under four times, and
under a quarter of, the predicted variance (Page, 1954). Beyond a limit, hyperparameters are learned
without waiting for more rows. If that gains less than the limit, the limit doubles for the moment.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.registry import storable

_LIMIT = 10.0  # nats: rows that fit reach it about once in 20,000 times
_RATIO = 4.0  # of variances that are told apart
_LARGEST = 12.0  # normal scores from which a row counts no more: it may be a single outlier
_WIDER = -0.5 * math.log(_RATIO), 0.5 * (1 - 1 / _RATIO)
_NARROWER = 0.5 * math.log(_RATIO), 0.5 * (1 - _RATIO)


@storable
class Doubt(NamedTuple):
    """The running sums.

    Attributes:
        wider: Nats for four times the predicted variance.
        narrower: Nats for a quarter of it.
        limit: The sum beyond which hyperparameters are learned.
    """

    wider: float = 0.0
    narrower: float = 0.0
    limit: float = _LIMIT

    @property
    def is_strong(self) -> bool:
        """Whether hyperparameters should be learned now."""
        return max(self.wider, self.narrower) > self.limit

    def until_strong(self, scores: Sequence[float]) -> int:
        """How many rows come before the one that makes it strong; all if none does."""
        strong = np.maximum(*self._sums(scores)) > self.limit
        return int(np.argmax(strong)) if strong.any() else len(scores)

    def seen(self, scores: Sequence[float]) -> "Doubt":
        """With the normal scores of more rows, in their order; NaN says nothing."""
        if not len(scores):
            return self
        wider, narrower = self._sums(scores)
        return Doubt(float(wider[-1]), float(narrower[-1]), self.limit)

    def _sums(
        self, scores: Sequence[float]
    ) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Both sums after each row. They never fall below zero."""
        square = np.minimum(np.abs(scores), _LARGEST) ** 2
        told = ~np.isnan(square)
        square = np.where(told, square, 0.0)
        found = []
        for start, (constant, slope) in ((self.wider, _WIDER), (self.narrower, _NARROWER)):
            path = start + np.cumsum(np.where(told, constant + slope * square, 0.0))
            found.append(path - np.minimum(np.minimum.accumulate(path), 0.0))
        return found[0], found[1]

    def settled(self, gain: float) -> "Doubt":
        """After hyperparameters were learned, which gained so many nats."""
        if not self.is_strong:
            return Doubt(limit=self.limit)
        return Doubt(limit=_LIMIT if gain > self.limit else 2 * self.limit)
