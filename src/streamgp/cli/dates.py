"""Dates in cells: in ISO 8601, or in the format that the configuration names. None is guessed."""

import datetime
import re
from collections.abc import Sequence
from typing import Any

import pandas as pd

from streamgp.data.times import begins_with_a_date

ISO = "a date in ISO 8601, such as 2024-01-31 or 2024-01-31T12:00Z,"
_OFFSET = re.compile(r"(?:Z|[+-]\d\d(?::?\d\d)?)$")  # from UTC, at the end of a written time
_WORDS = {"now", "today"}  # which pandas takes for the present
# Forms that a message may name: they are tried on what is written, and never used unasked.
_DAYS = (
    "%b %d, %Y", "%B %d, %Y", "%Y%m%d",
    *(mark.join(parts)
    for mark in "/.- "
    for parts in (
        ("%d", "%m", "%Y"), ("%m", "%d", "%Y"), ("%Y", "%m", "%d"), ("%Y", "%d", "%m"),
        ("%d", "%m", "%y"), ("%m", "%d", "%y"), ("%d", "%b", "%Y"), ("%d", "%B", "%Y"),
    )),
)  # fmt: skip
_TIMES = ("", "%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p")


def has_offset(text: str) -> bool:
    """Whether a date in ISO 8601 ends with its offset from UTC."""
    return len(text) > len("2024-01-31") and _OFFSET.search(text) is not None


def iso(column: pd.Series) -> pd.Series | None:
    """Dates in ISO 8601; None if one of the cells is none, or only some of them have an offset."""
    texts = column.to_numpy(object)
    try:
        if not all(map(begins_with_a_date, texts)):
            return None
    except TypeError:  # something else than text
        return None
    try:
        return pd.to_datetime(column, format="ISO8601")
    except ValueError:
        if not all(map(has_offset, texts)):
            return None
    try:  # the offsets differ, as around summer time
        return pd.to_datetime(column, format="ISO8601", utc=True)
    except ValueError:
        return None


def iso_each(cells: Sequence[Any]) -> pd.Series:
    """Dates in ISO 8601, in UTC if they have an offset and as if they were in it otherwise.

    Args:
        cells: Whatever is written; NaT is what is no date.
    """
    texts = [c if isinstance(c, str) and begins_with_a_date(c) else None for c in cells]
    column = pd.Series(texts, dtype=str)
    return pd.to_datetime(column, format="ISO8601", errors="coerce", utc=True)


def formatted(cells: Sequence[Any], form: str) -> pd.Series:
    """Dates in a format of `strptime`; NaT is what is none."""
    texts = [None if c is None or c.lower() in _WORDS else c for c in cells]
    zoned = names_zone(form) or None
    return pd.to_datetime(pd.Series(texts, dtype=str), format=form, errors="coerce", utc=zoned)


def names_zone(form: str) -> bool:
    """Whether dates in a format of `strptime` have a time zone."""
    return "%z" in form or "%Z" in form


def remedy(cells: Sequence[str], column: str) -> str:
    """What to do about dates in another form: the line of the configuration that reads them.

    Args:
        cells: All that is written in the column, as far as it is at hand.
        column: The name of the column.
    """
    forms = [form for form in _forms() if _reads(form, cells)]
    lines = [f'`format = "{form}"`' for form in forms]
    if len(lines) == 1:
        return f"Put {lines[0]} into [data] to read it."
    if lines:
        return f"Put a line into [data] that says what it means: {' or '.join(lines)}."
    example = '`format = "%d/%m/%Y %H:%M"` for 31/01/2024 18:00'
    return f"Correct it. If all of {column!r} is in another form, name it in [data]: {example}."


def _forms() -> list[str]:
    return [f"{day}{' ' if time else ''}{time}" for time in _TIMES for day in _DAYS]


def _reads(form: str, cells: Sequence[str]) -> bool:
    for cell in cells:
        try:
            datetime.datetime.strptime(cell, form)
        except ValueError:
            return False
    return len(cells) > 0
