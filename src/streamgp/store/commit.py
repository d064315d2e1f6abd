"""A change on its way into a database."""

import json
import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from streamgp.errors import StaleError, UnknownKeyError, problem
from streamgp.persistence import Label, Piece
from streamgp.store.backend import AbstractSession
from streamgp.store.change import Change, Delete, Owned, Put
from streamgp.store.schema import ABSENT, NOBODY, in_chunks

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
INSERT INTO streamgp_offsets (model, source, value) VALUES (?, ?, ?)
ON CONFLICT (model, source) DO UPDATE SET value = excluded.value
"""
_RECORD = "INSERT INTO streamgp_answers (model, request, made, answer) VALUES (?, ?, ?, ?)"
_DELETE = (
    "DELETE FROM streamgp_models WHERE key = ?",
    "DELETE FROM streamgp_pieces WHERE key = ?",
    "DELETE FROM streamgp_offsets WHERE model = ?",
    "DELETE FROM streamgp_answers WHERE model = ?",
)


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
        StaleError: If a model has another version than the change expects, a request was recorded
            before, or the model to which something is to belong is not there.
        UnknownKeyError: If a model that is to be deleted is not there.
    """
    owners = {model for model, _ in (*change.offsets, *change.answers)} - {NOBODY}
    there = versions_of(session, [*{*change.models, *owners}])
    _check(change, there)
    puts = {key: item for key, item in change.models.items() if isinstance(item, Put)}
    deleted = [key for key, item in change.models.items() if isinstance(item, Delete)]
    _check_owners(owners, (there.keys() | puts.keys()) - {*deleted})
    written = _put(session, puts, there, known)
    for statement in _DELETE:
        session.run_each(statement, [(key,) for key in deleted])
    session.run_each(_PUT_OFFSET, [(*place, text) for place, text in change.offsets.items()])
    _record(session, change.answers, there)
    return written


def versions_of(session: AbstractSession, keys: list[str]) -> dict[str, int]:
    """The versions of models by key, those that are there."""
    query = "SELECT key, version FROM streamgp_models WHERE key IN"
    return dict(in_chunks(session, query, keys))


def _record(
    session: AbstractSession, answers: Mapping[Owned, bytes], there: Collection[str]
) -> None:
    by_request: dict[str, list[str]] = {}
    for model, request in answers:
        if model == NOBODY or model in there:  # a model that is new has handled nothing yet
            by_request.setdefault(request, []).append(model)
    query = "SELECT request FROM streamgp_answers WHERE request = ? AND model IN"
    for request, models in by_request.items():
        if in_chunks(session, query, models, (request,)):
            raise StaleError(
                problem(
                    "a request that was not handled yet",
                    f"{request!r}, which was",
                    "Answer what `Store.answer` has.",
                )
            )
    now = time.time()
    session.run_each(_RECORD, [(*place, now, answer) for place, answer in answers.items()])


def _check_owners(owners: Iterable[str], there: Collection[str]) -> None:
    for key in owners:
        if key not in there:
            raise StaleError(
                problem(
                    f"a model {key!r}, to which an offset or a request belongs",
                    "none",
                    "Put the model in the same transaction, or name none.",
                )
            )


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
