"""Watch: is the stream still what the model takes it for?

Each update scores its batch before learning from it. The watch keeps a running mean and spread of a
channel's scores; `surprise` is how many of those spreads the newest one lies below the mean. A
single bad batch may be chance, so a change is called by a cumulative sum (Page, 1954): surprise in
excess of what is usual adds up, and anything else lets it decay.
"""

import math
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

    def surprise(self, score: float) -> float:
        """How many spreads below its usual a score is; zero while too few have been seen."""
        if self.scores < _WARM_UP:
            return 0.0
        spread = math.sqrt(self.variance) + 1e-3 * abs(self.mean) + 1e-12
        return (self.mean - max(score, -1e300)) / spread

    def seen(self, score: float) -> tuple["Watch", bool]:
        """The record with one more score, and whether the stream has changed."""
        surprise = self.surprise(score)
        total = max(0.0, self.excess + min(surprise, _LARGEST) - _USUAL)
        changed = total > _ALARM
        floor = self.mean - _LARGEST * math.sqrt(self.variance) if self.scores else -1e150
        score = max(score, floor)
        rate = 1.0 / min(self.scores + 1, _MEMORY)
        mean = self.mean + rate * (score - self.mean)
        variance = (1 - rate) * (self.variance + rate * (score - self.mean) ** 2)
        return Watch(self.scores + 1, mean, variance, 0.0 if changed else total), changed
