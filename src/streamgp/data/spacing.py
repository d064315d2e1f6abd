"""Spacing: how far apart the rows of an input are, where they are evenly spaced."""

import numpy as np
from jaxtyping import Float

from streamgp.data.axes import Axis
from streamgp.data.durations import rounded

MONTH = 365.25 / 12  # days, on average

FEWEST = 4  # steps that tell a spacing: two rows may be far apart by chance
_STRAY = 2  # steps that may be short by accident: a single row that came between makes two
_EVEN = 0.9  # the part of the steps that are multiples of the spacing, where rows are even
_SHIFT = 3.0  # days by which weekends and holidays move the rows of a month
_SAME = 1e-9  # of the stretch of all rows: steps that are no longer are rounding


def is_told(x: Float[np.ndarray, " N"]) -> bool:
    """Whether so many places tell how far apart they are."""
    return len(_steps(x)) >= FEWEST


def spacing(x: Float[np.ndarray, " N"], axis: Axis, slack: float) -> float | None:
    """The spacing of evenly spaced rows, some of which may be missing.

    Args:
        x: One input of the rows, in any order, in the numbers of the axis.
        axis: What the input is.
        slack: How far a step may be from a multiple of the spacing.

    Returns:
        The spacing, in the numbers of the axis; None if rows are too few, or not evenly spaced.
        Months are evenly spaced, although they are not equally long.
    """
    if axis.is_time:
        clock = axis.on_clock(np.unique(x)).astype("M8[us]")
        months = _months(clock)
        if months:
            return months * MONTH
        x = (clock - clock[0]) / np.timedelta64(1, "D")
    steps = _steps(x)
    if len(steps) < FEWEST:
        return None
    least = float(np.partition(steps, _STRAY)[_STRAY])
    length = float(np.median(steps[np.round(steps / least) == 1]))
    whole = np.abs(steps - length * np.maximum(np.round(steps / length), 1)) <= slack
    if np.mean(whole) < _EVEN:
        return None
    return length


def in_words(length: float, *, is_time: bool) -> str:
    """A spacing as text, for a message.

    >>> in_words(3 * MONTH, is_time=True), in_words(0.5, is_time=True), in_words(0.5, is_time=False)
    ('3 months', '12h', '0.5')
    """
    months = round(length / MONTH)
    if is_time and months and abs(length - months * MONTH) < _SAME * length:
        return "one month" if months == 1 else f"{months} months"
    return rounded(length) if is_time else f"{length:.5g}"


def least_step(x: Float[np.ndarray, " N"]) -> float:
    """The shortest step between rows, but for one row that is there by accident."""
    steps = _steps(x)
    return float(np.partition(steps, _STRAY)[_STRAY]) if len(steps) > _STRAY else 0.0


def _steps(x: Float[np.ndarray, " N"]) -> Float[np.ndarray, " n"]:
    """The steps between neighbouring places."""
    steps = np.diff(np.unique(x))
    return steps[steps > _SAME * np.sum(steps)]


def _months(clock: np.ndarray) -> int:
    """The months between rows at the same place of their months; 0 if they are not."""
    month = clock.astype("M8[M]")
    steps = np.diff(month.astype(int))
    if len(steps) < FEWEST or np.mean(steps > 0) < _EVEN:
        return 0
    since = (clock - month.astype("M8[us]")) / np.timedelta64(1, "D")
    until = ((month + 1).astype("M8[us]") - clock) / np.timedelta64(1, "D")
    if not any(np.mean(np.abs(d - np.median(d)) < _SHIFT) >= _EVEN for d in (since, until)):
        return 0
    least = int(np.partition(steps, _STRAY)[_STRAY])
    return least if np.mean(steps % max(least, 1) == 0) >= _EVEN else 1
