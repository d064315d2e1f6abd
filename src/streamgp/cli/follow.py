"""`streamgp run --follow`: rows of a file as others write them, in batches of a given size."""

import dataclasses
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from streamgp.cli import tables
from streamgp.errors import ConfigurationError, problem
from streamgp.sources import Follower, Place

_PAUSE = 0.1  # seconds between two looks at the file


class Batch(NamedTuple):
    """Rows, and the place after them.

    Attributes:
        piece: The rows; None if there was time to look around and no batch is complete.
        place: Where to go on, as JSON has it; None for a table that is not followed.
    """

    piece: tables.Piece | None
    place: Any


class Feed:
    """The batches of a file that grows. It never ends.

    A batch is complete when it has its number of rows, or when the file is over because another
    one has replaced it.

    Args:
        source: The file.
        rows: The number of rows of a batch.
        text: Columns that stay as they are written.
        place: Where to go on; None for the beginning.
        skip: The number of rows at the beginning that are left out.
        format: The format, if the name of the file does not tell.

    Attributes:
        is_lost: Whether the file of the place is gone.

    Raises:
        ConfigurationError: If the source cannot be followed.
    """

    def __init__(
        self,
        source: str,
        rows: int,
        text: Sequence[str],
        *,
        place: Any,
        skip: int = 0,
        format: str | None = None,  # noqa: A002
    ):
        self._kind = tables.format_of(source, format)
        if source == tables.STDIN or self._kind == "parquet":
            raise ConfigurationError(
                problem(
                    "a file of CSV or JSONL to follow",
                    "standard input" if source == tables.STDIN else source,
                    "Leave out `--follow`, or name such a file.",
                )
            )
        self._source, self._rows, self._text, self._skip = source, rows, text, skip
        self._place = place
        known = None if place is None else Place(**place)
        self._follower = Follower(source, known, header=self._kind == "csv")
        self.is_lost = self._follower.lost

    def __iter__(self) -> Iterator[Batch]:
        held: list[bytes] = []
        numbers: list[int] = []
        try:
            while True:
                self._skip_some()
                came = self._follower.read(self._rows - len(held))
                held += came.lines
                numbers += came.numbers
                if held and (came.ended or len(held) == self._rows):
                    self._place = _plain(came.place)
                    yield Batch(self._piece(came.header, held, numbers), self._place)
                    held, numbers = [], []
                elif came.ended:
                    self._place = _plain(came.place)
                elif not came.lines:
                    yield Batch(None, self._place)
                    time.sleep(_PAUSE)
        finally:
            self._follower.close()

    def _skip_some(self) -> None:
        """Leave out rows that were learned by a run that did not follow the file."""
        while self._skip:
            came = self._follower.read(self._skip)
            self._skip = 0 if came.ended or not came.lines else self._skip - len(came.lines)

    def _piece(self, header: bytes, held: list[bytes], numbers: list[int]) -> tables.Piece:
        head, *rows = (line.decode(tables.ENCODING, tables.ERRORS) for line in [header, *held])
        return tables.parsed(rows, numbers, head, self._source, self._text)


def _plain(place: Place | None) -> Any:
    return None if place is None else dataclasses.asdict(place)
