"""Fleet: models of one kind, by key."""

import dataclasses
import logging
import os
import threading
import time
import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from streamgp import persistence
from streamgp.data.axes import Axis, input_names
from streamgp.data.batch import Rows
from streamgp.data.epochs import epochs
from streamgp.data.frames import make_frame
from streamgp.data.keys import as_table, keyed
from streamgp.data.reader import Intake, Layout
from streamgp.data.schema import Schema
from streamgp.errors import ConfigurationError, DataError, EpochWarning, problem
from streamgp.fleet.intakes import Intakes, read
from streamgp.fleet.plain import plain
from streamgp.fleet.pool import Pool
from streamgp.fleet.population import Population
from streamgp.fleet.predictions import FleetPredictions
from streamgp.fleet.report import FleetReport, Line, table
from streamgp.fleet.shared import Shared, check_is_chain, shared_by
from streamgp.fleet.stored import Sample, StoredLatest, StoredModels
from streamgp.fleet.together import Done, made
from streamgp.gp import ContinualGP
from streamgp.numerics.blas_threads import on_one_blas_thread
from streamgp.online.report import Result, UpdateReport
from streamgp.store import Change, Store

_log = logging.getLogger(__name__)

_SAMPLE = 200  # models of a store that are looked at for what all have in common


class Fleet(Mapping[Hashable, ContinualGP]):
    """Models of one kind, one per key: patients, sensors, shops, devices.

    Each key has a model of its own. A fleet learns a table with any mix of keys in one call, and
    ends as if each model had been given its own rows. What is wrong with the rows of one key is
    reported for that key: its model is then as it was, and all others are updated.

    `fleet[key]` is the model itself, not a copy: what it learns by itself, the fleet knows. A fleet
    may be used from several threads, as a model may be. Updates of a fleet wait for each other.

    With a store, every update is on disk when it returns, all keys of it or none, and only the
    models in use are in memory. `transaction` stores several updates and the offset of their source
    together. Keys are then all text, or all whole numbers.

    Args:
        model: A model without data. Every key begins as it is.
        population: Whether new keys start from what the fleet has learned, with hyperparameters
            pooled over keys and their spread between keys as priors, so that few observations of a
            new key are enough. A key's model then depends on the keys before it.
        shared: Whether all keys have the same hyperparameters, which are learned from all of them
            together whenever the observations of the fleet have doubled. For keys of one kind and
            one unit, on chains. Levels are still each key's own.
        store: A `Store` that is the fleet's alone, or what `Store` takes: the path of a file or the
            URL of a database. Keys that are there belong to the fleet. By default there is none.
        live: With a store, the number of models that stay in memory.

    Raises:
        ConfigurationError: If the model has data, or cannot share its hyperparameters, or the store
            has models of another kind.

    Example:
        >>> import numpy as np, pandas as pd, streamgp as sgp
        >>> fleet = sgp.Fleet(sgp.ContinualGP(sgp.Gaussian(), learning=None))
        >>> time = np.tile(np.arange(20.0), 2)
        >>> ward = pd.DataFrame({"bed": np.repeat(["A", "B"], 20), "hour": time, "y": np.sin(time)})
        >>> report = fleet.update(ward, key="bed", inputs="hour")
        >>> list(fleet), fleet["A"].observations
        (['A', 'B'], {'y': 20})
        >>> fleet.predict([19.5])["B"].mean.shape
        (1,)
    """

    def __init__(
        self,
        model: ContinualGP,
        *,
        population: bool = False,
        shared: bool = False,
        store: Store | str | os.PathLike[str] | None = None,
        live: int = 1000,
    ):
        _check_is_blank(model)
        _check_not_both(population, shared)
        self._template = model._version
        self._pool = Pool() if population else None
        self._shared: Shared | None = None
        if shared:
            self._shared, updater = shared_by(self._template.updater)
            self._template = self._template._replace(updater=updater)
        self._models: MutableMapping[Hashable, ContinualGP] = {}
        self._latest: MutableMapping[Hashable, dict[str, float]] = {}  # input of each channel
        self._axes: tuple[Axis, ...] = ()
        self._total = 0  # observations, of keys that are gone too
        self._first = (self._pool, self._shared)  # before anything is learned
        self._lock = threading.RLock()
        if store is not None:
            self._models = StoredModels(store if isinstance(store, Store) else Store(store), live)
            self._latest = StoredLatest(self._models)
            self._take_over()

    def _take_over(self) -> None:
        """Have the form of the models that the store has."""
        key = next(iter(self), None)
        if key is not None:
            try:
                self._check_is_of_kind(self[key])
            except ConfigurationError:
                self.close()
                raise
            self._axes = self[key].axes
        self._read_common()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())

    # -- what it consists of -------------------------------------------------------------------

    @property
    def channels(self) -> tuple[str, ...]:
        """The names of the channels of every model, in order."""
        return self._template.updater.specification.names

    @property
    def axes(self) -> tuple[Axis, ...]:
        """What each input column is; none before the first data."""
        return self._axes

    @property
    def latest(self) -> float:
        """The largest first input of all keys so far, as a number (times in days)."""
        if isinstance(self._models, StoredModels):
            return self._models.latest
        found = (value for own in list(self._latest.values()) for value in own.values())
        return max(found, default=-np.inf)

    @property
    def population(self) -> Population | None:
        """What new keys start from; None if nothing was asked for, or too few keys have learned."""
        if self._shared is not None:
            return self._shared.start
        return None if self._pool is None else self._pool.population

    def __getitem__(self, key: Hashable) -> ContinualGP:
        model = self._models[key]
        if self._shared is not None:
            self._shared.adopted(model)
        return model

    def __iter__(self) -> Iterator[Hashable]:
        return iter(list(self._models))

    def __len__(self) -> int:
        return len(self._models)

    def __contains__(self, key: object) -> bool:
        return key in self._models

    def __repr__(self) -> str:
        return f"<Fleet of {len(self):,} models; channels {list(self.channels)}>"

    def add(self, key: Hashable, model: ContinualGP | None = None) -> ContinualGP:
        """Add a key. Keys that come with data need not be added.

        Args:
            key: A name or a number that no model has.
            model: Its model, with the channels of the fleet; by default a new one.

        Returns:
            The model.

        Raises:
            ConfigurationError: If the key exists, or the model has other channels.
        """
        with self._lock, self._saving():
            if key in self._models:
                raise ConfigurationError(
                    problem("a new key", f"{key!r}, which exists", "Use `fleet[key]`.")
                )
            if model is not None:
                self._check_is_of_kind(model)
            self._models[key] = self._blank() if model is None else model
            self._total += sum(self._models[key].observations.values())
            self._latest[key] = self._latest_of(self._models[key])
            if model is not None and not self._axes:
                self._axes = model.axes
            return self._models[key]

    def remove(self, key: Hashable) -> ContinualGP:
        """Take a key out of the fleet.

        Args:
            key: Of the model.

        Returns:
            The model, which goes on by itself.

        Raises:
            KeyError: If there is no such key.
        """
        with self._lock, self._saving():
            self._latest.pop(key, None)
            return self._models.pop(key)

    @contextmanager
    def transaction(self) -> Iterator[Change]:
        """Store what several updates change together, with the offsets of their sources.

        Returns:
            A context manager that gives a `Change`, as `Store.transaction` does. Updates inside its
            block are stored when the block ends. If an exception leaves it, the fleet is again as
            the store has it; models that were taken out of it before are then no longer its own.

        Raises:
            ConfigurationError: If the fleet has no store.
            StaleError: When the block ends, if another program has changed a key.

        Example:
            >>> import tempfile, streamgp as sgp
            >>> folder = tempfile.TemporaryDirectory()
            >>> model = sgp.ContinualGP(sgp.Gaussian(), learning=None)
            >>> fleet = sgp.Fleet(model, store=f"{folder.name}/ward.db", live=10)
            >>> with fleet.transaction() as change:
            ...     report = fleet.update({"bed A": ([0.0, 1.0], [0.2, 0.3])})
            ...     change.set_offset("readings.csv", {"row": 2})
            >>> fleet.close(); folder.cleanup()
        """
        with self._lock, self._saving_common(), self._stored().transaction() as change:
            yield change
            self._write_common()

    @property
    def store(self) -> Store:
        """Where the models are.

        Raises:
            ConfigurationError: If the fleet has no store.
        """
        return self._stored().store

    def close(self) -> None:
        """Let go of the store."""
        self._stored().store.close()

    def _stored(self) -> StoredModels:
        if not isinstance(self._models, StoredModels):
            raise ConfigurationError(
                problem("a fleet with a store", "one without", "Call `Fleet(…, store=path)`.")
            )
        return self._models

    @contextmanager
    def _saving(self) -> Iterator[None]:
        """A block whose changes are stored together, if there is a store."""
        if isinstance(self._models, dict):
            yield
            return
        with self._saving_common(), self._stored().saving():
            yield
            self._write_common()

    @contextmanager
    def _saving_common(self) -> Iterator[None]:
        """A block after which, if it fails, what is common to all keys is as it was."""
        axes = self._axes
        try:
            yield
        except BaseException:
            self._axes = axes
            self._read_common()
            raise

    def _write_common(self) -> None:
        """Hand over what is common to all keys to those who store it."""
        common = {"pool": self._pool, "shared": self._shared, "total": self._total}
        self._stored().common = persistence.wrap(common)

    def _read_common(self) -> None:
        (pool, shared), common = self._first, self._stored().common
        found = persistence.unwrap(common) if common else {}
        self._total = found.get("total", 0)
        self._pool = pool and (found.get("pool") or pool)
        self._shared = shared and (found.get("shared") or shared)

    def _some(self) -> Mapping[Hashable, ContinualGP]:
        """The models that something common to all is learned from."""
        return self if isinstance(self._models, dict) else Sample(self, _SAMPLE, self._total)

    def _blank(self) -> ContinualGP:
        """A new model."""
        model, version = ContinualGP.__new__(ContinualGP), self._template
        if self.population is not None:
            asked = self.population.specification(version.updater.specification)
            updater = dataclasses.replace(version.updater, specification=asked)
            version = version._replace(updater=updater)
        model._set_up(version, {}, {})
        return model

    def _latest_of(self, model: ContinualGP) -> dict[str, float]:
        """The latest input of each channel; of a model that comes from elsewhere, of all."""
        latest = model._version.progress.latest
        return {name: latest for name, seen in model.observations.items() if seen}

    def _check_is_of_kind(self, model: ContinualGP) -> None:
        families = {name: type(own) for name, own in model.likelihoods.items()}
        own = self._template.updater.specification.channels
        if families != {name: type(likelihood) for name, likelihood in own.items()}:
            raise ConfigurationError(
                problem(
                    f"a model with channels {list(own)} of the fleet's families",
                    repr(model),
                    "All models of a fleet are of one kind.",
                )
            )

    # -- learning ------------------------------------------------------------------------------

    @on_one_blas_thread
    def update(
        self,
        data: Any,
        *,
        key: Any = None,
        inputs: Any = None,
        channel: Any = None,
        value: Any = None,
        columns: Any = None,
        learn: bool = True,
    ) -> FleetReport:
        """Fold in the rows of any number of keys, each into its own model.

        Call it as `update(frame, key="patient", inputs="time")` with a pandas or polars frame or an
        Arrow table, wide or long as for `ContinualGP.update`, or as `update({key: batch, …})`,
        where a batch is whatever a single model takes, arrays being a pair (x, y). Keys that are
        new begin a model.

        Args:
            data: A table, or a dictionary of batches by key.
            key: The column of the table that has the keys.
            inputs: The input column, or a list of them; by default the index.
            channel: The column with the channels' names, if the table is long.
            value: The column with the values, if it is long.
            columns: Columns of a wide table that are not called as usual, by channel.
            learn: Whether hyperparameters may be learned too.

        Returns:
            What happened to each key. Its `errors` have what went wrong, by key.

        Raises:
            DataError: If the table as a whole cannot be used.
        """
        begin, layout = time.perf_counter(), Layout(inputs, channel, value, columns)
        with self._lock, self._saving():
            families = self._template.updater.specification.channels
            intakes = read(data, key, layout, families, self._axes, self._schema_of)
            self._note_form(intakes)
            work = _Work(self, learn)
            work.all(intakes)
            report = work.report(intakes, begin)
        if report.errors:
            _log.warning("%s", report)
        else:
            _log.info("%s", report)
        return report

    def _schema_of(self, key: Hashable) -> Schema:
        model = self._models.get(key)
        return Schema() if model is None else model._version.progress.schema

    def _note_form(self, intakes: Intakes) -> None:
        """Take the form of the first data as the fleet's."""
        first = next((i for i in intakes.read.values() if i.rows is not None), None)
        if self._axes or first is None or first.rows is None:
            return
        axes = first.schema.axes
        if self._shared is not None:
            check_is_chain(self._template.updater, input_names(axes), axes)
        self._axes = axes
        sentence = epochs(first.rows.x, self._axes)
        if sentence is not None:
            warnings.warn(sentence, EpochWarning, stacklevel=4)

    def _learn_shared(self) -> None:
        """Learn the hyperparameters of all keys, if they are shared and that is due."""
        if self._shared is not None and self._shared.is_due(self._total):
            self._shared = self._shared.learned(self._some(), self._total)

    # -- predicting ----------------------------------------------------------------------------

    @on_one_blas_thread
    def predict(
        self,
        x: Any,
        *,
        key: Any = None,
        channel: str | None = None,
        keys: Iterable[Hashable] | None = None,
    ) -> FleetPredictions:
        """What the models' channels will show.

        Call it as `predict(frame, key="patient")`, where each row is predicted by the model of its
        key, or as `predict(x)`, where every model predicts the same inputs.

        Args:
            x: A table with the keys and the inputs; or inputs as in `ContinualGP.predict`.
            key: The column of the table that has the keys.
            channel: The name of one channel; by default all of them.
            keys: Which models predict `x`, if it has no keys; by default all that have data.

        Returns:
            Predictions by key; `to_frame()` puts them into one table. Keys without data, or with
            inputs that cannot be used, are in its `errors`.

        Raises:
            DataError: If there is no such column, or a row has no key.
        """
        if key is None:
            chosen = [k for k in self if self._has_data(k)] if keys is None else list(keys)
            asked = dict.fromkeys(chosen, x)
        else:
            split = keyed(as_table(x), key)
            asked = dict(zip(split.keys, map(split.part, split.rows_of()), strict=True))
        parts: dict[Hashable, Any] = {}
        errors: dict[Hashable, Exception] = {}
        for name, own in asked.items():
            try:
                parts[name] = self._known(name).predict(own, channel)
            except DataError as error:
                errors[name] = error
        return FleetPredictions(parts, errors)

    def _has_data(self, key: Hashable) -> bool:
        model = self._models.get(key)
        return model is not None and model.state is not None

    def _known(self, key: Hashable) -> ContinualGP:
        model = self.get(key)
        if model is None:
            raise DataError(problem("a key of the fleet", repr(key), "Update it first."))
        return model

    # -- looking -------------------------------------------------------------------------------

    def to_frame(self, *, backend: str = "pandas") -> Any:
        """A table of all keys and their channels, as they are now.

        Args:
            backend: "pandas" or "polars".

        Returns:
            The columns `key`, `channel`, `observations`, `silence` (how far the latest input of the
            channel lies behind the fleet's; days, if inputs are times), `nlpd` and `coverage_50`,
            `coverage_80`, `coverage_95`: moving averages over about the last 500 observations.
        """
        lines = []
        with self._lock:
            for key, model in self._models.items():
                records = model._version.progress.calibrations
                for name, seen in model.observations.items():
                    last = self._latest[key].get(name, -np.inf)
                    record = records.get(name)
                    lines.append(Line(key, name, seen, 0.0, 0.0, False, 0, last, record))
            columns = table(lines, self.latest)
        for name in ("log_predictive", "surprise", "changed", "outliers"):
            del columns[name]
        return make_frame(columns, backend)


