"""Watch: is the stream still what the model takes it for?

Each update scores its batch before learning from it. The watch keeps a running mean and spread of a
channel's scores; `surprise` is how many of those spreads the newest one lies below the mean. A
single bad batch may be chance, so a change is called by a cumulative sum (Page, 1954): surprise in
excess of what is usual adds up, and anything else lets it decay.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

from streamgp.registry import storable

_WARM_UP = 8  # scores before a spread is trusted
_MEMORY = 50.0  # scores that mean and spread look back on
_USUAL = 0.5  # surprise that is let pass at every update
_ALARM = 12.0  # the sum at which a change is called
_LARGEST = 6.0  # a single score adds at most this: one outlier is not a change


@storable
class Watch(NamedTuple):
    """The running record of one channel's scores."""

    scores: int = 0
    mean: float = 0.0
    variance: float = 0.0
    excess: float = 0.0

    def seen(self, scores: Iterable[float]) -> tuple["Watch", float, bool]:
        """The record with more scores, the largest surprise, and whether the stream has changed."""
        count, mean, variance, excess = self
        largest, is_change = -math.inf, False
        for score in scores:  # plain numbers and few calls: a stream may bring a million of them
            root = math.sqrt(variance)
            surprise = 0.0
            if count >= _WARM_UP:
                spread = root + 1e-3 * abs(mean) + 1e-12
                surprise = (mean - (score if score > -1e300 else -1e300)) / spread
            if surprise > largest:
                largest = surprise
            excess += (surprise if surprise < _LARGEST else _LARGEST) - _USUAL
            if excess < 0.0:
                excess = 0.0
            elif excess > _ALARM:
                is_change, excess = True, 0.0
            floor = mean - _LARGEST * root if count else -1e150
            if score < floor:
                score = floor
            count += 1
            rate = 1.0 / (count if count < _MEMORY else _MEMORY)
            away = score - mean
            variance = (1 - rate) * (variance + rate * away * away)
            mean += rate * away
        return Watch(count, mean, variance, excess), largest, is_change
