"""Columns: one list of numbers, times or labels, whatever library it came in.

pandas and polars are looked at only if the caller has loaded them; neither is needed.
"""

import contextlib
import datetime
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias
from zoneinfo import ZoneInfo

import numpy as np
from jaxtyping import Bool

from streamgp.errors import DataError, problem

Label: TypeAlias = str | bool | int | float
_UTC = datetime.UTC
_LARGEST = 1e100  # squares of larger numbers overflow


class Column(NamedTuple):
    """Values of one kind, one a row, and which of them are missing."""

    kind: str  # "number", "time" or "label"
    values: np.ndarray  # floats; datetime64, in UTC if there is a zone; labels
    missing: Bool[np.ndarray, " N"]
    zone: str | None = None  # of times
    categories: tuple[Label, ...] = ()  # all labels in order, if the data type says
    is_boolean: bool = False

    def describe(self) -> str:
        kinds = {"number": "numbers", "time": f"times ({self.values.dtype})", "label": "labels"}
        present = self.values[~self.missing]
        example = f", such as {present[0]!s}" if len(present) else ""
        return kinds[self.kind] + (f" in {self.zone}" if self.zone else "") + example


def read(values: Any, what: str) -> Column:
    """One column; `what` names it in an error."""
    with _named(what, values):
        return _read(values)


@contextlib.contextmanager
def _named(what: str, values: Any) -> Iterator[None]:
    """Whatever cannot be read is an error of the data, by name."""
    try:
        yield
    except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise DataError(
            problem(
                f"{what} as numbers", f"{type(values).__name__} ({error})", "Convert them first."
            )
        ) from error


def loaded(library: str, *names: str) -> tuple[Any, ...]:
    """Classes of a library, if the caller has loaded it."""
    module = sys.modules.get(library)
    return tuple(kind for name in names if (kind := getattr(module, name, None)) is not None)


def is_series(values: Any) -> bool:
    return isinstance(values, loaded("polars", "Series")) or _is_pandas(values)


def _is_pandas(values: Any) -> bool:
    """A series, an index, or an array of a data type that NumPy does not have."""
    if isinstance(values, loaded("pandas", "Series", "Index")):
        return True
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(values, pandas.api.extensions.ExtensionArray)


def take(values: Any, rows: np.ndarray) -> Any:
    """Some rows of a series or an array."""
    if isinstance(values, loaded("pandas", "Series")):
        return values.iloc[rows]
    if is_series(values):
        return values[rows]
    return np.asarray(values)[rows]


def as_array(values: Any, what: str) -> np.ndarray:
    """An array of what it holds. Words beside numbers stay what they are."""
    with _named(what, values):
        if np.ma.is_masked(values):
            raise TypeError("with masked values")
        if isinstance(values, list | tuple) and any(isinstance(value, str) for value in values):
            array = np.empty(len(values), object)
            array[:] = values
            return array
        return np.asarray(values)


def check_finite(values: np.ndarray, what: str, rows: np.ndarray) -> None:
    """`rows` are the numbers of the rows in the user's data."""
    bad = np.flatnonzero(~(np.abs(values) < _LARGEST))
    if len(bad):
        raise DataError(
            problem(
                f"finite {what}, below {_LARGEST:g} in size",
                f"{len(bad)} NaN or infinite or larger value(s), the first in row {rows[bad[0]]}",
                "Leave those rows out: a missing observation needs no placeholder.",
            )
        )


def _read(values: Any) -> Column:
    if isinstance(values, loaded("polars", "Series")):
        return _read_polars(values)
    if _is_pandas(values):
        import pandas

        return _read_pandas(pandas.Series(values))
    return _read_array(np.atleast_1d(np.asarray(values)))


def _read_array(array: np.ndarray) -> Column:
    kind = array.dtype.kind
    if kind in "biuf":
        numbers = array.astype(float)
        return Column("number", numbers, np.isnan(numbers), is_boolean=kind == "b")
    if kind == "M":
        return _times(array, None)
    if kind in "UT":
        return Column("label", array.astype(object), np.zeros(len(array), bool))
    if kind == "O":
        return _read_objects(array)
    example = f", such as {array.ravel()[0]!r}" if array.size else ""
    raise TypeError(f"values of type {array.dtype}{example}")


