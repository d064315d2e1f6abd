"""Models of a fleet that a store keeps: those in use are in memory, all others only there.

Which models have changed is seen by their versions, which a change replaces as a whole. So what a
model learns by itself is stored with the next transaction too.
"""

import base64
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from numbers import Integral
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np

from streamgp.errors import DataError, StaleError, problem
from streamgp.gp import ContinualGP
from streamgp.store import Change, Store
from streamgp.store.schema import ABSENT

_FLEET = "streamgp.fleet"  # the source under which a store keeps what is said of all keys
_BOOK = "fleet"  # what a model's bookkeeping has of its fleet


class StoredModels(MutableMapping[Hashable, ContinualGP]):
    """The models of a fleet by key, in a store.

    Args:
        store: Where they are. It is the fleet's alone.
        live: The number of models that stay in memory. Those that have changed stay there in any
            case until they are stored.

    Attributes:
        store: The store.
        common: What the fleet knows beside its models, which is stored with them.
    """

    def __init__(self, store: Store, live: int):
        self.store, self._live = store, live
        self._lock = threading.RLock()
        self._is_open = False  # whether a transaction is
        self._forget()

    def _forget_changes(self) -> None:
        """Be as the store was when models were last read or written."""
        self._removed.clear()
        self.common = self._common
        for key, model in list(self._alive.items()):
            if self._is_changed(model):
                del self._alive[key]
                self._recent.pop(key, None)

    def _forget(self) -> None:
        """Be as the store is."""
        said = self.store.offset(_FLEET) or {}
        self._kind: str | None = said.get("keys")
        self._latest: float = said.get("latest", -np.inf)
        self.common = self._common = base64.b64decode(said.get("common", ""))
        self._recent: OrderedDict[Hashable, ContinualGP] = OrderedDict()
        self._alive: WeakValueDictionary[Hashable, ContinualGP] = WeakValueDictionary()
        self._stored: WeakKeyDictionary[ContinualGP, tuple[Any, int]] = WeakKeyDictionary()
        self._removed: set[Hashable] = set()

    # -- as a dictionary -----------------------------------------------------------------------

    def __getitem__(self, key: Hashable) -> ContinualGP:
        with self._lock:
            model = self._alive.get(key)
            if model is None:
                if key in self._removed:
                    raise KeyError(key)
                found = self.store.fetch_many([self._text(key)])
                if not found:
                    raise KeyError(key)
                (stored,) = found.values()
                model = stored.model
                self._alive[key] = model
                self._stored[model] = (model._version, stored.info.version)
            self._use(key, model)
            if len(self._recent) > 2 * self._live and not self._is_open:
                with self.transaction():  # as many models as that have changed by themselves
                    pass
            return model

    def __setitem__(self, key: Hashable, model: ContinualGP) -> None:
        with self._lock:
            self._text(key)
            self._removed.discard(key)
            self._alive[key] = model
            self._use(key, model)

    def __delitem__(self, key: Hashable) -> None:
        with self._lock:
            if key not in self:
                raise KeyError(key)
            self._recent.pop(key, None)
            self._alive.pop(key, None)
            self._removed.add(key)

    def __contains__(self, key: object) -> bool:
        with self._lock:
            if key in self._alive or key in self._removed:
                return key in self._alive
            return isinstance(key, Hashable) and self._text(key) in self.store

    def __iter__(self) -> Iterator[Hashable]:
        with self._lock:
            there = [self._key(text) for text in self.store.keys()]  # noqa: SIM118
            new = [key for key, model in self._alive.items() if model not in self._stored]
            keys = [*there, *(key for key in new if key not in set(there))]
            return iter([key for key in keys if key not in self._removed])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _use(self, key: Hashable, model: ContinualGP) -> None:
        """Keep a model in memory, and let go of the one that was not used for longest."""
        self._recent[key] = model
        self._recent.move_to_end(key)
        while len(self._recent) > self._live:
            oldest = next(iter(self._recent))
            if self._is_changed(self._recent[oldest]):
                break
            del self._recent[oldest]

    def _is_changed(self, model: ContinualGP) -> bool:
        return self._stored.get(model, (None, ABSENT))[0] is not model._version

    # -- in the store --------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[Change]:
        """Store what has changed when the block ends. If that fails, or the block, forget it."""
        with self._lock:
            self._is_open = True
            try:
                with self.store.transaction() as change:
                    yield change
                    changed = self._collected(change)
            except StaleError:  # others write here too: what is in memory may all be out of date
                self._forget()
                raise
            except BaseException:
                self._forget_changes()
                raise
            finally:
                self._is_open = False
            self._removed.clear()
            self._common = self.common
            for key, version, model in changed:
                self._stored[model] = (version, change.versions[self._text(key)])
            while len(self._recent) > self._live:
                self._recent.popitem(last=False)

    @contextmanager
    def saving(self) -> Iterator[None]:
        """A transaction, unless one is going on, which will then store what changes here."""
        with self._lock:
            if self._is_open:
                yield
            else:
                with self.transaction():
                    yield

    @property
    def latest(self) -> float:
        """The largest first input of all keys."""
        with self._lock:
            alive = [v for model in self._alive.values() for v in latest_of(model).values()]
            return max([self._latest, *alive])

    def _collected(self, change: Change) -> list[tuple[Hashable, Any, ContinualGP]]:
        """Put models that have changed into a transaction; each with the version that it has."""
        changed = []
        for key, model in list(self._alive.items()):
            if self._is_changed(model):
                version = model._version
                change.put(self._text(key), model, version=self._stored.get(model, (0, ABSENT))[1])
                changed.append((key, version, model))
        for key in self._removed:
            text = self._text(key)
            if text in self.store:
                change.delete(text)
        if changed or self.common != self._common:
            self._latest = self.latest
            said: dict[str, Any] = {} if np.isinf(self._latest) else {"latest": self._latest}
            if self.common:
                said["common"] = base64.b64encode(self.common).decode()
            change.set_offset(_FLEET, {"keys": self._kind, **said})
        return changed

    def _text(self, key: Hashable) -> str:
        """A key as the store has it: text, or a whole number. All keys are of one kind."""
        kind = "text" if isinstance(key, str) else "number"
        is_number = isinstance(key, Integral) and not isinstance(key, bool)
        if kind != (self._kind or kind) or not (isinstance(key, str) or is_number):
            raise DataError(
                problem(
                    f"a key that is {self._kind or 'text or a whole number'}, as a store has them",
                    f"{key!r}",
                    "Use keys of one kind.",
                )
            )
        self._kind = kind
        return str(key)

    def _key(self, text: str) -> Hashable:
        return int(text) if self._kind == "number" else text


