"""Arrow: record batches from clients, as data and nothing more.

A stream of record batches may ask for far more memory than it has bytes: by compressed buffers, by
columns of nulls or of runs, by indices that point elsewhere. Only plain columns of numbers, times
and text are taken, uncompressed, and every offset is checked before it is followed.
"""

import struct
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from streamgp.errors import DataError, problem

STREAM = "application/vnd.apache.arrow.stream"
_SCHEMA, _DICTIONARY, _BATCH = 1, 2, 3  # kinds of messages: MessageHeader of the format
_PLAIN: tuple[Callable[[Any], bool], ...] = (
    pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_timestamp,
    pa.types.is_date, pa.types.is_string, pa.types.is_large_string, pa.types.is_null,
)  # fmt: skip


def read_stream(body: bytes, rows: int) -> Any:
    """A pandas frame from the bytes of an Arrow IPC stream.

    Args:
        body: The bytes.
        rows: The largest number of rows.

    Returns:
        The frame.

    Raises:
        DataError: If the bytes are something else, or more than that.
    """
    try:
        _check_messages(body)
        with pa.ipc.open_stream(body) as reader:
            _check_schema(reader.schema)
            batches, count = [], 0
            for batch in reader:
                count += batch.num_rows
                if count > rows:
                    raise too_many_rows(rows)
                batch.validate(full=True)
                batches.append(batch)
        return pa.Table.from_batches(batches, reader.schema).to_pandas()
    except (pa.ArrowException, struct.error, IndexError, OSError, UnicodeDecodeError) as error:
        raise DataError(
            problem("an Arrow IPC stream", f"{str(error)[:200]}", "Write it with pyarrow.ipc.")
        ) from error


def too_many_rows(most: int) -> DataError:
    """There are more rows than one batch may have."""
    return DataError(problem(f"at most {most} rows", "more", "Send them in several batches."))


def _check_schema(schema: Any) -> None:
    for field in schema:
        if not any(is_kind(field.type) for is_kind in _PLAIN):
            raise DataError(
                problem(
                    "columns of numbers, booleans, times or text",
                    f"{field.name[:100]!r} of type {str(field.type)[:100]}",
                    "Convert it before sending.",
                )
            )


def _check_messages(body: bytes) -> None:
    """Refuse compressed batches, and dictionaries, before anything is allocated for them."""
    for message in pa.ipc.MessageReader.open_stream(body):
        metadata = message.metadata.to_pybytes()
        kind, header = _header(metadata)
        if kind == _DICTIONARY or (kind == _BATCH and _field(metadata, header, 3) is not None):
            raise DataError(
                problem(
                    "record batches without compression and dictionaries",
                    "one with",
                    "Write the stream with the default options.",
                )
            )
        if kind not in (_SCHEMA, _BATCH):
            raise DataError(problem("record batches", "another message", "Send a table."))


def _header(message: bytes) -> tuple[int, int]:
    """The kind of a message, and where its header begins (a flatbuffer)."""
    (root,) = struct.unpack_from("<I", message, 0)
    kind, header = _field(message, root, 1), _field(message, root, 2)
    if kind is None or header is None:
        raise struct.error("a message without a header")
    return message[kind], header + struct.unpack_from("<I", message, header)[0]


def _field(buffer: bytes, table: int, number: int) -> int | None:
    """Where a field of a flatbuffer's table is; None if the table does not have it."""
    vtable = table - struct.unpack_from("<i", buffer, table)[0]
    if vtable < 0:
        raise struct.error("a table outside of its buffer")
    (size,) = struct.unpack_from("<H", buffer, vtable)
    at = 4 + 2 * number
    if at >= size:
        return None
    (offset,) = struct.unpack_from("<H", buffer, vtable + at)
    return table + offset if offset else None
