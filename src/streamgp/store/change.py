"""What one transaction of a store is to change."""

import dataclasses
import json
from typing import Any, NamedTuple

from streamgp import persistence
from streamgp.errors import DataError, problem
from streamgp.gp import ContinualGP
from streamgp.store.schema import NOBODY

Owned = tuple[str, str]  # the key of a model, or `NOBODY`, and a name that is its own

_LONGEST = 1024  # characters of a key; databases have limits of their own


class Put(NamedTuple):
    """A model that is to be stored, as it was when `put` was called.

    Attributes:
        pieces: The model.
        updates: The number of its updates.
        observations: The number of its observations, by channel.
        version: The version that it is to replace; None for whichever is there.
    """

    pieces: persistence.Pieces
    updates: int
    observations: dict[str, int]
    version: int | None


class Delete(NamedTuple):
    """A model that is to be removed, if it has that version."""

    version: int | None


@dataclasses.dataclass
class Change:
    """Changes that a store makes together, all of them or none.

    `Store.transaction` gives one. Nothing is written before its block ends.

    Attributes:
        versions: After the block, the version that each stored model has got, by key.
    """

    versions: dict[str, int] = dataclasses.field(default_factory=dict, init=False)
    models: dict[str, Put | Delete] = dataclasses.field(default_factory=dict, init=False)
    offsets: dict[Owned, str] = dataclasses.field(default_factory=dict, init=False)
    answers: dict[Owned, bytes] = dataclasses.field(default_factory=dict, init=False)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to change."""
        return not (self.models or self.offsets or self.answers)

    def put(self, key: str, model: ContinualGP, *, version: int | None = None) -> None:
        """Store a model as it is now.

        Args:
            key: Any text of 1 to 1,024 characters.
            model: The model. What it learns later is not stored.
            version: The version that it is to replace, 0 for a key that must not be there. By
                default it replaces whatever is there.

        Raises:
            DataError: If the key cannot be used.
            FileError: If a part of the model cannot be written.
        """
        updater, progress = model._version
        whole = persistence.Contents(updater, progress, model.notes, model._bookkeeping)
        pieces = persistence.take_apart(whole)
        put = Put(pieces, progress.updates, dict(progress.seen), version)
        self.models[checked(key, "key")] = put

    def delete(self, key: str, *, version: int | None = None) -> None:
        """Remove a model, with the offsets and the records of requests that belong to it.

        Args:
            key: Of the model. It has to be there.
            version: The version that it must have; by default any.
        """
        self.models[checked(key, "key")] = Delete(version)

    def set_offset(self, source: str, offset: Any, *, model: str | None = None) -> None:
        """Say how far a source has been read.

        Args:
            source: The source's name.
            offset: What is needed to go on from there: anything that JSON has.
            model: The key of the model that learned from it, if the offset is to go when the model
                is deleted. Every model has offsets of its own.

        Raises:
            DataError: If JSON cannot hold it.
        """
        try:
            text = json.dumps(offset, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise DataError(
                problem("an offset that JSON can hold", f"{offset!r} ({error})", "Use plain ones.")
            ) from error
        self.offsets[owned(source, "source", model)] = text

    def record(self, request: str, answer: bytes, *, model: str | None = None) -> None:
        """Say that a request was handled, and with which answer.

        A request is handled once: the transaction fails if it was recorded before.

        Args:
            request: What the client calls the request: its idempotency key.
            answer: What it was answered, for a client that asks again.
            model: The key of the model that handled it, if the record is to go when the model is
                deleted. Every model has requests of its own.
        """
        if not isinstance(answer, bytes):
            raise DataError(problem("an answer in bytes", f"{answer!r}", "Encode it."))
        self.answers[owned(request, "request", model)] = answer


def owned(name: str, what: str, model: str | None) -> Owned:
    """The name of something that belongs to a model, or to none.

    Raises:
        DataError: If a database cannot hold it.
    """
    return (NOBODY if model is None else checked(model, "key"), checked(name, what))


def checked(name: str, what: str) -> str:
    """The name, if every database can hold it.

    Raises:
        DataError: If it is no text, empty, too long, or has characters that are not stored.
    """
    if isinstance(name, str) and 1 <= len(name) <= _LONGEST and "\0" not in name:
        try:
            name.encode()
        except UnicodeEncodeError:
            pass
        else:
            return name
    got = f"{name[:40]!r}, {len(name)} characters" if isinstance(name, str) else repr(name)
    raise DataError(
        problem(f"a {what} of 1 to {_LONGEST} characters of Unicode text", got, "Rename it.")
    )
