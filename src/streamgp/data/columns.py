"""Columns: a list of numbers, times or labels, from whichever library it comes.

pandas and polars are not needed. They are looked at only if the caller has imported them.
"""

import datetime
import sys
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Bool

from streamgp.data import times
from streamgp.data.wording import counted, place
from streamgp.errors import DataError, problem

Label: TypeAlias = str | bool | int | float
Kind: TypeAlias = Literal["number", "time", "label"]

LARGEST = 1e100  # squares of larger numbers overflow
_UNREADABLE = (TypeError, ValueError, ArithmeticError, AttributeError)


class Column(NamedTuple):
    """Values of one kind, one per row, and which of them are missing.

    Attributes:
        kind: What the values are.
        values: Numbers as floats, times as datetime64 (in UTC if they have a zone), or labels.
        missing: Which of the values are missing.
        zone: The name of the time zone of times, or None if they have none.
        categories: All labels in their order, if the data type lists them.
        is_boolean: Whether the numbers came as booleans.
    """

    kind: Kind
    values: np.ndarray
    missing: Bool[np.ndarray, " N"]
    zone: str | None = None
    categories: tuple[Label, ...] = ()
    is_boolean: bool = False

    @property
    def zoned(self) -> np.ndarray:
        """The values. Times with a zone are Python's datetimes, since NumPy's have no zone."""
        return self.values if self.zone is None else times.in_zone(self.values, self.zone)

    def describe(self) -> str:
        """The kind of the values and the first of them, for a message."""
        present = self.values[~self.missing][:1]
        if self.kind == "time":
            present = times.in_zone(present, self.zone) if self.zone else present.astype("M8[us]")
        elif self.is_boolean:
            present = present.astype(bool)
        return self._kind_in_words() + "".join(f", such as {value}" for value in present.tolist())

    def _kind_in_words(self) -> str:
        if self.kind != "time":
            return "booleans" if self.is_boolean else f"{self.kind}s"
        return "times without a time zone" if self.zone is None else f"times in {self.zone}"


def read(values: Any, what: str) -> Column:
    """Read a column of any kind.

    Args:
        values: A series, an index, an array or a list.
        what: What the values are, for a message.

    Returns:
        The column.

    Raises:
        DataError: If the values are not all numbers, all times or all labels.
    """
    try:
        return _read(values)
    except _UNREADABLE as error:
        raise _unreadable(f"{what} as numbers", values, error) from error


def read_input(values: Any, what: str) -> Column:
    """Read a column of inputs: as `read`, but ISO 8601 text is read as times.

    Args:
        values: A series, an index, an array or a list.
        what: What the values are, for a message.

    Returns:
        A column of numbers or times.

    Raises:
        DataError: If the values are neither all numbers nor all times.
    """
    try:
        column = _text_as_times(_read(values))
    except times.MixedZonesError as error:
        raise DataError(
            problem(
                f"{what} as times that all have a time zone, or that all have none",
                str(error),
                "Say the zone of every time, for example with "
                '`time.replace(tzinfo=ZoneInfo("UTC"))` or with "Z" at the end of text; '
                "or take the zone away from all of them.",
            )
        ) from error
    except _UNREADABLE as error:
        raise _unreadable(f"{what} as numbers or times", values, error) from error
    if column.kind == "label":
        raise _no_times(column, what)
    return column


def _text_as_times(column: Column) -> Column:
    """Labels as times, if all of them stand for times; any other column as it is."""
    if column.kind != "label":
        return column
    parsed = [times.parsed(value) for value in column.values[~column.missing]]
    return column if None in parsed else _time_column(parsed, column.missing)


def _no_times(column: Column, what: str) -> DataError:
    rows = np.flatnonzero(~column.missing)
    first = next(row for row in rows if times.parsed(column.values[row]) is None)
    return DataError(
        problem(
            f"{what} as numbers or times",
            f"{column.values[first]!r} in row {first}",
            "Convert them first. Text is read as times if all of it is in ISO 8601, such as "
            '"2013-06-01" or "2013-06-01T12:00Z".',
        )
    )


def _unreadable(expected: str, values: Any, error: Exception) -> DataError:
    return DataError(problem(expected, f"{type(values).__name__} ({error})", "Convert them first."))


# -- containers ----------------------------------------------------------------------------------


def loaded(library: str, *names: str) -> tuple[Any, ...]:
    """Classes of a library by name; none of them if the caller has not imported the library."""
    module = sys.modules.get(library)
    # While another thread imports the library, its module exists and its classes may not.
    return tuple(kind for name in names if (kind := getattr(module, name, None)) is not None)


def is_series(values: Any) -> bool:
    """Whether values are a pandas or polars series, or another column of pandas."""
    if type(values) is np.ndarray:  # as most are
        return False
    return isinstance(values, loaded("polars", "Series")) or _is_pandas(values)


