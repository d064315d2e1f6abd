"""Times: datetimes and ISO 8601 text as instants, and time zones by name.

NumPy's times have no zone. A time with a zone is therefore kept as an instant in UTC, and the name
of the zone beside it.
"""

import datetime
import re
from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

_UNITS = ("s", "ms", "us", "ns")
# Whether a text begins as those in ISO 8601 do that `parsed` reads.
begins_with_a_date = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ]|$)").match


class MixedZonesError(TypeError):
    """Some times of a column have a time zone, and others have none."""

    def __init__(self, without: Any, having: Any):
        super().__init__(f"{without} without a time zone, and {having} with one")


def instants(times: Sequence[Any]) -> tuple[np.ndarray, str | None]:
    """Python's datetimes and dates, or NumPy's, as instants.

    Args:
        times: The times. Their zones may differ: the instants are comparable all the same.

    Returns:
        The times as datetime64 in microseconds, in UTC if they have a zone; and the name of their
        zone. It is "UTC" if they have several zones, and None if they have none.

    Raises:
        MixedZonesError: If some of the times have a zone and others have none.
    """
    zones = [time.tzinfo if isinstance(time, datetime.datetime) else None for time in times]
    having = [time for time, zone in zip(times, zones, strict=True) if zone is not None]
    if not having:
        return np.array([np.datetime64(time, "us") for time in times], "M8[us]"), None
    if len(having) < len(times):
        raise MixedZonesError(times[zones.index(None)], having[0])
    plain = [time.astimezone(datetime.UTC).replace(tzinfo=None) for time in having]
    names = {zone_name(zone) for zone in {id(zone): zone for zone in zones}.values()}
    return np.array(plain, "M8[us]"), names.pop() if len(names) == 1 else "UTC"


def parsed(text: Any) -> datetime.datetime | None:
    """The time that a text in ISO 8601 stands for, or None if it is no such text.

    A date comes first, as year-month-day. A time of day, a fraction of a second (read to the
    microsecond) and an offset from UTC may follow.

    >>> parsed("2013-06-01")
    datetime.datetime(2013, 6, 1, 0, 0)
    >>> parsed("2013-06-01T12:00Z").tzname()
    'UTC'
    >>> parsed("noon")
    """
    if not (isinstance(text, str) and begins_with_a_date(text)):
        return None
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        return None


def zone_name(zone: Any) -> str:
    """The IANA name of a time zone, or "UTC" for a zone without one, such as a fixed offset."""
    try:
        return ZoneInfo(str(zone)).key
    except (KeyError, ValueError, OSError):
        return "UTC"


def in_zone(times: np.ndarray, zone: str) -> np.ndarray:
    """Instants in UTC as Python's datetimes in a time zone."""
    to = ZoneInfo(zone)
    return _objects(time.replace(tzinfo=datetime.UTC).astimezone(to) for time in _plain(times))


def on_clock_in(times: np.ndarray, zone: str) -> np.ndarray:
    """Times as the clocks of a zone show them, as Python's datetimes in that zone."""
    at = ZoneInfo(zone)
    return _objects(time.replace(tzinfo=at) for time in _plain(times))


def with_clock_unit(times: np.ndarray) -> np.ndarray:
    """The same times, counted in seconds or in a decimal part of them."""
    return times if np.datetime_data(times.dtype)[0] in _UNITS else times.astype("M8[s]")


def _plain(times: np.ndarray) -> list[datetime.datetime]:
    return times.astype("M8[us]").tolist()


def _objects(values: Any) -> np.ndarray:
    """An array that holds Python's objects as they are."""
    each = list(values)
    array = np.empty(len(each), object)
    array[:] = each
    return array
