"""Stored models on their way out of a database."""

import datetime
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from streamgp import persistence
from streamgp.errors import FileError, problem
from streamgp.gp import ContinualGP
from streamgp.store.backend import AbstractSession
from streamgp.store.schema import in_chunks

_COLUMNS = "key, version, changed, updates, observations, size"


class Info(NamedTuple):
    """What is known of a stored model without loading it.

    Attributes:
        key: Its key.
        version: A number that grows with each change of it.
        changed: When it was last stored.
        updates: The number of its updates.
        observations: The number of its observations, by channel.
        size: The number of bytes that it takes.
    """

    key: str
    version: int
    changed: datetime.datetime
    updates: int
    observations: dict[str, int]
    size: int


class Stored(NamedTuple):
    """A model that was read, and what was known of it at that moment."""

    model: ContinualGP
    info: Info


class Life(NamedTuple):
    """A model with all that belongs to it, as it was at one moment.

    Attributes:
        stored: The model.
        offsets: How far each source has been read, by its name.
        answers: What requests were answered, the latest last, by their names.
    """

    stored: Stored
    offsets: dict[str, Any]
    answers: dict[str, bytes]


class Packed(NamedTuple):
    """A model that was read and is not yet put together."""

    row: tuple
    pieces: list[bytes]

    def unpacked(self) -> Stored:
        """The model.

        Raises:
            FileError: If it is damaged, or of a newer format.
        """
        *row, head = self.row
        info = _info(tuple(row))
        with _sound():
            parts = [bytes(piece) for piece in self.pieces]
            return Stored(ContinualGP._of(persistence.put_together(bytes(head), parts)), info)


def packed(session: AbstractSession, keys: list[str]) -> dict[str, Packed]:
    """Models by key, those that are there."""
    query = f"SELECT {_COLUMNS}, head FROM streamgp_models WHERE key IN"
    rows = {row[0]: row for row in in_chunks(session, query, keys)}
    query = "SELECT key, place, data FROM streamgp_pieces WHERE key IN"
    pieces: dict[str, list[bytes]] = {}
    for key, _, data in sorted(in_chunks(session, query, [*rows]), key=lambda row: row[:2]):
        pieces.setdefault(key, []).append(data)
    return {key: Packed(row, pieces.get(key, [])) for key, row in rows.items()}


def belongings(
    session: AbstractSession, key: str, most: int | None
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The offsets and the answers of a model."""
    query = "SELECT source, value FROM streamgp_offsets WHERE model = ? ORDER BY source"
    offsets = {source: json.loads(value) for source, value in session.run(query, (key,))}
    query = (
        "SELECT request, answer FROM streamgp_answers WHERE model = ? ORDER BY made DESC, request"
    )
    few = (query, (key,)) if most is None else (f"{query} LIMIT ?", (key, most))
    latest_first = session.run(*few)
    return offsets, {request: bytes(answer) for request, answer in reversed(latest_first)}


def infos(session: AbstractSession, condition: str, values: tuple) -> list[Info]:
    """What is known of some models."""
    rows = session.run(f"SELECT {_COLUMNS} FROM streamgp_models WHERE {condition}", values)
    return [_info(row) for row in rows]


def _info(row: tuple) -> Info:
    with _sound():
        key, version, changed, updates, observations, size = row
        when = datetime.datetime.fromtimestamp(changed, datetime.UTC)
        return Info(key, version, when, updates, json.loads(observations), size)


@contextmanager
def _sound() -> Iterator[None]:
    """A database may hold anything in place of what was written."""
    try:
        yield
    except FileError:
        raise
    except Exception as error:
        raise FileError(
            problem(
                "a model that `Store` has written",
                f"something else ({type(error).__name__}: {error})",
                "Restore the database from a copy.",
            )
        ) from error
