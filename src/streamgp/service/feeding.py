"""Feeding: models that follow a feed. The place in the feed is committed with the model.

So a message is learned once, whenever the service is stopped: it goes on after the last message
that the model has learned.
"""

import copy
import dataclasses
import logging
import threading
from pathlib import Path
from typing import Any

import pandas as pd

import streamgp as sgp
from streamgp.errors import ConfigurationError, StoreError, StreamGPError, problem
from streamgp.service import names, tables
from streamgp.service.engine import Batch, Engine, Step, updated
from streamgp.service.problems import RefusedError
from streamgp.sources import Messages, flat, urls

_log = logging.getLogger(__name__)
_MOST = 500  # messages of a batch
_PAUSE = 0.2  # seconds, if nothing has come
_AGAIN = 2.0  # seconds after something went wrong


@dataclasses.dataclass(frozen=True)
class Source:
    """A feed and the model that follows it.

    Attributes:
        url: `file:///readings.jsonl?model=plant`, `kafka://broker:9092/topic?model=plant` or
            `nats://server:4222/STREAM?model=plant`.
        settings: A TOML file with settings of brokers, as `streamgp.sources.urls.opened` reads it.
    """

    url: str
    settings: Path | None = None

    def __post_init__(self) -> None:
        if urls.kind(self.url) is None or not self.model:
            raise ConfigurationError(
                problem(
                    "a source such as file:///readings.jsonl?model=plant, "
                    "kafka://broker:9092/topic?model=plant or "
                    "nats://server:4222/STREAM?model=plant",
                    repr(self.url),
                    "Name the feed and the model; keep secrets in the file of settings.",
                )
            )

    @property
    def model(self) -> str:
        """The name of the model."""
        return urls.asked(self.url, "model") or ""

    @property
    def feed(self) -> str:
        """The name of the feed, which is the same whichever model follows it."""
        return urls.without(self.url, "model")


class Feeding(threading.Thread):
    """Reads a feed and has a model learn it, until it is stopped.

    Args:
        engine: Has the model.
        source: The feed.
    """

    def __init__(self, engine: Engine, source: Source):
        super().__init__(name=f"streamgp-source-{source.model}", daemon=True)
        self._engine, self._source = engine, source
        self._key = names.model_key(source.model)
        self._ending = threading.Event()

    def stop(self) -> None:
        """End it, after what has begun."""
        self._ending.set()
        self.join(30)

    def run(self) -> None:
        """Follow the feed. What goes wrong is logged and tried again, from the last commit."""
        while not self._ending.is_set():
            try:
                self._follow()
            except Exception:
                _log.exception("source", extra={"fields": {"model": self._source.model}})
                self._ending.wait(_AGAIN)

    def _follow(self) -> None:
        if self._key not in self._engine.store:
            self._ending.wait(_AGAIN)  # it may be made later
            return
        place = self._place()
        feed = urls.opened(self._source.url, place, self._source.settings)
        try:
            while not self._ending.is_set():
                came = feed.read(_MOST)
                if came.place != place:
                    self._take(came, place)
                    place = came.place
                if not came.each:
                    if self._place() != place:
                        return  # the model was deleted, and perhaps made anew
                    self._ending.wait(_PAUSE)
        finally:
            feed.close()

    def _place(self) -> Any:
        """How far the model has read the feed."""
        return self._engine.store.offset(self._source.feed, model=self._key)

    def _take(self, came: Messages, before: Any) -> None:
        """Learn messages, and commit the place after them. Those that cannot be are left out."""
        step = Step(self._source.feed, before, came.place)
        try:
            self._learn(came.each, came.header, step)
        except (RefusedError, StoreError):  # not the fault of a message: it is tried again
            raise
        except (StreamGPError, ValueError, TypeError):
            model = self._engine.read(self._key).model
            fine = [each for each in came.each if self._can_learn(model, each, came.header)]
            passed_over = len(came.each) - len(fine)
            self._engine.metrics.refused(self._source.model, passed_over)
            fields = {"source": self._source.url, "messages": passed_over}
            _log.warning("messages refused", extra={"fields": fields})
            self._learn(fine, came.header, step)

    def _learn(self, messages: list[bytes], header: bytes, step: Step) -> None:
        frame = self._frame(messages, header) if messages else None
        self._engine.learn(self._key, Batch(frame, "", None, step)).result()

    def _can_learn(self, model: sgp.ContinualGP, message: bytes, header: bytes) -> bool:
        try:
            updated(copy.copy(model), self._frame([message], header))
        except (StreamGPError, ValueError, TypeError):
            return False
        return True

    def _frame(self, messages: list[bytes], header: bytes) -> pd.DataFrame:
        kind = tables.CSV if header else tables.NDJSON
        body = header + b"\n".join(map(flat, messages))
        return tables.read_table(kind, body, self._engine.settings.limits.rows)
