"""Windows: stretches of an input from a begin to an end, in numbers or times.

A window that the user gave is kept as two numbers, or as two texts in ISO 8601, which files can
hold. It becomes numbers of the model once the axis is known.
"""

import datetime
import numbers
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import numpy as np

from streamgp.data import columns, times
from streamgp.data.axes import Axis
from streamgp.errors import ConfigurationError, DataError, problem

Window: TypeAlias = tuple[float, float] | tuple[str, str]

_MIDNIGHT = datetime.time()
_LAST = datetime.time(23, 59, 59, 999000)  # of a day


def window(begin: Any, end: Any, what: str, *, of_days: bool = True) -> Window:
    """A window from its begin and end, both included.

    Args:
        begin: A number, a time, a date, or text in ISO 8601.
        end: The same; it may be the begin, and a number may be infinite.
        what: What the window is, for a message.
        of_days: Whether dates stand for whole days. So do two times at midnight then: frames have
            dates as such times.

    Returns:
        Two numbers, or two texts.

    Raises:
        ConfigurationError: If these are not the begin and end of a window.
    """
    if _is_number(begin) and _is_number(end):
        _check_order(float(begin), float(end), (begin, end), what)
        return float(begin), float(end)
    first, last = _time(begin, what), _time(end, what)
    are_midnights = first.time() == last.time() == _MIDNIGHT
    if of_days and (_is_date(end) or are_midnights):
        last = datetime.datetime.combine(last.date(), _LAST, last.tzinfo)
    if (first.tzinfo is None) != (last.tzinfo is None):
        raise ConfigurationError(
            problem(
                f"{what} with a time zone at both ends, or at neither",
                f"{begin!r} and {end!r}",
                "Say the zone of both.",
            )
        )
    _check_order(first, last, (begin, end), what)
    return first.isoformat(), last.isoformat()


def placed(own: Window, axis: Axis, what: str) -> tuple[float, float]:
    """A window in the numbers of an axis.

    Args:
        own: The window. Times without a zone are as the clocks of the axis's zone show them.
        axis: What the input column holds.
        what: What the window is, for a message.

    Returns:
        Begin and end.

    Raises:
        ConfigurationError: If the window has times and the axis numbers, or the other way round.
    """
    is_time = isinstance(own[0], str)
    if is_time != axis.is_time:
        kinds = ("times", "numbers") if axis.is_time else ("numbers", "times")
        raise ConfigurationError(
            problem(
                f"{what} in {kinds[0]}, as the inputs are",
                f"{kinds[1]}, such as {own[0]!r}",
                f"Give {kinds[0]}, or give inputs as {kinds[1]}.",
            )
        )
    if not is_time:
        return float(own[0]), float(own[1])
    column = columns.read_input(list(own), what)
    if column.zone is None and axis.zone is not None:
        column = columns.read_input(times.on_clock_in(column.values, axis.zone), what)
    try:
        begin, end = axis.numbers(column, what)
    except DataError as error:  # a zone, where inputs have none
        raise ConfigurationError(str(error)) from error
    return float(begin), float(end)


def _check_order(first: Any, last: Any, given: tuple[Any, Any], what: str) -> None:
    if not first <= last:  # NaN too
        raise ConfigurationError(
            problem(
                f"{what} that ends no earlier than it begins",
                f"{given[0]!r} to {given[1]!r}",
                "Check the two.",
            )
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _is_date(value: Any) -> bool:
    """Whether a value is a date without a time of day."""
    if isinstance(value, np.datetime64):
        return np.datetime_data(value.dtype)[0] in ("Y", "M", "W", "D")
    if isinstance(value, str):
        return len(value) == len("2026-01-01")
    return isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)


def _time(value: Any, what: str) -> datetime.datetime:
    found = None
    if isinstance(value, str):
        found = times.parsed(value)
    elif isinstance(value, datetime.date | np.datetime64) and value == value:  # NaT is not itself
        array, zone = times.instants([value])
        plain = array.astype("M8[us]").item()
        found = plain if zone is None else _in_own_zone(plain, value)
    if found is None:
        raise ConfigurationError(
            problem(
                f"{what} from a number to a number, or from a time to a time",
                repr(value),
                "Give both ends. What goes on for ever ends at a far date, or at infinity.",
            )
        )
    return found


def _in_own_zone(instant: datetime.datetime, time: Any) -> datetime.datetime:
    """An instant in UTC as the clocks of a time's zone show it."""
    name = times.zone_name(time.tzinfo)
    # A zone without a name is an offset. Those of some libraries know their offset by the time.
    zone = ZoneInfo(name) if name != "UTC" else datetime.timezone(time.utcoffset())
    return instant.replace(tzinfo=datetime.UTC).astimezone(zone)
