"""Doubt: whether new rows say that hyperparameters do not hold any more.

Each row is scored before it is learned. If its normal scores are wider or narrower than predicted,
two running sums grow: the nats by which recent rows would be more likely under four times, and
under a quarter of, the predicted variance (Page, 1954). Beyond a limit, hyperparameters are learned
without waiting for more rows. If that gains less than the limit, the limit doubles for the moment.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

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
        doubt = self
        for number, score in enumerate(scores):
            doubt = doubt.seen((score,))
            if doubt.is_strong:
                return number
        return len(scores)

    def seen(self, scores: Iterable[float]) -> "Doubt":
        """With the normal scores of more rows, in their order; NaN says nothing."""
        wider, narrower = self.wider, self.narrower
        for score in scores:
            if score == score:
                square = min(abs(score), _LARGEST) ** 2
                wider = max(wider + _WIDER[0] + _WIDER[1] * square, 0.0)
                narrower = max(narrower + _NARROWER[0] + _NARROWER[1] * square, 0.0)
        return Doubt(wider, narrower, self.limit)

    def settled(self, gain: float) -> "Doubt":
        """After hyperparameters were learned, which gained so many nats."""
        if not self.is_strong:
            return Doubt(limit=self.limit)
        return Doubt(limit=_LIMIT if gain > self.limit else 2 * self.limit)
