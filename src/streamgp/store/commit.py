"""A change on its way into a database."""

import json
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from streamgp.errors import StaleError, UnknownKeyError, problem
from streamgp.persistence import Label, Piece
from streamgp.store.backend import AbstractSession
from streamgp.store.change import Change, Delete, Put
from streamgp.store.schema import ABSENT, in_chunks

Listed = dict[float, bytes]  # the digest of the piece in each place

_PUT = """
INSERT INTO streamgp_models (key, version, changed, updates, observations, size, head)
VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET version = excluded.version,
changed = excluded.changed, updates = excluded.updates, observations = excluded.observations,
size = excluded.size, head = excluded.head
"""
_PUT_PIECE = """
INSERT INTO streamgp_pieces (key, place, digest, data) VALUES (?, ?, ?, ?)
ON CONFLICT (key, place) DO UPDATE SET digest = excluded.digest, data = excluded.data
"""
_PUT_OFFSET = """
INSERT INTO streamgp_offsets (source, value) VALUES (?, ?)
ON CONFLICT (source) DO UPDATE SET value = excluded.value
"""
_RECORD = """
INSERT INTO streamgp_answers (request, made, answer) VALUES (?, ?, ?)
ON CONFLICT (request) DO NOTHING RETURNING request
"""


class Written(NamedTuple):
    """What a store has of a model: its version and its pieces."""

    version: int
    pieces: Listed


def commit(
    session: AbstractSession, change: Change, known: Mapping[str, Written]
) -> dict[str, Written]:
    """Make the changes in a session.

    Args:
        session: One that may write.
        change: What is to change.
        known: What was there of some models when this process last saw them.

    Returns:
        What is there now of each model that was put.

    Raises:
        StaleError: If a model has another version than the change expects, or a request was
            recorded before.
        UnknownKeyError: If a model that is to be deleted is not there.
    """
    there = _versions(session, change)
    _check(change, there)
    puts = {key: item for key, item in change.models.items() if isinstance(item, Put)}
    deleted = [key for key, item in change.models.items() if isinstance(item, Delete)]
    written = _put(session, puts, there, known)
    for table in ("streamgp_models", "streamgp_pieces"):
        session.run_each(f"DELETE FROM {table} WHERE key = ?", [(key,) for key in deleted])
    session.run_each(_PUT_OFFSET, change.offsets.items())
    now = time.time()
    for request, answer in change.answers.items():
        if not session.run(_RECORD, (request, now, answer)):
            raise StaleError(
                problem(
                    "a request that was not handled yet",
                    f"{request!r}, which was",
                    "Answer what `Store.answer` has.",
                )
            )
    return written


def _versions(session: AbstractSession, change: Change) -> dict[str, int]:
    query = "SELECT key, version FROM streamgp_models WHERE key IN"
    return dict(in_chunks(session, query, [*change.models]))


def _check(change: Change, there: Mapping[str, int]) -> None:
    for key, item in change.models.items():
        found = there.get(key, ABSENT)
        if isinstance(item, Delete) and found == ABSENT:
            raise unknown(key)
        if item.version is not None and item.version != found:
            expected = f"version {item.version}" if item.version else "no model"
            raise StaleError(
                problem(
                    f"{expected} of {key!r} in the store",
                    f"version {found}" if found else "no model",
                    "Read it again, and repeat the change.",
                )
            )


def _put(
    session: AbstractSession,
    puts: Mapping[str, Put],
    there: Mapping[str, int],
    known: Mapping[str, Written],
) -> dict[str, Written]:
    now = time.time()
    before = _listed(session, there, {key: known.get(key) for key in puts})
    rows: list[tuple[Any, ...]] = []
    gone: list[tuple[str, float]] = []
    new: list[tuple[str, Label, Piece]] = []
    written = {}
    for key, put in puts.items():
        # A key that is removed and comes again never has a version twice.
        version = max(there.get(key, ABSENT) + 1, int(1e6 * now))
        labels = put.pieces.labels
        written[key] = Written(version, {label.place: label.digest for label in labels})
        old = before.get(key, {})
        gone += [(key, place) for place in old.keys() - written[key].pieces.keys()]
        new += [
            (key, label, piece)
            for label, piece in zip(labels, put.pieces.pieces, strict=True)
            if old.get(label.place) != label.digest
        ]
        seen = json.dumps(put.observations)
        rows.append((key, version, now, put.updates, seen, put.pieces.size, put.pieces.head))
    session.run_each("DELETE FROM streamgp_pieces WHERE key = ? AND place = ?", gone)
    made = ((key, label.place, label.digest, piece.data) for key, label, piece in new)
    session.run_each(_PUT_PIECE, made)
    session.run_each(_PUT, rows)
    return written


def _listed(
    session: AbstractSession, there: Mapping[str, int], known: Mapping[str, Written | None]
) -> dict[str, Listed]:
    """The pieces that the database has of each model: from memory if that is not out of date."""
    found: dict[str, Listed] = {}
    unsure = []
    for key, written in known.items():
        if written is not None and written.version == there.get(key):
            found[key] = written.pieces
        elif key in there:
            unsure.append(key)
    query = "SELECT key, place, digest FROM streamgp_pieces WHERE key IN"
    for key, place, digest in in_chunks(session, query, unsure):
        found.setdefault(key, {})[place] = bytes(digest)
    return found


def unknown(key: str) -> UnknownKeyError:
    """The error that a model is not there."""
    return UnknownKeyError(
        problem("the key of a stored model", f"{key!r}", "`Store.keys` lists those that there are.")
    )
