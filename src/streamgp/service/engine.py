"""Engine: the verbs of the service. It knows models, the store and threads, and nothing of HTTP."""

import copy
import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

import pandas as pd

import streamgp as sgp
from streamgp.errors import (
    ConfigurationError,
    StaleError,
    StreamGPError,
    UnknownKeyError,
    problem,
)
from streamgp.service import lives, names, specifications
from streamgp.service.cache import Cache, Live
from streamgp.service.events import Hub
from streamgp.service.fleets import Common, Fleets
from streamgp.service.lanes import Lanes
from streamgp.service.metrics import Metrics
from streamgp.service.problems import RefusedError, not_found
from streamgp.service.readers import Readers
from streamgp.service.recent import rows_of
from streamgp.service.reports import Bookkeeping, Spoken, latest, spoken
from streamgp.service.settings import Settings
from streamgp.store import Store

T = TypeVar("T")

_ATTEMPTS = 5  # at learning a batch into a model that another process changes


class Step(NamedTuple):
    """A step ahead in a feed.

    Attributes:
        source: The name of the feed.
        before: The place before the messages; None for the beginning.
        after: The place after them.
    """

    source: str
    before: Any
    after: Any


class Batch(NamedTuple):
    """Observations that a client sent.

    Attributes:
        frame: The rows; None if there are none, and only the place in the feed moves.
        digest: Of the bytes that were sent, to know a retry from something else.
        request: The client's idempotency key; None if it gave none.
        step: The step in the feed that the rows come from; None if they come from none.
    """

    frame: pd.DataFrame | None
    digest: str
    request: str | None
    step: Step | None = None