def _is_pandas(values: Any) -> bool:
    """Whether values are a series, an index, or an array of a data type that only pandas has."""
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
    """An array of what a list holds; numbers beside text stay numbers."""
    if type(values) is np.ndarray:
        return values
    try:
        if np.ma.is_masked(values):
            raise TypeError("with masked values")
        array = np.asarray(values)
        is_list = isinstance(values, list | tuple)
        return np.asarray(values, object) if is_list and array.dtype.kind == "U" else array
    except _UNREADABLE as error:
        raise _unreadable(f"{what} as numbers", values, error) from error


def is_usable(values: np.ndarray) -> Bool[np.ndarray, " N"]:
    """Which numbers can be computed with: not those that are NaN, infinite or too large."""
    return np.abs(values) < LARGEST


def check_finite(values: np.ndarray, what: str, rows: np.ndarray) -> None:
    """Raise an error where a number cannot be computed with.

    Args:
        values: The numbers.
        what: What they are, for the message.
        rows: The number of the row of each in the user's data.

    Raises:
        DataError: If a number is NaN, infinite or too large.
    """
    usable = is_usable(values)
    if not usable.all():
        bad = np.flatnonzero(~usable)
        are = "is" if len(bad) == 1 else "are"
        raise DataError(
            problem(
                f"finite {what}, below {LARGEST:g} in size",
                f"{counted(len(bad), 'value')} that {are} NaN, infinite or larger, "
                f"{place(len(bad), rows[bad[0]])}",
                "Leave such rows out: a missing observation needs no placeholder.",
            )
        )


# -- reading -------------------------------------------------------------------------------------


def _read(values: Any) -> Column:
    if type(values) is np.ndarray:
        return _read_array(np.atleast_1d(values))
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
        return _instants(array, None)
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
        return _time_column(present, missing)
    if odd := [value for value in present if isinstance(value, str | bytes)]:
        raise TypeError(f"text among other values, such as {odd[0]!r}")
    numbers = np.full(len(array), np.nan)
    numbers[~missing] = [float(value) for value in present]
    is_boolean = bool(present) and all(isinstance(v, bool | np.bool_) for v in present)
    return Column("number", numbers, missing | np.isnan(numbers), is_boolean=is_boolean)


def _is_missing(value: Any) -> bool:
    """Whether a value stands for none: None, NaN, NaT, or pandas' NA and NaT."""
    if value is None or any(value is none for none in loaded("pandas", "NA", "NaT")):
        return True
    return isinstance(value, float | np.floating | np.datetime64) and bool(value != value)


def _time_column(present: list[Any], missing: np.ndarray) -> Column:
    """A column of times: those present, in order, and which rows have none."""
    values = np.full(len(missing), np.datetime64("NaT"), "M8[us]")
    values[~missing], zone = times.instants(present)
    return _instants(values, zone)


def _instants(values: np.ndarray, zone: str | None) -> Column:
    return Column("time", times.with_clock_unit(values), np.isnat(values), zone=zone)


def _read_pandas(series: Any) -> Column:
    import pandas

    dtype = series.dtype
    if isinstance(dtype, pandas.CategoricalDtype):
        return _read_pandas_categories(series)
    if isinstance(dtype, pandas.DatetimeTZDtype):
        return _instants(series.dt.tz_convert(None).to_numpy(), times.zone_name(dtype.tz))
    if isinstance(dtype, pandas.PeriodDtype):  # a period stands where it begins
        return _instants(series.dt.to_timestamp().to_numpy(), None)
    if dtype.kind in "biuf":
        numbers = series.to_numpy(dtype=float, na_value=np.nan)
        return Column("number", numbers, np.isnan(numbers), is_boolean=dtype.kind == "b")
    is_plain = isinstance(dtype, np.dtype)
    return _read_array(series.to_numpy() if is_plain else series.to_numpy(dtype=object))


def _read_pandas_categories(series: Any) -> Column:
    categories = series.dtype.categories
    if categories.dtype.kind == "M":
        return _read_pandas(series.astype(categories.dtype))
    labels = tuple(plain_label(label) for label in categories.tolist())
    codes = series.cat.codes.to_numpy()
    values = np.asarray([*labels, None], object)[codes]  # the code of a missing value is −1
    return Column("label", values, codes < 0, categories=labels)


def _read_polars(series: Any) -> Column:
    import polars

    dtype = series.dtype
    if dtype.is_numeric() or dtype in (polars.Boolean, polars.Null):
        numbers = series.cast(polars.Float64).to_numpy().astype(float)
        return Column("number", numbers, np.isnan(numbers), is_boolean=dtype == polars.Boolean)
    if dtype == polars.Datetime:
        plain = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return _instants(plain.to_numpy(), dtype.time_zone and times.zone_name(dtype.time_zone))
    if dtype == polars.Date:
        return _instants(series.to_numpy(), None)
    if dtype in (polars.String, polars.Categorical, polars.Enum, polars.Object):
        values = np.empty(len(series), object)
        values[:] = series.to_list()
        column = _read_objects(values)
        names = tuple(dtype.categories.to_list()) if dtype == polars.Enum else ()
        return column._replace(categories=names) if names else column
    raise TypeError(f"values of type {dtype}")


def plain_label(label: Any) -> Label:
    """A label of a type that files can hold; any other becomes text."""
    return label if isinstance(label, str | bool | int | float) else str(label)
