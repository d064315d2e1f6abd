"""`streamgp run` with a feed that a broker has: its messages, in batches of a given size."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from streamgp.cli import tables
from streamgp.cli.follow import Batch
from streamgp.errors import ConfigurationError, problem
from streamgp.sources import urls


class BrokerFeed:
    """The batches of a feed. It never ends.

    A batch is complete when it has its number of messages, with those that are left out of it, so
    that batches are the same however often a run was stopped. Until then its messages wait.

    Args:
        url: Of the feed.
        rows: The number of messages of a batch.
        place: Where to go on; None for the beginning.
        settings: A TOML file with settings of brokers.

    Raises:
        ConfigurationError: If the place is one in another feed.
        DataError: If there is no such topic or stream.
        SourceError: If no broker answers.
    """

    def __init__(self, url: str, rows: int, *, place: Any, settings: Path | None):
        self._url, self._rows, self._place = url, rows, place
        if place is not None and place.get("feed") != url:
            raise ConfigurationError(
                problem(
                    f"the feed that was followed before, {place.get('feed', 'a file')}",
                    url,
                    "Name that feed, or start anew with `--restart`.",
                )
            )
        self._feed = urls.opened(url, None if place is None else place["place"], settings)

    def __iter__(self) -> Iterator[Batch]:
        held: list[str] = []
        numbers: list[str] = []
        try:
            while True:
                came = self._feed.read(self._rows - len(held))
                held += [message.decode(tables.ENCODING, tables.ERRORS) for message in came.each]
                numbers += came.numbers
                if len(held) >= self._rows:
                    self._place = {"feed": self._url, "place": came.place}
                    yield Batch(tables.objects(held, "message", numbers), self._place)
                    held, numbers = [], []
                elif not came.each:
                    yield Batch(None, self._place)
        finally:
            self._feed.close()
