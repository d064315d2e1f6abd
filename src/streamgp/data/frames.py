"""Frames: the columns of a pandas or polars frame, and frames made of results."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamgp.data.columns import Column, loaded
from streamgp.errors import ConfigurationError, DataError, problem

INDEX = "index"  # what an index without a name is called


def is_frame(data: Any) -> bool:
    if isinstance(data, loaded("polars", "LazyFrame")):
        raise DataError(problem("a frame", "a LazyFrame", "Call `.collect()` on it first."))
    return isinstance(data, loaded("pandas", "DataFrame") + loaded("polars", "DataFrame"))


def is_indexed_series(data: Any) -> bool:
    """A pandas Series whose index says where its values were observed."""
    return isinstance(data, loaded("pandas", "Series")) and _has_index(data)


def names(frame: Any) -> list[Any]:
    """The columns' names."""
    found = list(frame.columns)
    twice = [name for i, name in enumerate(found) if name in found[:i]]
    if twice:
        raise DataError(
            problem("columns with names of their own", f"{twice[0]!r} twice", "Rename one of them.")
        )
    return found


def pick(frame: Any, wanted: Any) -> Any:
    """A column, or a pandas frame's index, by name."""
    if wanted in names(frame):
        return frame[wanted]
    if _has_index(frame) and wanted == index_name(frame):
        return frame.index
    raise DataError(
        problem(f"a column {wanted!r}", f"columns {names(frame)}", "Check the column's name.")
    )


def index_name(frame: Any) -> Any:
    return INDEX if frame.index.name is None else frame.index.name


def input_columns(frame: Any, inputs: Any, known: tuple[Any, ...]) -> list[Any]:
    """The names of the input columns: as asked, as they were called before, or the index."""
    asked = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    if inputs is None:
        asked = list(known) or _index_names(frame)
    if not asked:
        raise DataError(
            problem(
                "the name of the input column, or a list of names",
                "none" if inputs is None else repr(inputs),
                'Call `update(frame, inputs="date")`, with the name of yours.',
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
    return list(known) or asked


def _has_index(data: Any) -> bool:
    """Whether a pandas object's index says something, unlike one that only counts the rows."""
    index = getattr(data, "index", None)
    ranges, many = loaded("pandas", "RangeIndex"), loaded("pandas", "MultiIndex")
    return isinstance(index, loaded("pandas", "Index")) and not isinstance(index, ranges + many)


def _index_names(frame: Any) -> list[Any]:
    return [index_name(frame)] if _has_index(frame) else []


# -- frames of results ---------------------------------------------------------------------------


def make_frame(columns: Mapping[str, Column | np.ndarray], backend: str) -> Any:
    """A new frame; times come back in their zone."""
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
    """polars counts milliseconds at the coarsest."""
    return values.astype("M8[ms]") if values.dtype == np.dtype("M8[s]") else values
