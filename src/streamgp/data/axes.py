"""Axes: whether each input column holds numbers or times, and times as numbers.

A time becomes the number of days since midnight of the first batch's day (midnight in UTC, for
times with a zone). So close to its origin, a float resolves far less than a nanosecond.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from streamgp.data import times
from streamgp.data.columns import Column, check_finite
from streamgp.data.wording import counted, place
from streamgp.errors import DataError, problem
from streamgp.registry import storable

_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY = 24 * 60 * 60


@storable
@dataclasses.dataclass(frozen=True)
class Axis:
    """What an input column holds, as the first batch has shown it.

    Attributes:
        name: The name of the column, or None if it did not come from a frame.
        day: The day that times are counted from, in days since 1970; None if the column holds
            numbers.
        zone: The name of the time zone, or None if the column holds numbers or times without one.
    """

    name: str | int | None = None
    day: int | None = None
    zone: str | None = None

    @property
    def is_time(self) -> bool:
        """Whether the column holds times."""
        return self.day is not None

    def __str__(self) -> str:
        if not self.is_time:
            return "numbers"
        since = f"days since {np.datetime64(self.day, 'D')}"
        return f"{since} ({self.zone})" if self.zone else since

    def numbers(self, column: Column, what: str) -> Float[np.ndarray, " N"]:
        """The numbers that the model computes with.

        Args:
            column: A column of numbers or times.
            what: What its values are, for a message.

        Returns:
            The numbers as they are, or the times in days.

        Raises:
            DataError: If the column is of another kind than this axis, or a value is missing.
        """
        self._check_kind(column, what)
        gone = int(column.missing.sum())
        if gone:
            raise DataError(
                problem(
                    f"finite {what}",
                    f"{counted(gone, 'NaN or missing value')}, "
                    f"{place(gone, int(np.argmax(column.missing)))}",
                    "Every observation needs all its inputs: leave such rows out.",
                )
            )
        if not self.is_time:
            check_finite(column.values, what, np.arange(len(column.values)))
            return column.values
        unit = np.datetime_data(column.values.dtype)[0]
        start = np.datetime64(self.day, "D").astype(column.values.dtype)
        return (column.values - start).astype(np.int64) / (_DAY * _TICKS[unit])

    def values(self, numbers: Float[np.ndarray, " N"]) -> np.ndarray:
        """The user's values for the model's numbers.

        Args:
            numbers: Some of the model's inputs, such as a column of its inducing points.

        Returns:
            The numbers as they are; or times, to the microsecond, in their zone.
        """
        if not self.is_time:
            return numbers
        microseconds = np.round(numbers * _DAY * _TICKS["us"]).astype("m8[us]")
        values = np.datetime64(self.day, "D") + microseconds
        return values if self.zone is None else times.in_zone(values, self.zone)

    def on_clock(self, numbers: Float[np.ndarray, " N"]) -> np.ndarray:
        """As `values`, for plots: times as the clocks of their zone show them, without the zone."""
        values = self.values(numbers)
        if self.zone is None:
            return values
        return np.asarray([time.replace(tzinfo=None) for time in values], "M8[us]")

    def off_clock(self, shown: np.ndarray) -> np.ndarray:
        """The inverse of `on_clock`, as inputs for `predict`."""
        return shown if self.zone is None else times.on_clock_in(shown, self.zone)

    def _check_kind(self, column: Column, what: str) -> None:
        is_time = column.kind == "time"
        if is_time != self.is_time:
            wanted = "times" if self.is_time else "numbers"
            remedy = "An input is either always a number or always a time."
        elif is_time and self.zone is None and column.zone is not None:
            wanted = "times without a time zone"
            remedy = (
                "Take the zone away: `times.tz_localize(None)` in pandas, "
                "`time.replace(tzinfo=None)` for Python's datetimes."
            )
        elif is_time and self.zone is not None and column.zone is None:
            wanted = f"times with a time zone (in {self.zone} or any other)"
            remedy = (
                f'Say which zone they are in: `times.tz_localize("{self.zone}")` in pandas, '
                f'`time.replace(tzinfo=ZoneInfo("{self.zone}"))` for Python\'s datetimes, '
                '"Z" or an offset at the end of text.'
            )
        else:
            return
        expected = f"{what} as {wanted}, as in the first batch"
        raise DataError(problem(expected, column.describe(), remedy))


def first_axis(column: Column, name: Any) -> Axis:
    """The axis that the first batch's column defines."""
    known = name if isinstance(name, str | int | None) else str(name)
    if column.kind != "time":
        return Axis(known)
    present = column.values[~column.missing]
    day = np.min(present).astype("M8[D]").astype(int) if len(present) else 0
    return Axis(known, int(day), column.zone)


def input_names(axes: Sequence[Axis]) -> tuple[str, ...]:
    """The names of the input columns; those without a name are x, or x0, x1 and so on."""
    plain = ["x"] if len(axes) == 1 else [f"x{i}" for i in range(len(axes))]
    return tuple(
        name if axis.name is None else str(axis.name)
        for axis, name in zip(axes, plain, strict=True)
    )
