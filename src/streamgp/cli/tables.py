"""Tables in files. They are read in pieces of a given number of rows, and written row by row."""

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import pandas as pd

from streamgp.errors import DataError, problem

STDIN = "-"
_OFFSET = r"(?:Z|[+-]\d\d:?\d\d)$"  # the offset from UTC at the end of a written time
_FORMATS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}


def format_of(path: str | Path, given: str | None = None) -> str:
    """Tell the format of a table: csv, jsonl or parquet.

    Args:
        path: The file, or `-` for standard input, which is CSV unless the caller says otherwise.
        given: The format that the caller asked for, if any.

    Returns:
        The format's name.

    Raises:
        DataError: If the name of the file does not tell.
    """
    if given is not None:
        return given
    if str(path) == STDIN:
        return "csv"
    suffix = Path(path).suffix.lower()
    if suffix not in _FORMATS:
        raise DataError(
            problem(
                f"a file that ends in {', '.join(_FORMATS)}",
                str(path),
                "Rename it, or name its format with `--format`.",
            )
        )
    return _FORMATS[suffix]


def pieces(
    source: str,
    rows: int,
    times: list[str],
    *,
    skip: int = 0,
    format: str | None = None,  # noqa: A002
) -> Iterator[pd.DataFrame]:
    """Read a table in pieces.

    Args:
        source: The file, or `-` for standard input.
        rows: The number of rows of each piece; the last one may have fewer.
        times: Columns that are read as times if they hold text.
        skip: The number of rows at the beginning that are left out.
        format: The format, if the name of the file does not tell.

    Yields:
        One data frame per piece, as soon as its rows have arrived.

    Raises:
        DataError: If the source is not a table.
    """
    kind = format_of(source, format)
    if source == STDIN and kind == "parquet":
        raise DataError(problem("csv or jsonl on standard input", kind, "Save it to a file first."))
    reader = {"csv": _csv, "jsonl": _jsonl, "parquet": _parquet}[kind]
    with _readable(source):
        for frame in _exactly(reader(source, rows), rows, skip):
            yield with_times(frame, times)


def parsed(data: BinaryIO, kind: str, source: str, times: list[str]) -> pd.DataFrame:
    """A table from its bytes.

    Args:
        data: Lines of CSV, with their header, or of JSONL.
        kind: Which of both.
        source: The name of the file, for errors.
        times: Columns that are read as times if they hold text.

    Raises:
        DataError: If it is not a table.
    """
    with _readable(source):
        if kind == "csv":
            return with_times(pd.read_csv(data), times)
        lines = enumerate(data.read().decode().splitlines(), 1)
        return with_times(pd.DataFrame([_object(line, n) for n, line in lines]), times)


@contextlib.contextmanager
def _readable(source: str) -> Iterator[None]:
    try:
        yield
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise DataError(
            problem(f"a table in {source}", f"{error}", "Check the file and its format.")
        ) from error


class _Lines:
    """A text stream that gives one line per `read`.

    pandas asks for a quarter of a megabyte at a time. A pipe that stays open would keep it waiting
    for that much, although whole rows have arrived.
    """

    def __init__(self, stream: TextIO):
        self._stream = stream

    def read(self, size: int = -1) -> str:
        return self._stream.readline(size)

    def __iter__(self) -> Iterator[str]:
        return iter(self._stream)


def _csv(source: str, rows: int) -> Iterator[pd.DataFrame]:
    readable: Any = _Lines(sys.stdin) if source == STDIN else source
    yield from pd.read_csv(readable, chunksize=rows)


def _jsonl(source: str, rows: int) -> Iterator[pd.DataFrame]:
    with contextlib.ExitStack() as stack:
        lines: Any = sys.stdin
        if source != STDIN:
            lines = stack.enter_context(open(source, encoding="utf-8"))
        batch: list[dict[str, Any]] = []
        for number, line in enumerate(lines, 1):
            if line.strip():
                batch.append(_object(line, number))
            if len(batch) == rows:
                yield pd.DataFrame(batch)
                batch = []
        if batch:
            yield pd.DataFrame(batch)


def _object(line: str, number: int) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except json.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise DataError(
            problem(
                "one JSON object per line",
                f"{line.strip()[:60]!r} in line {number}",
                "Correct that line.",
            )
        )
    return value


def _parquet(source: str, rows: int) -> Iterator[pd.DataFrame]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(source) as file:
            for batch in file.iter_batches(batch_size=rows):
                yield batch.to_pandas()
    except pa.ArrowInvalid as error:
        raise DataError(
            problem("a Parquet file", f"{source} ({error})", "Check the file.")
        ) from error


def _exactly(frames: Iterator[pd.DataFrame], rows: int, skip: int) -> Iterator[pd.DataFrame]:
    """Cut the rows into pieces that do not depend on how the reader happened to cut them."""
    held: list[pd.DataFrame] = []
    count = 0
    for frame in frames:
        dropped = min(skip, len(frame))
        skip -= dropped
        frame = frame.iloc[dropped:]
        held.append(frame)
        count += len(frame)
        if count >= rows:
            whole = pd.concat(held, ignore_index=True)
            while len(whole) >= rows:
                yield whole.iloc[:rows].reset_index(drop=True)
                whole = whole.iloc[rows:]
            held, count = [whole], len(whole)
    if count:
        yield pd.concat(held, ignore_index=True)


def with_times(frame: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """A table whose columns of those names hold times, if they held text."""
    for name in columns:
        if name in frame and not pd.api.types.is_numeric_dtype(frame[name]):
            try:
                frame = frame.assign(**{name: _times(frame[name])})
            except (ValueError, TypeError) as error:
                raise DataError(
                    problem(
                        f"numbers or times in column {name!r}", str(error), "Use ISO 8601 times."
                    )
                ) from error
    return frame


def _times(column: pd.Series) -> pd.Series:
    """Read written times. If their offsets differ, as around summer time, convert them to UTC."""
    try:
        return pd.to_datetime(column)
    except ValueError:
        if not column.dropna().astype(str).str.contains(_OFFSET).all():
            raise
        return pd.to_datetime(column, utc=True)


def text(frame: pd.DataFrame, kind: str, *, header: bool) -> str:
    """Write a frame as lines of CSV or JSONL."""
    if kind == "csv":
        return frame.to_csv(index=False, header=header)
    return frame.to_json(orient="records", lines=True, date_format="iso")


def write(frame: pd.DataFrame, path: str | Path, format: str | None = None) -> None:  # noqa: A002
    """Write a whole frame into a file, or to standard output if the path is `-`."""
    kind = format_of(path, format)
    if str(path) == STDIN:
        sys.stdout.write(text(frame, kind, header=True))
    elif kind == "parquet":
        frame.to_parquet(path, index=False)
    else:
        Path(path).write_text(text(frame, kind, header=True), encoding="utf-8")
