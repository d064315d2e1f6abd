"""Members: the models of a fleet by key, and what is known of all of them."""

import dataclasses
from collections.abc import Hashable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager

import numpy as np

from streamgp import persistence
from streamgp.data.axes import Axis, input_names
from streamgp.data.batch import Rows
from streamgp.data.schema import Schema
from streamgp.errors import ConfigurationError, DataError, problem
from streamgp.fleet.checks import check_is_of_kind
from streamgp.fleet.pool import Pool
from streamgp.fleet.population import Population
from streamgp.fleet.shared import Shared, check_is_chain
from streamgp.fleet.stored import Sample, StoredLatest, StoredModels
from streamgp.gp import ContinualGP
from streamgp.online.batch_update import Updater
from streamgp.online.progress import Progress
from streamgp.store import Change, Store

_SAMPLE = 200  # models of a store that are looked at for what all have in common


@dataclasses.dataclass
class Members:
    """Models by key. It changes as the fleet does; whoever changes it has the fleet's lock.

    Attributes:
        updater: How new models work.
        progress: How far they have come: nowhere.
        pool: What is learned of all keys for new ones, if that was asked for.
        shared: The hyperparameters of all keys, if they share them.
        models: By key.
        latest: The latest first input of each channel, by key.
        axes: What each input column is; none before the first data.
        total: Observations, of keys that are gone too.
    """

    updater: Updater
    progress: Progress
    pool: Pool | None = None
    shared: Shared | None = None
    models: MutableMapping[Hashable, ContinualGP] = dataclasses.field(default_factory=dict)
    latest: MutableMapping[Hashable, dict[str, float]] = dataclasses.field(default_factory=dict)
    axes: tuple[Axis, ...] = ()
    total: int = 0

    def __post_init__(self) -> None:
        self._first = (self.pool, self.shared)  # before anything is learned

    @property
    def population(self) -> Population | None:
        """What new keys start from, if that is not the specification alone."""
        if self.shared is not None:
            return self.shared.start
        return None if self.pool is None else self.pool.population

    @property
    def newest(self) -> float:
        """The largest first input of all."""
        if isinstance(self.models, StoredModels):
            return self.models.latest
        found = (value for own in list(self.latest.values()) for value in own.values())
        return max(found, default=-np.inf)

    def model(self, key: Hashable) -> ContinualGP | None:
        """The model of a key, with the hyperparameters that all share; None if there is none."""
        model = self.models.get(key)
        if model is not None and self.shared is not None:
            self.shared.adopted(model)
        return model

    def known(self, key: Hashable) -> ContinualGP:
        """The model of a key, which must be there."""
        model = self.model(key)
        if model is None:
            raise DataError(problem("a key of the fleet", repr(key), "Update it first."))
        return model

    def blank(self) -> ContinualGP:
        """A new model, which belongs to no key yet."""
        updater = self.updater
        if self.population is not None:
            asked = self.population.specification(updater.specification)
            updater = dataclasses.replace(updater, specification=asked)
        return ContinualGP._begun(updater, self.progress)

    def add(self, key: Hashable, model: ContinualGP) -> None:
        """Take a model in."""
        progress = model._version.progress
        self.models[key] = model
        self.latest[key] = {n: progress.latest for n, seen in progress.seen.items() if seen}
        self.total += progress.total
        self.axes = self.axes or model.axes

    def remove(self, key: Hashable) -> ContinualGP:
        """Let a model go."""
        self.latest.pop(key, None)
        return self.models.pop(key)

    def schema_of(self, key: Hashable) -> Schema:
        """The form of a key's data so far."""
        model = self.models.get(key)
        return Schema() if model is None else model._version.progress.schema

    def take_form(self, axes: tuple[Axis, ...]) -> None:
        """Take the form of the first inputs as that of all."""
        if self.shared is not None:
            check_is_chain(self.updater, input_names(axes), axes)
        self.axes = axes

    def saw(self, key: Hashable, rows: Rows | None) -> dict[str, float]:
        """Count rows of a key, and tell the latest input of each of its channels."""
        latest = self.latest.setdefault(key, {})
        if rows is None:
            return latest
        self.total += rows.size
        for d, now in zip(rows.channel.tolist(), rows.x[:, 0].tolist(), strict=True):
            name = rows.names[d]
            if now > latest.get(name, -np.inf):
                latest[name] = now
        return latest

    def note_learned(self) -> None:
        """A key has learned hyperparameters: what all have in common may be due."""
        if self.pool is not None:
            self.pool = self.pool.seen(self._some())

    def learn_shared(self) -> None:
        """Learn the hyperparameters of all keys, if they are shared and that is due."""
        if self.shared is not None and self.shared.is_due(self.total):
            self.shared = self.shared.learned(self._some(), self.total)

    def _some(self) -> Mapping[Hashable, ContinualGP]:
        """The models that something common to all is learned from."""
        if isinstance(self.models, StoredModels):
            return Sample(self.models, _SAMPLE, self.total)
        return self.models

    # -- in a store ----------------------------------------------------------------------------

    def keep_in(self, store: Store, live: int) -> None:
        """Have the models of a store, and put there what changes."""
        self.models = StoredModels(store, live)
        self.latest = StoredLatest(self.models)
        key = next(iter(self.models), None)
        if key is not None:
            try:
                check_is_of_kind(self.models[key], self.updater.specification.channels)
            except ConfigurationError:
                store.close()
                raise
            self.axes = self.models[key].axes
        self._read_common()

    @property
    def stored(self) -> StoredModels:
        """The models, which are in a store."""
        if not isinstance(self.models, StoredModels):
            raise ConfigurationError(
                problem("a fleet with a store", "one without", "Call `Fleet(…, store=path)`.")
            )
        return self.models

    @contextmanager
    def transaction(self) -> Iterator[Change]:
        """A block whose changes are stored together."""
        with self._saving_common(), self.stored.transaction() as change:
            yield change
            self._write_common()

    @contextmanager
    def saving(self) -> Iterator[None]:
        """A block whose changes are stored together, if there is a store."""
        if not isinstance(self.models, StoredModels):
            yield
            return
        with self._saving_common(), self.stored.saving():
            yield
            self._write_common()

    @contextmanager
    def _saving_common(self) -> Iterator[None]:
        """A block after which, if it fails, what is common to all keys is as it was."""
        axes = self.axes
        try:
            yield
        except BaseException:
            self.axes = axes
            self._read_common()
            raise

    def _write_common(self) -> None:
        """Hand over what is common to all keys to those who store it."""
        common = {"pool": self.pool, "shared": self.shared, "total": self.total}
        self.stored.common = persistence.wrap(common)

    def _read_common(self) -> None:
        (pool, shared), common = self._first, self.stored.common
        found = persistence.unwrap(common) if common else {}
        self.total = found.get("total", 0)
        self.pool = pool and (found.get("pool") or pool)
        self.shared = shared and (found.get("shared") or shared)
