"""Frames: the columns of a pandas or polars frame, and frames made of results."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from streamgp.data.columns import Column, loaded
from streamgp.errors import ConfigurationError, DataError, problem

INDEX = "index"  # the name of an index that has none


def is_frame(data: Any) -> bool:
    """Whether data are a pandas or polars frame. A lazy frame of polars is an error."""
    if type(data) is np.ndarray:  # as most are
        return False
    if isinstance(data, loaded("polars", "LazyFrame")):
        raise DataError(problem("a frame", "a LazyFrame", "Call `.collect()` on it first."))
    return isinstance(data, loaded("pandas", "DataFrame") + loaded("polars", "DataFrame"))


def is_indexed_series(data: Any) -> bool:
    """Whether data are a pandas series whose index holds the inputs of its values."""
    return isinstance(data, loaded("pandas", "Series")) and _has_index(data)


def names(frame: Any) -> list[Any]:
    """The names of the columns, which must differ."""
    found = list(frame.columns)
    twice = [name for i, name in enumerate(found) if name in found[:i]]
    if twice:
        raise DataError(
            problem("columns with different names", f"{twice[0]!r} twice", "Rename one of them.")
        )
    return found


def pick(frame: Any, wanted: Any) -> Any:
    """A column of a frame by name, or the index of a pandas frame."""
    if wanted in names(frame):
        return frame[wanted]
    if _has_index(frame) and wanted == index_name(frame):
        return frame.index
    raise DataError(
        problem(
            f"a column {wanted!r}",
            f"columns {names(frame)}{_and_index(frame)}",
            "Check the column's name.",
        )
    )


def index_name(frame: Any) -> Any:
    """The name of the index of a pandas frame."""
    return INDEX if frame.index.name is None else frame.index.name


def input_columns(frame: Any, inputs: Any, known: tuple[Any, ...]) -> list[Any]:
    """The names of the input columns of a frame.

    Times in an index without a name stand for the one input that no column has. So do times in any
    index, if the index of the first frame had no name.

    Args:
        frame: The frame.
        inputs: A name or a list of names, if the user gave any.
        known: The names of the input columns in the first frame, if there was one.

    Returns:
        The names that this frame has for them, in the order of the first frame. By default they are
        those of the first frame, or else the name of the index.

    Raises:
        DataError: If no name is known, or the names are not those of the first frame.
    """
    asked = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    if inputs is None:
        asked = list(known) or _index_names(frame)
    if not asked:
        raise DataError(
            problem(
                "the name of the input column, or a list of names",
                f"none, for a frame with the columns {names(frame)}"
                if inputs is None
                else repr(inputs),
                'Call `update(frame, inputs="date")`, with the name of your column.',
            )
        )
    if known and set(asked) != set(known):
        raise DataError(
            problem(
                f"inputs {list(known)}, as in the first frame",
                repr(asked),
                "Give every batch and every prediction the same input columns.",
            )
        )
    return _found(frame, known) if known else asked


def _found(frame: Any, known: Sequence[Any]) -> list[Any]:
    """What the inputs of the first frame are called in a later one."""
    found = names(frame)
    absent = [name for name in known if name not in found]
    if not absent or not isinstance(frame, loaded("pandas", "DataFrame")):
        return list(known)
    own = index_name(frame)
    stands = _holds_times(frame.index) and own not in found and INDEX in (own, *absent)
    if len(absent) > 1 or not (stands or (_has_index(frame) and own == absent[0])):
        raise DataError(
            problem(
                f"the input {absent[0]!r} of the first frame, as a column or as the index",
                f"columns {found}{_and_index(frame)}",
                f"Call the column or the index that holds it {absent[0]!r}; "
                f"`frame.rename_axis({absent[0]!r})` names an index.",
            )
        )
    return [own if name in absent else name for name in known]


def _holds_times(index: Any) -> bool:
    return isinstance(index, loaded("pandas", "DatetimeIndex", "PeriodIndex"))


def _and_index(frame: Any) -> str:
    """The index of a pandas frame in words, after its columns."""
    if not isinstance(frame, loaded("pandas", "DataFrame")):
        return ""
    if not _has_index(frame):
        return ", and an index that only counts the rows"
    named = "without a name" if frame.index.name is None else f"named {frame.index.name!r}"
    return f", and an index {named}"


def _has_index(data: Any) -> bool:
    """Whether the index of a pandas object holds values, and does not only count the rows."""
    if not isinstance(data, loaded("pandas", "DataFrame", "Series")):
        return False
    return not isinstance(data.index, loaded("pandas", "RangeIndex", "MultiIndex"))


def _index_names(frame: Any) -> list[Any]:
    return [index_name(frame)] if _has_index(frame) else []


# -- frames of results ---------------------------------------------------------------------------


def make_frame(columns: Mapping[str, Column | np.ndarray], backend: str) -> Any:
    """Make a frame of results, with times in their zone.

    Args:
        columns: The columns by name.
        backend: "pandas" or "polars".

    Returns:
        A frame of that library.

    Raises:
        ConfigurationError: If the backend is another.
    """
    if backend not in ("pandas", "polars"):
        raise ConfigurationError(
            problem("backend 'pandas' or 'polars'", repr(backend), "Choose one of them.")
        )
    if backend == "polars":
        import polars

        return polars.DataFrame([_polars(name, values) for name, values in columns.items()])
    import pandas

    return pandas.DataFrame({name: _pandas(values) for name, values in columns.items()})


def _pandas(values: Column | np.ndarray) -> Any:
    import pandas

    if not isinstance(values, Column):
        return values
    series = pandas.Series(values.values)
    if values.zone is None:
        return series
    return series.dt.tz_localize("UTC").dt.tz_convert(values.zone)


def _polars(name: str, values: Column | np.ndarray) -> Any:
    import polars

    if not isinstance(values, Column):
        plain = values.tolist() if values.dtype.kind in "OU" else values
        return polars.Series(name, plain)
    series = polars.Series(name, _ticks(values.values))
    if values.zone is None:
        return series
    return series.dt.replace_time_zone("UTC").dt.convert_time_zone(values.zone)


def _ticks(values: np.ndarray) -> np.ndarray:
    """Times in a unit that polars has: it has no seconds."""
    return values.astype("M8[ms]") if values.dtype == np.dtype("M8[s]") else values
