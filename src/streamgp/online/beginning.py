"""Beginning: what the first values of a model say of its scale, while they are few.

A model takes its scale from its first data. If that is a single value, its size is all there is to
go by, which is a poor guess: around 1000, values may differ by 1. So the first few are summed up,
and whenever hyperparameters are learned from one more of them, they start over from the scale of
all that were heard (docs/adr/0037).
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import special

from streamgp.data.batch import Rows
from streamgp.registry import storable

_FEW = 5  # values of a channel, from which on its scale is left to learning
_FEWEST = 3  # that tell a scale: two may lie close by chance
_DOUBT = 3.0  # of the size of a value as a guess of the scale: the deviation of the logarithm
_SAME = 1e-12  # relative: values that differ by no more are one value


@storable
class Beginning(NamedTuple):
    """The first values of the first channel: one of them, and sums over how far all are from it."""

    first: float
    values: int = 0
    total: float = 0.0
    squares: float = 0.0

    def seen(self, y: Float[np.ndarray, " n"]) -> "Beginning":
        """With more values."""
        apart = y - self.first
        return Beginning(
            self.first,
            self.values + len(y),
            self.total + float(apart.sum()),
            self.squares + float(apart @ apart),
        )

    @property
    def centre(self) -> float:
        """The mean of the values."""
        return self.first + self.total / self.values

    @property
    def scale(self) -> float | None:
        """The deviation to expect of further values; None if these cannot tell.

        The logarithm of the deviation has a normal prior, around the size of the first value. What
        n values say of it is nearly normal, too: their deviation squared is χ² with n − 1 degrees
        of freedom, whose logarithm has a digamma function as its mean and a trigamma function as
        its variance. The answer is the root of the expected square, so that it is the larger
        the fewer values there are.
        """
        left = self.squares - self.total**2 / self.values
        if self.values < _FEWEST or left <= self.values * (_SAME * self.first) ** 2:
            return None
        freedom = self.values - 1
        said = 0.5 * (math.log(left / 2) - special.digamma(freedom / 2))
        precision = 4 / special.polygamma(1, freedom / 2)
        size = abs(self.first) if abs(self.first) > _SAME else 1.0
        variance = 1 / (precision + _DOUBT**-2)
        return math.exp(variance * (precision * said + _DOUBT**-2 * math.log(size)) + variance)


def heard(beginning: Beginning | None, seen: int, rows: Rows) -> Beginning | None:
    """The beginning of the first channel with some rows; None if these do not belong to it.

    Args:
        beginning: Before the rows, if the channel has begun and has one.
        seen: Observations of the channel before the rows.
        rows: Those that come next.
    """
    if seen and beginning is None:
        return None
    y = rows.y[rows.channel == 0, 0]
    if not len(y):
        return None
    return (beginning or Beginning(float(y[0]))).seen(y)


def kept(beginning: Beginning | None, seen: int, rows: Rows, *, learned: bool) -> Beginning | None:
    """The beginning after some rows; None once the channel has learned from enough values."""
    now = heard(beginning, seen, rows) or beginning
    return None if now is None or (learned and now.values >= _FEW) else now
