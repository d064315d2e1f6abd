"""What a program needs of a feed: messages as they come, and the place after them."""

import abc
import dataclasses
from typing import Any, NamedTuple

from streamgp.sources.growing_file import Follower, Place


class Messages(NamedTuple):
    """Messages that have come.

    Attributes:
        each: The messages.
        header: What stands before them in a table; empty if they are objects in JSON.
        place: Where to go on after them, as JSON has it.
        numbers: Which message, or which line of a file, each of them is.
    """

    each: list[bytes]
    header: bytes
    place: Any
    numbers: list[str]


def flat(message: bytes) -> bytes:
    """A message that may be written over several lines, as one: in JSON they are as spaces."""
    return message.strip().replace(b"\r", b" ").replace(b"\n", b" ")


class AbstractFeed(abc.ABC):
    """A feed that can be read again from a place."""

    @abc.abstractmethod
    def read(self, most: int) -> Messages:
        """The messages that have come since the last call. It waits for a moment if none have."""

    @abc.abstractmethod
    def close(self) -> None:
        """Let go of it."""


class FileFeed(AbstractFeed):
    """The lines of a file that grows: objects in JSON, or rows of CSV after a header.

    Args:
        path: Of the file.
        place: What `Messages.place` was; None for the beginning.
    """

    def __init__(self, path: str, place: Any = None):
        self._place = place
        known = None if place is None else Place(**place)
        self._follower = Follower(path, known, header=path.endswith(".csv"))

    def read(self, most: int) -> Messages:
        """The lines that have come. It never waits."""
        came = self._follower.read(most)
        if came.place is not None:
            self._place = dataclasses.asdict(came.place)
        numbers = [f"{number}" for number in came.numbers]
        return Messages(came.lines, came.header, self._place, numbers)

    def close(self) -> None:
        """Close the file."""
        self._follower.close()