class Engine:
    """Models that learn one batch at a time each, and are read at any time.

    Args:
        settings: What the operator decided.
    """

    def __init__(self, settings: Settings):
        self.settings = settings
        self.store = Store(settings.store)
        self.cache = Cache(self.store, settings.cache)
        limits = settings.limits
        self.lanes = Lanes(settings.workers, limits.queue, limits.waiting)
        self.expiry = lives.Expiry(self.store, settings.keep_answers)
        self.readers = Readers(settings.workers, limits.predict_seconds)
        self.fleets = Fleets(self.store, self.cache)
        self.hub = Hub(limits.subscribers)
        self.metrics = Metrics(self.cache, self.lanes)

    def close(self) -> None:
        """Finish what has begun, and let go of the store."""
        self.hub.close()
        self.lanes.close()
        self.readers.close()
        self.store.close()

    # -- models come and go --------------------------------------------------------------------

    def create(self, key: str, tables: Mapping[str, Any]) -> Future:
        """Make a model."""
        model = specifications.made(tables, self.settings.limits)
        return self.lanes.submit(key, lambda: self._add(key, model))

    def create_fleet(self, key: str, tables: Mapping[str, Any], *, is_pooled: bool) -> Future:
        """Make what the models of a fleet begin as."""
        model = specifications.made(tables, self.settings.limits)
        Common(is_pooled).put_into(model)
        return self.lanes.submit(key, lambda: self._add(key, model))

    def import_file(self, key: str, data: bytes) -> Future:
        """Take a model from the bytes of its file, with what it has handled."""
        model = sgp.from_bytes(data)
        specifications.check_import(model, self.settings.limits)
        handled = lives.imported(model)
        return self.lanes.submit(key, lambda: self._add(key, model, handled))

    def _add(self, key: str, model: sgp.ContinualGP, handled: lives.Handled | None = None) -> Live:
        self.check_room()
        try:
            with self.store.transaction() as change:
                change.put(key, model, version=0)
                if handled is not None:
                    handled.put_into(change, key)
        except StaleError as error:
            raise RefusedError(
                409,
                problem(
                    "a name that nothing has yet",
                    repr(names.shown(key)),
                    "Choose another, or delete what has it.",
                ),
            ) from error
        live = Live(model, change.versions[key])
        self.cache.publish(key, live)
        self.hub.publish(key, {"event": "created"})
        return live

    def check_room(self, more: int = 1) -> None:
        """Refuse more models than there may be."""
        most = self.settings.limits.models
        if more and len(self.store.keys()) + more > most:
            raise RefusedError(
                409,
                problem(f"at most {most} models", f"{most}", "Delete models that are not needed."),
            )

    def delete(self, key: str) -> Future:
        """Delete a model, and what is known of the requests and feeds that it has handled."""
        return self.lanes.submit(key, lambda: self._remove(key))

    def _remove(self, key: str) -> None:
        try:
            self.store.delete(key)
        except UnknownKeyError as error:
            raise not_found("model", names.shown(key)) from error
        self.cache.forget(key)
        self.hub.publish(key, {"event": "deleted"})

    def delete_fleet(self, name: str, *, members: bool) -> None:
        """Delete a fleet and, if that is wanted, its models.

        Raises:
            RefusedError: If it has models and those are to stay.
        """
        self.cache.get(names.fleet_key(name))
        keys = self.store.keys(names.members_of(name))
        if keys and not members:
            raise RefusedError(
                409,
                problem(
                    "a fleet without models", f"{len(keys)}", "Delete them too: `?members=true`."
                ),
            )
        for key in [*keys, names.fleet_key(name)]:
            self.delete(key).result()

    # -- learning --------------------------------------------------------------------------------

    def learn(self, key: str, batch: Batch, fleet: str | None = None) -> Future:
        """Learn a batch. It is on disk when the result is there.

        Args:
            key: Of the model.
            batch: The observations.
            fleet: The name of the fleet, if the model is one of a fleet and may be new.

        Returns:
            The future report, and whether it is that of an earlier request with the same key.
        """
        return self.lanes.submit(key, lambda: self._learn(key, batch, fleet))

    def _learn(self, key: str, batch: Batch, fleet: str | None) -> tuple[Spoken, bool]:
        return self.until_fresh([key], lambda: self._learn_once(key, batch, fleet))

    def until_fresh(self, keys: Iterable[str], work: Callable[[], T]) -> T:
        """The result of work that changes models, begun again if they were not the latest ones."""
        self.expiry.pass_if_due()
        for _ in range(_ATTEMPTS):
            try:
                return work()
            except StaleError:  # another has changed a model meanwhile, or answered the request
                for key in keys:
                    self.cache.forget(key)
        raise RefusedError(
            503,
            problem("a model that no other program changes", "one that is", "Try again."),
            {"Retry-After": "1"},
        )

    def _learn_once(self, key: str, batch: Batch, fleet: str | None) -> tuple[Spoken, bool]:
        request, step = batch.request, batch.step
        before = None if request is None else self.store.answer(request, model=key)
        if before is not None:
            return first_answer(before, batch), True
        now = self.to_learn(key, fleet)
        if step is not None:
            self._check_place(key, step)
        if batch.frame is None:
            self._move(key, step)
            return {}, False
        begin = time.perf_counter()
        draft = copy.copy(now.model)  # readers have the other one
        report = updated(draft, batch.frame)
        if report.observations:
            Bookkeeping.of(now.model).after(draft, report).put_into(draft)
        said = spoken(report)
        with self.store.transaction() as change:
            change.put(key, draft, version=now.version)
            if request is not None:
                change.record(request, answered(said, batch), model=key)
            if step is not None:
                change.set_offset(step.source, step.after, model=key)
        live = Live(draft, change.versions[key], said)
        self.publish(key, live, batch.frame)
        self.metrics.learned(report, time.perf_counter() - begin)
        return said, False

    def _check_place(self, key: str, step: Step) -> None:
        """Refuse messages that are not the next ones for this life of the model."""
        place = self.store.offset(step.source, model=key)
        if place != step.before:
            raise StaleError(
                problem(
                    f"messages of {step.source!r} after the place {place!r}",
                    f"those after {step.before!r}",
                    "Read the feed again from that place.",
                )
            )

    def _move(self, key: str, step: Step | None) -> None:
        """Commit the place in a feed from which nothing was learned."""
        if step is not None:
            with self.store.transaction() as change:
                change.set_offset(step.source, step.after, model=key)

    def publish(self, key: str, live: Live, frame: pd.DataFrame) -> None:
        """Let readers and listeners see what has just been committed."""
        rows = rows_of(live.model, frame)
        self.cache.publish(key, live, rows)
        told = {"event": "updated", "report": live.report, "latest": latest(live.model)}
        self.hub.publish(key, {**told, "rows": [row._asdict() for row in rows]})

    def to_learn(self, key: str, fleet: str | None) -> Live:
        """The model as it was last committed; a new one for a key of a fleet that is new."""
        if fleet is None or key in self.store:
            return self.cache.get(key)
        model = self.fleets.begun(fleet)
        self.check_room()
        return Live(model, 0)

    # -- reading ---------------------------------------------------------------------------------

    def read(self, key: str) -> Live:
        """A model as it was last committed. It never waits for an update."""
        return self.cache.get(key)

    def bytes_of(self, key: str) -> bytes:
        """A model as the bytes of its file, as it was last committed, with what it has handled."""
        try:
            return lives.exported(self.store.life(key, answers=lives.CARRIED))
        except UnknownKeyError as error:
            raise not_found("model", names.shown(key)) from error


def digest_of(body: bytes, kind: str) -> str:
    """What tells two requests apart."""
    return hashlib.sha256(kind.encode() + b"\n" + body).hexdigest()


def answered(said: Spoken, batch: Batch) -> bytes:
    """What is kept of a request that was handled."""
    return json.dumps({"digest": batch.digest, "report": said}).encode()


def first_answer(kept: bytes, batch: Batch) -> Spoken:
    """The first answer to a request, if this is that request."""
    before = json.loads(kept)
    if before["digest"] != batch.digest:
        raise RefusedError(
            422,
            problem(
                "the same observations as before, under the same idempotency key",
                "others",
                "Give every batch a key of its own.",
            ),
        )
    return before["report"]


def updated(model: sgp.ContinualGP, frame: pd.DataFrame) -> sgp.UpdateReport:
    """Have a model learn rows as its specification says, and return the report."""
    specifications.check_columns(model, frame)
    learn: Callable[..., sgp.UpdateReport] = (
        model.update_many if specifications.learns_samples(model) else model.update
    )
    begun = model.state is not None
    try:
        return learn(frame, **specifications.layout_of(model))
    except StreamGPError:
        raise
    except (TypeError, ValueError) as error:
        if begun:
            raise
        # Settings of channels are only used when the first data come.
        raise ConfigurationError(
            problem(
                "settings that the first data can be learned with",
                f"{type(error).__name__}: {error}",
                "Correct the specification of the model.",
            )
        ) from error