def _read_objects(array: np.ndarray) -> Column:
    missing = np.asarray([_is_missing(value) for value in array], bool)
    present = [value for value, gone in zip(array, missing, strict=True) if not gone]
    if present and all(isinstance(value, str) for value in present):
        return Column("label", array, missing)
    if present and all(isinstance(v, datetime.date | np.datetime64) for v in present):
        return _read_datetimes(array, missing, present)
    if odd := [value for value in present if isinstance(value, str | bytes)]:
        raise TypeError(f"words among other values, such as {odd[0]!r}")
    numbers = np.full(len(array), np.nan)
    numbers[~missing] = [float(value) for value in present]
    is_boolean = bool(present) and all(isinstance(v, bool | np.bool_) for v in present)
    return Column("number", numbers, missing | np.isnan(numbers), is_boolean=is_boolean)


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating | np.datetime64) and bool(value != value)


def _read_datetimes(array: np.ndarray, missing: np.ndarray, present: Sequence[Any]) -> Column:
    zones = [getattr(value, "tzinfo", None) for value in present]
    if any(zone is None for zone in zones) != all(zone is None for zone in zones):
        raise TypeError("times with and without a time zone")
    aware = zones[0] is not None
    plain = [v.astimezone(_UTC).replace(tzinfo=None) if aware else v for v in present]
    times = np.full(len(array), np.datetime64("NaT"), "M8[us]")
    times[~missing] = np.asarray([np.datetime64(value, "us") for value in plain])
    return _times(times, zone_name(zones[0]) if aware else None)


def _read_pandas(series: Any) -> Column:
    dtype = series.dtype
    if hasattr(dtype, "categories"):
        categories = dtype.categories
        if categories.dtype.kind == "M":
            return _read_pandas(series.astype(categories.dtype))
        labels = tuple(plain_label(label) for label in categories.tolist())
        codes = series.cat.codes.to_numpy()
        values = np.asarray([*labels, None], object)[codes]
        return Column("label", values, codes < 0, categories=labels)
    if getattr(dtype, "tz", None) is not None:
        return _times(series.dt.tz_convert(None).to_numpy(), zone_name(dtype.tz))
    if dtype.kind in "biuf":
        numbers = series.to_numpy(dtype=float, na_value=np.nan)
        return Column("number", numbers, np.isnan(numbers), is_boolean=dtype.kind == "b")
    is_plain = isinstance(dtype, np.dtype)
    return _read_array(series.to_numpy() if is_plain else series.to_numpy(dtype=object))


def _read_polars(series: Any) -> Column:
    import polars

    dtype = series.dtype
    if dtype.is_numeric() or dtype in (polars.Boolean, polars.Null):
        numbers = series.cast(polars.Float64).to_numpy().astype(float)
        return Column("number", numbers, np.isnan(numbers), is_boolean=dtype == polars.Boolean)
    if dtype == polars.Datetime:
        plain = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return _times(plain.to_numpy(), dtype.time_zone and zone_name(dtype.time_zone))
    if dtype == polars.Date:
        return _times(series.to_numpy(), None)
    if dtype in (polars.String, polars.Categorical, polars.Enum, polars.Object):
        values = np.empty(len(series), object)
        values[:] = series.to_list()
        column = _read_objects(values)
        names = tuple(dtype.categories.to_list()) if dtype == polars.Enum else ()
        return column._replace(categories=names) if names else column
    raise TypeError(f"values of type {dtype}")


def _times(times: np.ndarray, zone: str | None) -> Column:
    unit = np.datetime_data(times.dtype)[0]
    if unit not in ("s", "ms", "us", "ns"):  # days, months; and what no clock ticks in
        times = times.astype("M8[s]")
    return Column("time", times, np.isnat(times), zone=zone)


def zone_name(zone: Any) -> str:
    """The zone's IANA name, or UTC for a zone that has none: the same instants in any case."""
    name = getattr(zone, "key", None) or getattr(zone, "zone", None) or str(zone)
    try:
        return ZoneInfo(name).key
    except (KeyError, ValueError, OSError, TypeError):
        return "UTC"


def plain_label(label: Any) -> Label:
    return label if isinstance(label, str | bool | int | float) else str(label)