class StoredLatest(MutableMapping[Hashable, dict[str, float]]):
    """The latest input of each channel of each key, which its model has in its bookkeeping."""

    def __init__(self, models: StoredModels):
        self._models = models

    def __getitem__(self, key: Hashable) -> dict[str, float]:
        return latest_of(self._models[key])

    def __setitem__(self, key: Hashable, latest: dict[str, float]) -> None:
        self._models[key]._bookkeeping[_BOOK] = {"latest": latest}

    def __delitem__(self, key: Hashable) -> None:
        """Nothing: it goes with the model."""

    def __contains__(self, key: object) -> bool:
        return key in self._models

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._models)

    def __len__(self) -> int:
        return len(self._models)


class Sample(Mapping[Hashable, ContinualGP]):
    """Some models of a fleet, drawn at random when somebody asks for them.

    Args:
        fleet: All models, of which not all can be looked at.
        most: The number of those that are drawn.
        seed: Of the draw.
    """

    def __init__(self, fleet: Mapping[Hashable, ContinualGP], most: int, seed: int):
        self._fleet, self._most, self._seed = fleet, most, seed

    def __getitem__(self, key: Hashable) -> ContinualGP:
        return self._fleet[key]

    def __iter__(self) -> Iterator[Hashable]:
        keys = list(self._fleet)
        order = np.random.default_rng(self._seed).permutation(len(keys))
        return iter([keys[i] for i in order[: self._most].tolist()])

    def __len__(self) -> int:
        return min(len(self._fleet), self._most)


def latest_of(model: ContinualGP) -> dict[str, float]:
    """The latest input of each channel of a model of a fleet. It may be changed."""
    return model._bookkeeping.setdefault(_BOOK, {"latest": {}})["latest"]
