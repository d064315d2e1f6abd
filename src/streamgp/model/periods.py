"""Periods that data seem to have, by a Lomb–Scargle periodogram.

They are suggestions for `Seasonal`. Nothing takes them over by itself.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from streamgp.data import columns, durations
from streamgp.data.schema import read_inputs
from streamgp.data.wording import counted
from streamgp.errors import DataError, problem

_HARMONICS = 4  # of a found period that are not reported again: those that `Seasonal` has
_CELLS = 2048  # more rows than that are averaged in so many cells
_FINENESS = 5  # frequencies per resolvable one
_BLOCK = 256  # frequencies at a time, to bound memory
_FEWEST = 8  # rows below which nothing is looked for
_CYCLES = 2.0  # that the data must show of a period
_BY_CHANCE = 1e-3  # how probable it may be that noise alone has a peak of that height
_WEAKEST = 0.01  # the part of variance below which a period is not worth a mention
_DIGITS = 6
_STANDS_OUT = 3.0  # times the power of the harmonics before it: a season of its own
# Known periods of the calendar, in days: a peak that cannot be told from one is taken for it.
_CALENDAR = (365.25, 7.0, 1.0, 0.5, 1 / 24)
_UNTOLD = 0.25  # how much of a cycle may be lost between the two over all data
_UNTOLD_DIGITS = 0.05  # the same where digits are left out


class SuggestedPeriod(NamedTuple):
    """A period that data seem to have.

    Attributes:
        period: A number in the units of the inputs or, if they are times, text such as "7D": what
            `Seasonal` takes.
        strength: The part of the variance about a straight line that a season with this period
            explains, by itself.
    """

    period: float | str
    strength: float


def suggest_periods(x: Any, y: Any, *, most: int = 5) -> tuple[SuggestedPeriod, ...]:
    """Look for periods in data, for `seasons=` or `Seasonal`.

    Peaks of the Lomb–Scargle periodogram are taken one after the other, the season of each being
    taken out before the next, for as long as noise alone would hardly show such a peak. Halves,
    thirds and quarters of a found period belong to its season. So do smaller parts, unless they
    stand out, as the day does in the week. The data have to show two cycles of a period, and at
    least two rows a cycle. More than 2048 rows are averaged in cells first, so that periods of less
    than two cells are not seen. Slow wandering may look like a long period: look at the strengths,
    and at what is known of the data.

    Args:
        x: The inputs, one column of numbers or times. They need not be evenly spaced.
        y: The observations, as numbers; missing ones are left out.
        most: The largest number of periods.

    Returns:
        The periods, strongest first; none if nothing stands out.

    Raises:
        DataError: If the data cannot be used.

    Examples:
        >>> import numpy as np, streamgp as sgp
        >>> month = np.arange(120.0)
        >>> y = 0.1 * month + 3 * np.sin(2 * np.pi * month / 12) + np.cos(np.pi * month / 10)
        >>> [(found.period, round(found.strength, 2)) for found in sgp.suggest_periods(month, y)]
        [(12.0, 0.9), (20.0, 0.1)]
    """
    t, values, is_time = _read(x, y)
    if len(np.unique(t)) < _FEWEST:
        return ()
    t, values = _in_cells(t - np.min(t), values)
    data = _Data(t, values)
    if data.total <= (1e-10 * np.max(np.abs(values))) ** 2 * len(values):  # a straight line
        return ()
    found = data.without_harmonics(data.frequencies(most))
    scored = [(f, data.explained([f])) for f in found]
    scored.sort(key=lambda pair: -pair[1])
    return tuple(
        SuggestedPeriod(_named(f, data.length, is_time=is_time), strength)
        for f, strength in scored[:most]
    )


def _read(x: Any, y: Any) -> tuple[Float[np.ndarray, " N"], Float[np.ndarray, " N"], bool]:
    numbers, _, axes = read_inputs(x, (), "`suggest_periods`")
    if len(axes) != 1:
        raise DataError(
            problem("one input column", counted(len(axes), "column"), "Give the times alone.")
        )
    column = columns.read(y, "observations")
    if column.kind != "number" or len(column.values) != len(numbers):
        raise DataError(
            problem(
                f"{len(numbers)} observations as numbers, one per input",
                f"{len(column.values)}: {column.describe()}",
                "Give one number per input.",
            )
        )
    kept = ~column.missing
    columns.check_finite(column.values[kept], "observations", np.flatnonzero(kept))
    return numbers[kept, 0], column.values[kept], axes[0].is_time


def _in_cells(
    t: Float[np.ndarray, " N"], y: Float[np.ndarray, " N"]
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """The data in order, averaged in cells of equal width if there are many rows."""
    order = np.argsort(t, kind="stable")
    t, y = t[order], y[order]
    if len(t) <= _CELLS:
        return t, y
    cell = np.minimum((t / t[-1] * _CELLS).astype(int), _CELLS - 1)
    count = np.bincount(cell, minlength=_CELLS)
    some = count > 0
    sums = (np.bincount(cell, weights, minlength=_CELLS) for weights in (t, y))
    of_t, of_y = (total[some] / count[some] for total in sums)
    return of_t, of_y


class _Data:
    """Data from zero on, and what seasons leave of them."""

    def __init__(self, t: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"]):
        self.t, self.y = t, y
        steps = np.diff(np.unique(t))
        self.length = t[-1] * len(t) / (len(t) - 1)  # each row stands for a stretch of its own
        self.highest = 0.5 / float(np.median(steps))
        self.total = float(np.sum(self.left([]) ** 2))

    def frequencies(self, most: int) -> list[float]:
        """The frequencies of peaks that stand out, harmonics of one another among them."""
        grid = np.arange(_CYCLES, self.highest * self.length, 1 / _FINENESS) / self.length
        found: list[float] = []
        while len(grid) and len(found) < 3 * most:
            left = self.left(found)
            rest = float(np.sum(left**2))
            power = np.where(self._is_covered(grid, found), 0.0, _periodogram(self.t, left, grid))
            peak = int(np.argmax(power))
            chances = len(grid) * (1 - min(power[peak], 1.0)) ** ((len(self.t) - 3) / 2)
            if chances > _BY_CHANCE or power[peak] * rest < _WEAKEST * self.total:
                break
            found.append(self._refined(grid[peak], found))
        return found

    def without_harmonics(self, found: list[float]) -> list[float]:
        """The frequencies that do not belong to the season of another, lower one."""
        return [f for f in found if not any(self._belongs(f, g) for g in found if g < 0.75 * f)]

    def _belongs(self, f: float, g: float) -> bool:
        """Whether the frequency f is a harmonic of g, and not much stronger than those before."""
        k = round(f / g)
        if abs(f - k * g) >= 1 / self.length:
            return False
        if k <= _HARMONICS:
            return True
        near = np.array([f, (k - 1) * g, (k - 2) * g])
        power, *before = _periodogram(self.t, self.left([]), near)
        return bool(power <= _STANDS_OUT * max(before))

    def left(self, frequencies: Sequence[float]) -> Float[np.ndarray, " n"]:
        """What a straight line and seasons of these frequencies leave of the data."""
        parts = [np.ones((len(self.t), 1)), self.t[:, None] / self.t[-1]]
        for f in frequencies:
            multiples = f * np.arange(1, _HARMONICS + 1)
            multiples = multiples[: max(1, np.sum(multiples <= self.highest))]
            angles = 2 * np.pi * self.t[:, None] * multiples
            parts += [np.cos(angles), np.sin(angles)]
        design = np.concatenate(parts, axis=1)
        return self.y - design @ np.linalg.lstsq(design, self.y, rcond=1e-10)[0]

    def explained(self, frequencies: Sequence[float]) -> float:
        """The part of the variance about a line that seasons of these frequencies explain."""
        return 1 - float(np.sum(self.left(frequencies) ** 2)) / self.total

    def _is_covered(
        self, grid: Float[np.ndarray, " G"], found: Sequence[float]
    ) -> Bool[np.ndarray, " G"]:
        """Which frequencies cannot be told from a found one or from its harmonics."""
        covered = np.zeros(len(grid), bool)
        for f in found:
            for k in range(1, _HARMONICS + 1):
                covered |= np.abs(grid - k * f) < 1 / self.length
        return covered

    def _refined(self, peak: float, found: Sequence[float]) -> float:
        """The frequency near a peak whose season leaves least."""
        from scipy import optimize

        reach = 1 / (_FINENESS * self.length)
        best = optimize.minimize_scalar(
            lambda f: float(np.sum(self.left([*found, f]) ** 2)),
            bounds=(max(peak - reach, _CYCLES / self.length), peak + reach),
            method="bounded",
            options={"xatol": 1e-4 * reach},
        )
        return float(best.x)


def _periodogram(
    t: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"], grid: Float[np.ndarray, " G"]
) -> Float[np.ndarray, " G"]:
    """The part of the variance that a wave of each frequency explains."""
    from scipy import signal  # here, because importing it would double the time of a start

    blocks = np.split(2 * np.pi * grid, range(_BLOCK, len(grid), _BLOCK))
    return np.concatenate(
        [np.atleast_1d(signal.lombscargle(t, y, block, normalize=True)) for block in blocks]
    )


def _named(frequency: float, length: float, *, is_time: bool) -> float | str:
    """A period as `Seasonal` takes it, with no more digits than the data tell."""
    if is_time:
        known = [p for p in _CALENDAR if abs(1 / p - frequency) * length < _UNTOLD]
        best = min(known, key=lambda p: abs(1 / p - frequency), default=None)
        if best is not None:
            return durations.rounded(best)
    period = next(
        short
        for digits in range(1, _DIGITS + 1)
        for short in [float(f"{1 / frequency:.{digits}g}")]
        if digits == _DIGITS or abs(1 / short - frequency) * length < _UNTOLD_DIGITS
    )
    return durations.rounded(period) if is_time else period
