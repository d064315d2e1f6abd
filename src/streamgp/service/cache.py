"""Cache: the models in memory, as they were last committed. The rest is in the store."""

import dataclasses
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager

import streamgp as sgp
from streamgp.errors import UnknownKeyError
from streamgp.service.names import shown
from streamgp.service.problems import not_found
from streamgp.service.reports import Row, Spoken
from streamgp.store import Store

_ROWS = 1500  # of the latest observations that are kept for pictures


@dataclasses.dataclass(frozen=True)
class Live:
    """A model as it was last committed. It is replaced as a whole, never changed.

    Attributes:
        model: The model.
        version: The version that the store has of it.
        report: What the last update did; None if this process has not seen one.
        waited: How many seconds before it came into memory it was last committed.
        since: When it came into memory, by a clock that is never set.
    """

    model: sgp.ContinualGP
    version: int
    report: Spoken | None = None
    waited: float = 0.0
    since: float = dataclasses.field(default_factory=time.monotonic)

    @property
    def silence(self) -> float:
        """The seconds since it was last committed."""
        return self.waited + time.monotonic() - self.since


class Cache:
    """A bounded number of models, the latest used of all.

    Args:
        store: Where the models are.
        size: The largest number of models.
    """

    def __init__(self, store: Store, size: int):
        self._store, self._size = store, size
        self._lock = threading.Lock()
        self._live: OrderedDict[str, Live] = OrderedDict()
        self._recent: OrderedDict[str, deque[Row]] = OrderedDict()
        self._loading: dict[str, tuple[threading.Lock, int]] = {}
        self.loads = 0

    def get(self, key: str) -> Live:
        """A model as it was last committed, by this process or another one.

        Raises:
            RefusedError: If there is no such model.
        """
        return self.get_many([key])[key]

    def get_many(self, keys: list[str]) -> dict[str, Live]:
        """Models as they were last committed, by this process or others.

        Args:
            keys: Of the models.

        Returns:
            The models by key.

        Raises:
            RefusedError: If one of them does not exist.
        """
        versions = self._store.versions(keys)
        return {key: self._get(key, versions.get(key)) for key in keys}

    def _get(self, key: str, version: int | None) -> Live:
        """A model of which the store has had this version a moment ago."""
        found = self._found(key)
        if found is not None and found.version == version:
            return found
        # A model may be committed while it is loaded. Whoever commits waits for those who load, so
        # that what was loaded never replaces what was committed later.
        with self._exclusive(key):
            version = self._store.versions([key]).get(key)
            found = self._found(key)
            if found is not None:
                if found.version == version:
                    return found
                self._drop(key)  # another process has changed it, or deleted it
            try:
                stored = self._store.fetch(key)
            except UnknownKeyError as error:
                raise not_found("model", shown(key)) from error
            self.loads += 1
            waited = max(0.0, time.time() - stored.info.changed.timestamp())  # clocks are set
            live = Live(stored.model, stored.info.version, waited=waited)
            self._put(key, live)
            return live

    def publish(self, key: str, live: Live, rows: tuple[Row, ...] = ()) -> None:
        """Let readers see a model that has just been committed."""
        with self._exclusive(key):
            found = self._found(key)
            if found is None or found.version <= live.version:  # two threads may have committed
                self._put(key, live)
            if rows:
                with self._lock:
                    self._recent.setdefault(key, deque(maxlen=_ROWS)).extend(rows)
                    self._recent.move_to_end(key)
                    while len(self._recent) > self._size:
                        self._recent.popitem(last=False)

    def forget(self, key: str) -> None:
        """Let go of a model that has just been deleted."""
        with self._exclusive(key):
            self._drop(key)

    def recent(self, key: str) -> tuple[Row, ...]:
        """The latest observations of a model that this process has seen."""
        with self._lock:
            return tuple(self._recent.get(key, ()))

    def everything(self) -> list[tuple[str, Live]]:
        """All models that are in memory and as the store has them."""
        with self._lock:
            found = list(self._live.items())
        versions = self._store.versions(key for key, _ in found)
        return [(key, live) for key, live in found if versions.get(key) == live.version]

    def _found(self, key: str) -> Live | None:
        with self._lock:
            live = self._live.get(key)
            if live is not None:
                self._live.move_to_end(key)
            return live

    def _drop(self, key: str) -> None:
        with self._lock:
            self._live.pop(key, None)
            self._recent.pop(key, None)

    def _put(self, key: str, live: Live) -> None:
        with self._lock:
            self._live[key] = live
            self._live.move_to_end(key)
            while len(self._live) > self._size:
                self._live.popitem(last=False)

    @contextmanager
    def _exclusive(self, key: str) -> Iterator[None]:
        """One thread at a time per key; locks that nobody holds are thrown away."""
        with self._lock:
            lock, users = self._loading.get(key, (threading.Lock(), 0))
            self._loading[key] = (lock, users + 1)
        try:
            with lock:
                yield
        finally:
            with self._lock:
                lock, users = self._loading[key]
                if users == 1:
                    del self._loading[key]
                else:
                    self._loading[key] = (lock, users - 1)
