"""Quantiles of a stream of numbers, kept by the numbers' own verdict.

A quantile is moved up a little by a number above it and down a little by one below, in such parts
that it stays where it is if the share of numbers below is its level. As long as the value does not
run away, the share of numbers that fell below it therefore tends to the level, whatever the numbers
are (Gibbs & Candès, 2021; the quantile tracker of Angelopoulos, Candès & Tibshirani, 2023). No
distribution is assumed, and changes are followed.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy import special

from streamgp.registry import storable

LEVELS = (0.005, 0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975, 0.995)
_SCORES = tuple(float(special.ndtri(level)) for level in LEVELS)
_TENTH, _NINE_TENTHS = LEVELS.index(0.1), LEVELS.index(0.9)
_USUAL = _SCORES[_NINE_TENTHS] - _SCORES[_TENTH]  # between these two, of a standard normal
_RATE = 0.1  # of a step, in units of the spread
_NARROWEST, _WIDEST = 1e-3, 1e9  # spread that a step is in units of


@storable
class QuantileTracker(NamedTuple):
    """Quantiles at a few levels, of numbers that are standard normal until they show otherwise."""

    values: tuple[float, ...] = _SCORES

    @property
    def spread(self) -> float:
        """Between the levels 0.1 and 0.9, in units of a standard normal's."""
        return (self.values[_NINE_TENTHS] - self.values[_TENTH]) / _USUAL

    def seen(self, numbers: Iterable[float]) -> "QuantileTracker":
        """The tracker after more numbers, in their order."""
        values = list(self.values)
        for number in numbers:  # plain numbers: a stream may bring a million of them
            spread = (values[_NINE_TENTHS] - values[_TENTH]) / _USUAL
            step = _RATE * min(max(spread, _NARROWEST), _WIDEST)
            values = [
                value + step * (level if number > value else level - 1.0)
                for value, level in zip(values, LEVELS)  # noqa: B905 (it is slower if strict)
            ]
        return QuantileTracker(tuple(values))

    def quantile(self, level: float) -> float:
        """The quantile at any level, by interpolation between those that are kept.

        Beyond the outermost levels it goes on as a normal's would, in units of the spread.
        """
        score = float(special.ndtri(level))
        ordered = np.maximum.accumulate(self.values)  # neighbours may cross for a while
        within = float(np.interp(score, _SCORES, ordered))
        beyond = score - min(max(score, _SCORES[0]), _SCORES[-1])
        return within + beyond * max(self.spread, _NARROWEST)

    def is_finite(self) -> bool:
        """Whether every quantile is a number, and there is one for every level."""
        return len(self.values) == len(LEVELS) and all(map(math.isfinite, self.values))