@dataclasses.dataclass
class _Work:
    """One update of a fleet as it goes on."""

    fleet: Fleet
    learn: bool
    keys: list[Hashable] = dataclasses.field(default_factory=list)
    learned: list[Hashable] = dataclasses.field(default_factory=list)
    lines: list[Line] = dataclasses.field(default_factory=list)
    errors: dict[Hashable, Exception] = dataclasses.field(default_factory=dict)

    def all(self, intakes: Intakes) -> None:
        """Update all models, those whose updates are plain together."""
        simple = []
        for key, intake in intakes.read.items():
            model = self.fleet.get(key)
            update = None if model is None else plain(key, model, intake, learn=self.learn)
            if update is None:
                self.one(key, intake)
            else:
                simple.append(update)
        for done in made(simple):
            if not (isinstance(done, Done) and self._kept(done)):
                update = done.update if isinstance(done, Done) else done
                self.one(update.key, update.intake)
        if self.learn:
            self.fleet._learn_shared()

    def _kept(self, done: Done) -> bool:
        """Keep what an update led to, unless the model was changed by someone else meanwhile."""
        update, scores = done.update, done.scores
        with update.model._changing() as (_, progress):
            if progress is not update.progress:
                return False
            update.model._version = update.model._version._replace(progress=done.progress)
        self.keys.append(update.key)
        self.fleet._total += update.rows.size
        latest = self._latest(update.key, update.rows)
        for name, own in scores.rows.items():
            self.lines.append(
                Line(
                    update.key,
                    name,
                    len(own),
                    float(own.sum()) / len(own),
                    scores.surprise[name],
                    name in scores.changed,
                    scores.outliers[name],
                    latest[name],
                    done.progress.calibrations.get(name),
                )
            )
        return True

    def _latest(self, key: Hashable, rows: Rows | None) -> dict[str, float]:
        """The latest input of each channel of a key, with these rows."""
        latest = self.fleet._latest.setdefault(key, {})
        if rows is not None:
            for d, now in zip(rows.channel.tolist(), rows.x[:, 0].tolist(), strict=True):
                name = rows.names[d]
                if now > latest.get(name, -np.inf):
                    latest[name] = now
        return latest

    def one(self, key: Hashable, intake: Intake) -> None:
        """Update one model by itself. A key whose first batch fails does not come to be."""
        fleet = self.fleet
        model = fleet._blank() if key not in fleet else fleet[key]
        try:
            with model._changing() as (updater, progress):
                if intake.rows is None:
                    report = model._passed_over(intake)
                else:
                    start = dataclasses.replace(progress, schema=intake.schema)
                    result = updater.update(start, intake.rows, learn=self.learn)
                    report = model._keep(result, intake)
        except Exception as error:  # one key's failure must not be that of ten thousand
            self.errors[key] = error
            return
        fleet._models.setdefault(key, model)
        self.keys.append(key)
        self._note(key, intake, report)
        if self.learn:  # so that further new keys of a first table start from these
            fleet._learn_shared()

    def _note(self, key: Hashable, intake: Intake, report: UpdateReport) -> None:
        latest = self._latest(key, intake.rows)
        self.fleet._total += sum(report.observations.values())
        if report.result is Result.LEARNED:
            self.learned.append(key)
            if self.fleet._pool is not None:
                self.fleet._pool = self.fleet._pool.seen(key, self.fleet._some())
        for name, count in report.observations.items():
            self.lines.append(
                Line(
                    key,
                    name,
                    count,
                    report.log_predictive[name],
                    report.surprise.get(name, np.nan),
                    name in report.changed,
                    report.outliers.get(name, 0),
                    latest[name],
                    report._calibrations.get(name),
                )
            )

    def report(self, intakes: Intakes, begin: float) -> FleetReport:
        """What was done."""
        return FleetReport(
            self.keys,
            self.learned,
            {**intakes.errors, **self.errors},
            {name: intake.dropped for name, intake in intakes.read.items() if intake.dropped},
            self.fleet.latest,
            time.perf_counter() - begin,
            self.lines,
        )


def _check_not_both(population: bool, shared: bool) -> None:
    if population and shared:
        raise ConfigurationError(
            problem(
                "`population=True` or `shared=True`",
                "both",
                "Shared hyperparameters are those of the population.",
            )
        )


def _check_is_blank(model: Any) -> None:
    if not isinstance(model, ContinualGP) or model.state is not None:
        raise ConfigurationError(
            problem(
                "a model without data, which every key begins as",
                repr(model),
                "Call `Fleet(ContinualGP(…))`; models with data are added by `fleet.add(key, …)`.",
            )
        )
