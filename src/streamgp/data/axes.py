"""Axes: what each input column is, numbers or times, and times as numbers.

A time is a number of days since midnight of the day of the first batch (in UTC for times with a
zone): close to it, a float resolves far less than a nanosecond.
"""

import dataclasses
import datetime
from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from jaxtyping import Float

from streamgp.data.columns import Column, check_finite
from streamgp.errors import DataError, problem
from streamgp.registry import storable

_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY = 24 * 60 * 60


@storable
@dataclasses.dataclass(frozen=True)
class Axis:
    """One input column, as it first came."""

    name: str | int | None = None  # of the column, if it came in a frame
    day: int | None = None  # that times are counted from, in days since 1970; None for numbers
    zone: str | None = None

    @property
    def is_time(self) -> bool:
        return self.day is not None

    def __str__(self) -> str:
        if not self.is_time:
            return "numbers"
        since = f"days since {np.datetime64(self.day, 'D')}"
        return f"{since} ({self.zone})" if self.zone else since

    def numbers(self, column: Column, what: str) -> Float[np.ndarray, " N"]:
        """The column as the model sees it."""
        self._check_kind(column, what)
        if column.missing.any():
            raise DataError(
                problem(
                    f"finite {what}",
                    f"{column.missing.sum()} NaN or missing value(s), "
                    f"the first in row {np.argmax(column.missing)}",
                    "Every observation needs its place: leave those rows out.",
                )
            )
        if not self.is_time:
            check_finite(column.values, what, np.arange(len(column.values)))
            return column.values
        unit = np.datetime_data(column.values.dtype)[0]
        start = np.datetime64(self.day, "D").astype(column.values.dtype)
        return (column.values - start).astype(np.int64) / (_DAY * _TICKS[unit])

    def values(self, numbers: Float[np.ndarray, " N"]) -> np.ndarray:
        """Back from the model's numbers: times to the microsecond, in their zone."""
        if not self.is_time:
            return numbers
        microseconds = np.round(numbers * _DAY * _TICKS["us"]).astype("m8[us]")
        times = np.datetime64(self.day, "D") + microseconds
        return zoned(Column("time", times, np.isnat(times), zone=self.zone))

    def on_clock(self, numbers: Float[np.ndarray, " N"]) -> np.ndarray:
        """As `values`, for pictures: times as the clocks of their zone show them, without it."""
        values = self.values(numbers)
        if self.zone is None:
            return values
        return np.asarray([time.replace(tzinfo=None) for time in values], "M8[us]")

    def off_clock(self, shown: np.ndarray) -> np.ndarray:
        """Back from a picture: what `predict` takes."""
        if self.zone is None:
            return shown
        zone, plain = ZoneInfo(self.zone), shown.astype("M8[us]").astype(object)
        times = np.empty(len(plain), object)
        times[:] = [time.replace(tzinfo=zone) for time in plain]
        return times

    def _check_kind(self, column: Column, what: str) -> None:
        if column.kind == "label":
            wanted, remedy = "as numbers or times", "Convert them first."
        elif column.kind != ("time" if self.is_time else "number"):
            wanted = f"as {'times' if self.is_time else 'numbers'}, as in the first batch"
            remedy = "An input is either always a number or always a time."
        elif self.is_time and (column.zone is None) != (self.zone is None):
            has = "without" if self.zone is None else "with"
            wanted, remedy = f"as times {has} a time zone, as in the first batch", "Convert them."
        else:
            return
        raise DataError(problem(f"{what} {wanted}", column.describe(), remedy))


def first_axis(column: Column, name: Any) -> Axis:
    """The axis that a first column defines."""
    known = name if isinstance(name, str | int | None) else str(name)
    present = column.values[~column.missing]
    if column.kind != "time":
        return Axis(known)
    day = np.min(present).astype("M8[D]").astype(int) if len(present) else 0
    return Axis(known, int(day), column.zone)


def zoned(column: Column) -> np.ndarray:
    """The values, with times in their zone: as Python's datetimes, since NumPy knows no zones."""
    if column.zone is None:
        return column.values
    zone, plain = ZoneInfo(column.zone), column.values.astype("M8[us]").astype(object)
    times = np.empty(len(plain), object)
    times[:] = [time.replace(tzinfo=datetime.UTC).astimezone(zone) for time in plain]
    return times


def input_names(axes: Sequence[Axis]) -> tuple[str, ...]:
    plain = ["x"] if len(axes) == 1 else [f"x{i}" for i in range(len(axes))]
    return tuple(
        name if axis.name is None else str(axis.name)
        for axis, name in zip(axes, plain, strict=True)
    )
