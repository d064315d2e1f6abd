"""Quantiles of a stream of numbers, kept by the numbers' own verdict.

A quantile is moved up a little by a number above it and down a little by one below, in such parts
that it stays where it is if the share of numbers below is its level. As long as the value does not
run away, the share of numbers that fell below it therefore tends to the level, whatever the numbers
are (Gibbs & Candès, 2021; the quantile tracker of Angelopoulos, Candès & Tibshirani, 2023). No
distribution is assumed, and changes are followed.

The quantiles at 0.1 and 0.9, which many numbers tell, give a centre and a spread. All others are
kept in units of these, so that the tails follow a change of scale long before they have seen it.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from streamgp.registry import storable

LEVELS = (0.005, 0.025, 0.25, 0.5, 0.75, 0.975, 0.995)  # beside 0.1 and 0.9
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
        low: The quantile at 0.1.
        high: The quantile at 0.9.
        others: Those at `LEVELS`, from the centre of the two and in units of their spread.
    """

    low: float = -_END
    high: float = _END
    others: tuple[float, ...] = _SCORES

    @property
    def spread(self) -> float:
        """The distance between the levels 0.1 and 0.9, in units of a standard normal's."""
        return (self.high - self.low) / (2 * _END)

    def seen(self, batches: Sequence[Sequence[float]]) -> "QuantileTracker":
        """The tracker after more numbers, in their order.

        Numbers of one batch were predicted together and are likely to err together. They count as
        the root of as many.
        """
        low, high, others = self.low, self.high, list(self.others)
        for numbers in batches:
            size = len(numbers)
            rate = min(_RATE * math.sqrt(size), _LARGEST) / size
            centre, spread = 0.5 * (low + high), (high - low) / (2 * _END)
            spread = min(max(spread, _NARROWEST), _WIDEST)
            step = rate * spread
            if size == 1:  # without loops: a stream may bring a million of them
                number = numbers[0]
                place = (number - centre) / spread
                low += 0.1 * step if number > low else -0.9 * step
                high += 0.9 * step if number > high else -0.1 * step
                others = [
                    other + (up if place > other else down)
                    for other, (up, down) in zip(others, _SINGLE)  # noqa: B905 (for speed)
                ]
                continue
            places = [(number - centre) / spread for number in numbers]
            low += step * (0.1 * size - _up_to(numbers, low))
            high += step * (0.9 * size - _up_to(numbers, high))
            others = [
                other + rate * (level * size - _up_to(places, other))
                for other, level in zip(others, LEVELS, strict=True)
            ]
        return QuantileTracker(low, max(low, high), tuple(others))

    def quantile(self, level: float) -> float:
        """The quantile at any level, by interpolation between those that are kept.

        Beyond the outermost levels it goes on as a normal's would, in units of the spread.
        """
        score, spread = float(special.ndtri(level)), max(self.spread, _NARROWEST)
        centre = 0.5 * (self.low + self.high)
        values = [centre + spread * other for other in self.others]
        scores = [*_SCORES[:2], -_END, *_SCORES[2:5], _END, *_SCORES[5:]]
        values = [*values[:2], self.low, *values[2:5], self.high, *values[5:]]
        ordered = np.maximum.accumulate(values)  # neighbours may cross for a while
        within = float(np.interp(score, scores, ordered))
        beyond = score - min(max(score, scores[0]), scores[-1])
        return within + beyond * spread

    def is_finite(self) -> bool:
        """Whether every quantile is a number, and there is one for every level."""
        numbers = (self.low, self.high, *self.others)
        return len(self.others) == len(LEVELS) and all(map(math.isfinite, numbers))


def _up_to(numbers: Sequence[float], value: float) -> int:
    """How many numbers are no larger."""
    return sum([number <= value for number in numbers])
