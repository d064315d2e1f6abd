"""Tables in files. They are read in pieces of a given number of rows, and written row by row.

A piece knows where each of its rows is: in which line of the file, or in which row of it where the
format has no lines.
"""

import contextlib
import csv
import io
import itertools
import json
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from streamgp.errors import DataError, problem

STDIN = "-"
ENCODING, ERRORS = "utf-8-sig", "surrogateescape"  # so that a wrong byte spoils one row only
_FORMATS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
_SHOWN = 60  # letters of a cell, or of a row, in a message


class Bad(NamedTuple):
    """A row that cannot be used, and why.

    Attributes:
        unit: What rows are counted in: lines, rows or messages.
        number: Which of them it is.
        column: The column of the bad cell; None if it is the row as a whole.
        expected: What was expected.
        cell: What came, as a message shows it.
        remedy: What to do.
    """

    unit: str
    number: int | str
    column: str | None
    expected: str
    cell: str
    remedy: str = "Correct it."

    @property
    def reason(self) -> str:
        """What was expected, and in which column."""
        return self.expected if self.column is None else f"{self.expected} in {self.column!r}"


class Piece(NamedTuple):
    """Some rows of a table, with cells as the format has them.

    Attributes:
        frame: The rows.
        unit: What they are counted in: lines, rows or messages.
        numbers: Which of them each row is.
        broken: Rows between them that could not be taken apart.
        has_header: Whether all rows have the same columns. If not, each names its own.
    """

    frame: pd.DataFrame
    unit: str
    numbers: Sequence[int | str]
    broken: Sequence[Bad] = ()
    has_header: bool = True

    @property
    def size(self) -> int:
        """The number of rows, also of those that are broken."""
        return len(self.frame) + len(self.broken)


def cell_text(cell: Any) -> str:
    """A cell, or a row, as a message shows it."""
    text = repr(cell)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


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
    *,
    skip: int = 0,
    format: str | None = None,  # noqa: A002
    text: Sequence[str] = (),
) -> Iterator[Piece]:
    """Read a table in pieces.

    Args:
        source: The file, or `-` for standard input.
        rows: The number of rows of each piece; the last one may have fewer.
        skip: The number of rows at the beginning that are left out.
        format: The format, if the name of the file does not tell.
        text: Columns that stay as they are written, also if they look like numbers.

    Yields:
        One piece after the other, as soon as its rows have arrived.

    Raises:
        DataError: If the source is not a table.
    """
    kind = format_of(source, format)
    if source == STDIN and kind == "parquet":
        raise DataError(problem("csv or jsonl on standard input", kind, "Save it to a file first."))
    if kind == "parquet":
        begin = skip + 1
        for frame in _exactly(_parquet(source, rows), rows, skip):
            yield Piece(frame, "row", range(begin, begin + len(frame)))
            begin += len(frame)
        return
    with _readable(source), contextlib.ExitStack() as stack:
        stream: Iterable[str] = sys.stdin
        if source != STDIN:
            stream = stack.enter_context(open(source, encoding=ENCODING, errors=ERRORS))
        records = _records(stream, may_span=kind == "csv")
        header = _header(records, source) if kind == "csv" else ""
        records = itertools.islice(records, skip, None)
        while held := list(itertools.islice(records, rows)):
            numbers, texts = zip(*held, strict=True)
            yield parsed(texts, numbers, header, source, text)


