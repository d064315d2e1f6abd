"""Epochs: numbers that look like times in disguise."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from streamgp.data.axes import Axis, input_names

_FIRST, _LAST = 9e8, 2.2e9  # seconds since 1970: the middle of 1998, and 2039
_UNITS = {"s": ("seconds", 1.0), "ms": ("milliseconds", 1e3), "us": ("microseconds", 1e6)}
_UNITS["ns"] = ("nanoseconds", 1e9)


def epochs(x: Float[np.ndarray, "N P"], axes: Sequence[Axis]) -> str | None:
    """A sentence about a column of plain numbers that are likely to be times; None if none is.

    Args:
        x: The first inputs of a model.
        axes: What each column holds.
    """
    for axis, name, column in zip(axes, input_names(axes), x.T, strict=True):
        for unit, (word, per_second) in _UNITS.items():
            seconds = column / per_second
            if not axis.is_time and np.all((seconds > _FIRST) & (seconds < _LAST)):
                first = np.datetime64(round(seconds[0]), "s")
                return (
                    f"the inputs {name!r} look like {word} since 1970 (the first would be "
                    f"{first}), and are learned as plain numbers. Given as times they would be "
                    f'days, with dates in frames and pictures: `np.asarray(x).astype("M8[{unit}]")`'
                    f', or `pandas.to_datetime(x, unit="{unit}")`.'
                )
    return None
