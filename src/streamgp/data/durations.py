"""Durations: text such as "12h", and Python's and NumPy's time differences, as lengths of time.

Only units of a fixed length count. A month and a year have none.
"""

import datetime
import re
from typing import Any

import numpy as np

from streamgp.errors import ConfigurationError, problem

_SECONDS = {"W": 604800.0, "D": 86400.0, "h": 3600.0, "min": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}
_NAMES = {
    **{unit: unit for unit in _SECONDS},
    **dict.fromkeys(["w", "week", "weeks"], "W"),
    **dict.fromkeys(["d", "day", "days"], "D"),
    **dict.fromkeys(["H", "hour", "hours"], "h"),
    **dict.fromkeys(["minute", "minutes"], "min"),
    **dict.fromkeys(["second", "seconds"], "s"),
}
_TEXT = re.compile(r"\s*([0-9]*\.?[0-9]+|[0-9]+\.)?\s*([A-Za-z]+)\s*")
_DAY = 86400.0
_CALENDAR = ("Y", "M")
_DIGITS = 5  # of a measured duration in text


def is_duration(value: Any) -> bool:
    """Whether a value is meant as a length of time, and not as a plain number."""
    return isinstance(value, str | datetime.timedelta | np.timedelta64)


def days(duration: Any) -> float:
    """A length of time in days, the unit that times have inside a model.

    Args:
        duration: Text with a number and a unit (W, D, h, min, s, ms, us), or a time difference.

    Returns:
        The days.

    Raises:
        ConfigurationError: If it is no duration, not positive, or of no fixed length.

    >>> days("12h"), days("365.25D"), days("W"), days(datetime.timedelta(hours=6))
    (0.5, 365.25, 7.0, 0.25)
    """
    text = duration if isinstance(duration, str) else as_text(duration)
    found = _TEXT.fullmatch(text)
    unit = _NAMES.get(found[2]) if found else None
    if found is None or unit is None:
        raise _unreadable(duration)
    length = float(found[1] or 1.0) * _SECONDS[unit] / _DAY
    if not (np.isfinite(length) and length > 0):
        raise _unreadable(duration)
    return length


def difference(text: str) -> datetime.timedelta:
    """A length of time in text, as Python has it.

    Args:
        text: A number and a unit.

    Returns:
        The time difference.

    Raises:
        ConfigurationError: If it is no duration, not positive, of no fixed length, or longer than
            Python's time differences.

    >>> difference("36h")
    datetime.timedelta(days=1, seconds=43200)
    """
    try:
        return datetime.timedelta(days=days(text))
    except OverflowError as error:
        raise _unreadable(text) from error


def as_text(difference: Any) -> str:
    """A time difference as text, to the microsecond, in the largest unit that needs no fraction.

    >>> as_text(datetime.timedelta(hours=36)), as_text(np.timedelta64(7, "D"))
    ('36h', '7D')
    """
    if isinstance(difference, np.timedelta64):
        if np.isnat(difference) or np.datetime_data(difference.dtype)[0] in _CALENDAR:
            raise _unreadable(difference)
        difference = difference.astype("m8[us]").item()
    if not isinstance(difference, datetime.timedelta):
        raise _unreadable(difference)
    ticks = difference // datetime.timedelta(microseconds=1)
    if ticks <= 0:
        raise _unreadable(difference)
    sizes = {unit: round(seconds * 1e6) for unit, seconds in _SECONDS.items() if unit != "W"}
    unit = next(unit for unit, size in sizes.items() if ticks % size == 0)
    return f"{ticks // sizes[unit]}{unit}"


def rounded(length: float) -> str:
    """A measured number of days as text, to five digits, in a unit of which there is one or more.

    >>> rounded(6.99996), rounded(0.5), rounded(365.2431)
    ('7D', '12h', '365.24D')
    """
    seconds = length * _DAY
    units = [unit for unit in _SECONDS if unit != "W"]
    # Just below a whole unit counts as one: a measured day is "1D" and not "24h".
    unit = next((u for u in units if seconds >= (1 - 10.0**-_DIGITS) * _SECONDS[u]), units[-1])
    return f"{seconds / _SECONDS[unit]:.{_DIGITS}g}{unit}"


def _unreadable(duration: Any) -> ConfigurationError:
    return ConfigurationError(
        problem(
            'a positive duration, such as "7D", "12h", "30min" or a timedelta',
            repr(duration),
            "Units are W, D, h, min, s, ms and us. A month or a year has no fixed length: say "
            '"365.25D".',
        )
    )