def parsed(
    rows: Sequence[str],
    numbers: Sequence[int],
    header: str,
    source: str,
    text: Sequence[str] = (),
) -> Piece:
    """Rows of a table from its lines.

    Args:
        rows: The text of each row.
        numbers: The line in which each row begins.
        header: The line with the names of the columns, for CSV; empty for JSONL.
        source: The name of the file, for errors.
        text: Columns that stay as they are written, also if they look like numbers.

    Raises:
        DataError: If it is not a table.
    """
    if not header:
        return objects(rows, "line", numbers)
    with _readable(source):
        try:
            frame = _parsed_csv(header, rows, text)
            broken: list[Bad] = []
        except (pd.errors.ParserError, pd.errors.ParserWarning, UnicodeEncodeError):
            width = len(next(csv.reader([header])))
            found = [_broken(row, n, width) for n, row in zip(numbers, rows, strict=True)]
            broken = [bad for bad in found if bad is not None]
            if not broken:
                raise
            whole = [(n, row) for n, row, b in zip(numbers, rows, found, strict=True) if b is None]
            numbers, rows = [n for n, _ in whole], [row for _, row in whole]
            frame = _parsed_csv(header, rows, text)
    if len(frame) != len(numbers):
        raise DataError(
            problem(
                f"one row in each of the lines {numbers[0]} to {numbers[-1]} of {source}",
                f"{len(frame)} rows in {len(numbers)} lines",
                "Check the quotes in these lines.",
            )
        )
    return Piece(frame, "line", numbers, broken)


def objects(rows: Sequence[str], unit: str, numbers: Sequence[int | str]) -> Piece:
    """Rows from objects in JSON, each of which names its columns."""
    read = [_object(row) for row in rows]
    fine = [value for value in read if value is not None]
    kept = [n for n, value in zip(numbers, read, strict=True) if value is not None]
    broken = [
        Bad(unit, n, None, "one JSON object per line", cell_text(row.strip()))
        for n, row, value in zip(numbers, rows, read, strict=True)
        if value is None
    ]
    return Piece(pd.DataFrame(fine), unit, kept, broken, has_header=False)


@contextlib.contextmanager
def _readable(source: str) -> Iterator[None]:
    try:
        yield
    except (
        pd.errors.ParserError, pd.errors.ParserWarning, pd.errors.EmptyDataError, UnicodeError
    ) as error:  # fmt: skip
        raise DataError(
            problem(f"a table in {source}", f"{error}", "Check the file and its format.")
        ) from error


def _header(records: Iterator[tuple[int, str]], source: str) -> str:
    found = next(records, None)
    if found is None:
        raise DataError(
            problem(f"a table in {source}", "no header", "Check the file and its format.")
        )
    return _ended(found[1])


def _records(stream: Iterable[str], *, may_span: bool) -> Iterator[tuple[int, str]]:
    """Rows, and the line in which each begins: cells in quotes may span several lines."""
    lines = enumerate(stream, 1)
    for number, line in lines:
        if may_span and '"' in line:
            while _goes_on(line):
                more = next(lines, None)
                if more is None:
                    break
                line += more[1]
        if not line.isspace():
            yield number, line


def _goes_on(row: str) -> bool:
    """Whether a cell of a row is in quotes that are still open."""
    if row.count('"') % 2 == 0:
        return False
    reader = csv.reader([row, ""])
    next(reader)
    return reader.line_num > 1


def _parsed_csv(header: str, rows: Sequence[str], text: Sequence[str]) -> pd.DataFrame:
    table = io.StringIO(header + "".join(rows))
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # of cells without a column
        return pd.read_csv(table, index_col=False, dtype=dict.fromkeys(text, str))


def _ended(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n"


def _broken(row: str, number: int, width: int) -> Bad | None:
    """What is wrong with a row of CSV as a whole."""
    if not _is_utf8(row):
        expected, got = "text in UTF-8", cell_text(row.encode(errors="surrogateescape").strip())
    elif _goes_on(row):
        expected, got = "quotes that are closed", cell_text(row.strip())
    else:
        cells = next(csv.reader(row.splitlines(keepends=True)))
        if not any(cells[width:]):
            return None
        expected = f"at most {width} cells, as in the header"
        got = f"{len(cells)}, {cell_text(row.strip())},"
    return Bad("line", number, None, expected, got)


def _is_utf8(row: str) -> bool:
    try:
        row.encode()
    except UnicodeEncodeError:
        return False
    return True


def _object(row: str) -> dict[str, Any] | None:
    try:
        value = json.loads(row)
    except ValueError:
        return None
    return value if isinstance(value, dict) and _is_utf8(row) else None


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
