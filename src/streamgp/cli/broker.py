"""`streamgp run` with a feed that a broker has: its messages, in batches of a given size."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from streamgp.cli import tables
from streamgp.cli.follow import Piece
from streamgp.errors import ConfigurationError, problem
from streamgp.sources import urls


class BrokerFeed:
    """The batches of a feed. It never ends.

    A batch is complete when it has its number of rows, so that batches are the same however often
    a run was stopped. Messages that are no objects in JSON are passed over.

    Args:
        url: Of the feed.
        rows: The number of rows of a batch.
        times: Columns that are read as times if they hold text.
        place: Where to go on; None for the beginning.
        settings: A TOML file with settings of brokers.
        console: Is told of messages that are passed over.

    Raises:
        ConfigurationError: If the place is one in another feed.
        DataError: If there is no such topic or stream.
        SourceError: If no broker answers.
    """

    def __init__(
        self,
        url: str,
        rows: int,
        times: list[str],
        *,
        place: Any,
        settings: Path | None,
        console: Console,
    ):
        self._url, self._rows, self._times, self._console = url, rows, times, console
        self._place = place
        if place is not None and place.get("feed") != url:
            raise ConfigurationError(
                problem(
                    f"the feed that was followed before, {place.get('feed', 'a file')}",
                    url,
                    "Name that feed, or start anew with `--restart`.",
                )
            )
        self._feed = urls.opened(url, None if place is None else place["place"], settings)

    def __iter__(self) -> Iterator[Piece]:
        held: list[dict[str, Any]] = []
        try:
            while True:
                came = self._feed.read(self._rows - len(held))
                rows = [row for row in map(_row, came.each) if row is not None]
                held += rows
                if len(rows) < len(came.each):
                    passed_over(self._console, len(came.each) - len(rows))
                if len(held) >= self._rows:
                    self._place = {"feed": self._url, "place": came.place}
                    yield Piece(self._frame(held), self._place)
                    held = []
                elif not came.each:
                    yield Piece(None, self._place)
        finally:
            self._feed.close()

    def _frame(self, rows: list[dict[str, Any]]) -> pd.DataFrame:
        return tables.with_times(pd.DataFrame(rows), self._times)


def passed_over(console: Console, count: int) -> None:
    """Say that messages were passed over."""
    console.print(f"Messages that cannot be learned and are passed over: {count:,}.")


def _row(message: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(message)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
