"""Lives: what a model has handled belongs to it, from its beginning to its deletion.

The store keeps the answers to requests and the places in feeds with the model, and deletes them
with it. A model's file takes along which requests it has handled, and how far it has read its
feeds, so that after an import those requests are answered as repeated and all others are learned.
"""

import copy
import datetime
import json
import threading
import time
from typing import Any, NamedTuple

import streamgp as sgp
from streamgp.errors import FileError, problem
from streamgp.store import Change, Life, Store
from streamgp.store.change import checked

CARRIED = 30_000  # requests that a file tells of: some 7 MB, of the 16 MiB of an import
_KEY = "handled"  # in the bookkeeping of a model
_BRIEF = ("update", "result", "observations")  # what a file has of an answer
_PASS = 60.0  # seconds between two passes over answers that are too old


class Handled(NamedTuple):
    """What a model has handled.

    Attributes:
        offsets: How far each feed has been read, by its name.
        answers: What requests were answered, by their names, the latest last.
    """

    offsets: dict[str, Any]
    answers: dict[str, bytes]

    def put_into(self, change: Change, key: str) -> None:
        """Have a transaction keep it with the model of that key."""
        for source, offset in self.offsets.items():
            change.set_offset(source, offset, model=key)
        for request, answer in self.answers.items():
            change.record(request, answer, model=key)


def exported(life: Life) -> bytes:
    """A model's file, with what the model has handled."""
    model = life.stored.model
    if not (life.offsets or life.answers):
        return model.to_bytes()
    text = json.dumps(
        {"offsets": life.offsets, "answers": {r: _brief(a) for r, a in life.answers.items()}}
    )
    copied = copy.copy(model)
    copied._bookkeeping = {**model._bookkeeping, _KEY: text}
    return copied.to_bytes()


def imported(model: sgp.ContinualGP) -> Handled:
    """Take what a model has handled out of it, as `exported` has put it there.

    Raises:
        FileError: If it is something else.
    """
    text = model._bookkeeping.pop(_KEY, None)
    if text is None:
        return Handled({}, {})
    try:
        kept = json.loads(text)
        return Handled(
            {checked(source, "source"): offset for source, offset in kept["offsets"].items()},
            {checked(r, "request"): _whole(answer) for r, answer in kept["answers"].items()},
        )
    except Exception as error:  # a file may hold anything
        raise FileError(
            problem(
                "what this service writes of the requests that a model has handled",
                f"something else ({type(error).__name__}: {error})",
                "Export the model again.",
            )
        ) from error


def _brief(answer: bytes) -> dict[str, Any]:
    whole = json.loads(answer)
    said = {name: whole["report"][name] for name in _BRIEF if name in whole["report"]}
    return {"digest": whole["digest"], "report": said}


def _whole(answer: Any) -> bytes:
    """An answer as the store has it."""
    digest, said = answer["digest"], answer["report"]
    if not (isinstance(digest, str) and isinstance(said, dict) and {*said} <= {*_BRIEF}):
        raise ValueError("an answer of another form")
    return json.dumps({"digest": digest, "report": said}).encode()


class Expiry:
    """Removes answers that are too old, now and then.

    Args:
        store: Has the answers.
        keep: How long they are kept.
    """

    def __init__(self, store: Store, keep: datetime.timedelta):
        self._store, self._keep = store, keep
        self._lock = threading.Lock()
        self._next = time.monotonic()

    def pass_if_due(self) -> None:
        """Remove them, unless that was done a moment ago."""
        with self._lock:
            now = time.monotonic()
            if now < self._next:
                return
            self._next = now + min(_PASS, self._keep.total_seconds())
        self._store.forget_answers(self._keep)
