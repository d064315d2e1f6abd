"""Quantiles of a stream of numbers, kept by the numbers' own verdict.

A quantile is moved up a little by a number above it and down a little by one below, in such parts
that it stays where it is if the share of numbers below is its level. As long as the value does not
run away, the share of numbers that fell below it therefore tends to the level, whatever the numbers
are (Gibbs & Candès, 2021; the quantile tracker of Angelopoulos, Candès & Tibshirani, 2023). No
distribution is assumed, and changes are followed.

Two quantiles, at 0.1 and 0.9, which many numbers tell, give a centre and a spread. All levels, the
two among them, are kept in units of these, so that the tails follow a change of scale long before
they have seen it, and so that every number counts the same however large the spread was.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from streamgp.registry import storable

LEVELS = (0.005, 0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975, 0.995)
_SCORES = tuple(float(special.ndtri(level)) for level in LEVELS)
_END = float(special.ndtri(0.9))
_RATE = 0.1  # of a step by one number, in units of the spread
_SINGLE = tuple((_RATE * level, _RATE * (level - 1)) for level in LEVELS)  # steps, up and down
_LARGEST = 1.0  # step by many numbers at once, likewise
_NARROWEST, _WIDEST = 1e-3, 1e9  # spread that a step is in units of


@storable
class QuantileTracker(NamedTuple):
    """Quantiles of numbers that are standard normal until they show otherwise.

    Attributes:
        low: About the quantile at 0.1.
        high: About the quantile at 0.9.
        places: The quantiles at `LEVELS`, from the centre of the two and in units of their spread.
    """

    low: float = -_END
    high: float = _END
    places: tuple[float, ...] = _SCORES

    @property
    def spread(self) -> float:
        """The distance between the levels 0.1 and 0.9, in units of a standard normal's."""
        return (self.high - self.low) / (2 * _END)

    @property
    def centre(self) -> float:
        """The middle between the levels 0.1 and 0.9."""
        return 0.5 * (self.low + self.high)

    @property
    def width(self) -> float:
        """The spread, where it is not too small to divide by."""
        return max(self.spread, _NARROWEST)

    def seen(self, batches: Sequence[Sequence[float]]) -> "QuantileTracker":
        """The tracker after more numbers, in their order.

        Numbers of one batch were predicted together and are likely to err together. They count for
        less than as many that came one by one: in proportion to the root of their number.
        """
        if all(len(numbers) == 1 for numbers in batches):
            return self._seen_singly([number for (number,) in batches])
        low, high, places = self.low, self.high, list(self.places)
        for numbers in batches:
            size = len(numbers)
            rate = min(_RATE * size, 2 * _RATE * math.sqrt(size), _LARGEST) / size
            centre, spread = 0.5 * (low + high), (high - low) / (2 * _END)
            spread = min(max(spread, _NARROWEST), _WIDEST)
            step = rate * spread
            standard = [(number - centre) / spread for number in numbers]
            low += step * (0.1 * size - _up_to(numbers, low))
            high += step * (0.9 * size - _up_to(numbers, high))
            places = [
                place + rate * (level * size - _up_to(standard, place))
                for place, level in zip(places, LEVELS, strict=True)
            ]
        return QuantileTracker(low, max(low, high), tuple(places))

    def _seen_singly(self, numbers: Sequence[float]) -> "QuantileTracker":
        """After numbers that came one by one. A stream may bring a million of them.

        The two ends need no other level, so they go first. Then each level has a loop of its own.
        """
        low, high = self.low, self.high
        standard: list[float] = []
        for number in numbers:
            spread = (high - low) / (2 * _END)
            if not _NARROWEST < spread < _WIDEST:
                spread = min(max(spread, _NARROWEST), _WIDEST)
            standard.append((number - 0.5 * (low + high)) / spread)
            step = _RATE * spread
            low += 0.1 * step if number > low else -0.9 * step
            high += 0.9 * step if number > high else -0.1 * step
        places: list[float] = []
        for place, (up, down) in zip(self.places, _SINGLE, strict=True):
            for at in standard:
                place += up if at > place else down
            places.append(place)
        return QuantileTracker(low, max(low, high), tuple(places))

    def quantile(self, level: float) -> float:
        """The quantile at any level, by interpolation between those that are kept.

        Beyond the outermost levels it goes on as a normal's would, in units of the spread.
        """
        score = float(special.ndtri(level))
        ordered = np.maximum.accumulate(self.places)  # neighbours may cross for a while
        within = float(np.interp(score, _SCORES, ordered))
        beyond = score - min(max(score, _SCORES[0]), _SCORES[-1])
        return self.centre + self.width * (within + beyond)

    def is_finite(self) -> bool:
        """Whether every quantile is a number, and there is one for every level."""
        numbers = (self.low, self.high, *self.places)
        return len(self.places) == len(LEVELS) and all(map(math.isfinite, numbers))


def _up_to(numbers: Sequence[float], value: float) -> int:
    """How many numbers are no larger."""
    return sum([number <= value for number in numbers])
