"""Tables: rows from clients as frames. JSON, NDJSON, CSV and Arrow all end as the same frame."""

import io
from collections.abc import Callable
from typing import Any

import pandas as pd

from streamgp.errors import DataError, problem
from streamgp.service import arrow
from streamgp.service.bodies import check_type
from streamgp.service.wire import JSON, read_json

NDJSON, CSV = "application/x-ndjson", "text/csv"


def read_table(kind: str, body: bytes, rows: int) -> pd.DataFrame:
    """Read rows.

    Args:
        kind: The content type of the request.
        body: The bytes.
        rows: The largest number of rows.

    Returns:
        A frame with a column for every name in the rows.

    Raises:
        RefusedError: If the content type is unknown.
        DataError: If the bytes are not rows, or too many.
    """
    check_type(kind, (*_READERS,))
    frame = _READERS[kind](body, rows)
    if len(frame) > rows:
        raise arrow.too_many_rows(rows)
    if not all(isinstance(name, str) for name in frame.columns):
        raise DataError(problem("names of columns", "others than text", "Name the columns."))
    return frame


def _json(body: bytes, rows: int) -> pd.DataFrame:
    try:
        value = read_json(body)
    except ValueError as error:
        raise DataError(problem("JSON", str(error)[:200], "Correct it.")) from error
    given = value.get("rows") if isinstance(value, dict) and value.keys() == {"rows"} else value
    return _frame(given, rows)


def _ndjson(body: bytes, rows: int) -> pd.DataFrame:
    found: list[Any] = []
    for number, line in enumerate(body.splitlines(), 1):
        if line.strip():
            if len(found) == rows:
                raise arrow.too_many_rows(rows)
            try:
                found.append(read_json(line))
            except ValueError as error:
                raise DataError(
                    problem("JSON in every line", f"{str(error)[:200]} in line {number}", "Fix it.")
                ) from error
    return _frame(found, rows)


def _frame(given: Any, rows: int) -> pd.DataFrame:
    if not (isinstance(given, list) and all(isinstance(row, dict) for row in given)):
        raise DataError(
            problem(
                'a list of rows, each an object such as {"time": "2024-05-01T12:00Z", "level": 3}',
                type(given).__name__,
                'Send [{…}, …] or {"rows": [{…}, …]}.',
            )
        )
    if len(given) > rows:
        raise arrow.too_many_rows(rows)
    for row in given:
        if any(isinstance(value, list | dict) for value in row.values()):
            raise DataError(
                problem(
                    "numbers, text, true, false or null in rows",
                    "a list or an object",
                    "Give every number a column of its own.",
                )
            )
    names = {name: None for row in given for name in row}  # in the order in which they come
    return pd.DataFrame({name: _column([row.get(name) for row in given]) for name in names})


def _column(values: list[Any]) -> Any:
    """A column as pandas reads it. Numbers too large for a float are refused as infinite later."""
    kinds = {type(value) for value in values if value is not None}
    if kinds and kinds <= {int, float}:
        try:
            return pd.Series([None if v is None else float(v) for v in values], dtype=float)
        except OverflowError:
            return pd.Series([float("inf")] * len(values))
    return pd.Series(values, dtype=None if kinds == {bool} and None not in values else object)


def _csv(body: bytes, rows: int) -> pd.DataFrame:
    try:
        return pd.read_csv(
            io.BytesIO(body), nrows=rows + 1, encoding="utf-8", float_precision="round_trip"
        )
    except (ValueError, OverflowError) as error:  # pandas' own errors are such
        raise DataError(problem("CSV", str(error)[:200], "Correct it.")) from error


_READERS: dict[str, Callable[[bytes, int], pd.DataFrame]] = {
    JSON: _json,
    NDJSON: _ndjson,
    "application/jsonl": _ndjson,
    CSV: _csv,
    arrow.STREAM: arrow.read_stream,
}
