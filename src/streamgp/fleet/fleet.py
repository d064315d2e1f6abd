"""Fleet: models of one kind, by key."""

import logging
import os
import threading
import time
import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from streamgp.data.axes import Axis
from streamgp.data.epochs import epochs
from streamgp.data.frames import make_frame
from streamgp.data.keys import as_table, keyed
from streamgp.data.reader import Layout
from streamgp.errors import ConfigurationError, DataError, EpochWarning, problem
from streamgp.fleet.checks import check_is_blank, check_is_of_kind, check_not_both
from streamgp.fleet.intakes import Intakes, read
from streamgp.fleet.members import Members
from streamgp.fleet.pool import Pool
from streamgp.fleet.population import Population
from streamgp.fleet.predictions import FleetPredictions
from streamgp.fleet.report import FleetReport, Line, table
from streamgp.fleet.shared import shared_by
from streamgp.fleet.work import Work
from streamgp.gp import ContinualGP
from streamgp.numerics.blas_threads import on_one_blas_thread
from streamgp.store import Change, Store

_log = logging.getLogger(__name__)


class Fleet(Mapping[Hashable, ContinualGP]):
    """Models of one kind, one per key: patients, sensors, shops, devices.

    Each key has a model of its own. A fleet learns a table with any mix of keys in one call. The
    result is as if each model had been given its own rows. If the rows of one key cannot be used,
    this is reported for that key: its model is then as it was, and all others are updated.

    `fleet[key]` is the model itself, not a copy: to update it is to update the fleet. A fleet may
    be used from several threads, as a model may be. Updates of a fleet wait for each other.

    With a store, every update is on disk when it returns, all keys of it or none, and only the
    models in use are in memory. `transaction` stores several updates and the offset of their source
    together. Keys are then all text, or all whole numbers.

    Args:
        model: A model without data. Every key begins with a copy of it.
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

    Examples:
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
        check_is_blank(model)
        check_not_both(population, shared)
        updater, progress = model._version
        if shared:
            together, updater = shared_by(updater)
            self._members = Members(updater, progress, shared=together)
        else:
            self._members = Members(updater, progress, Pool() if population else None)
        self._lock = threading.RLock()
        if store is not None:
            self._members.keep_in(store if isinstance(store, Store) else Store(store), live)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())

    # -- what it consists of -------------------------------------------------------------------

    @property
    def channels(self) -> tuple[str, ...]:
        """The names of the channels of every model, in order."""
        return self._members.updater.specification.names

    @property
    def axes(self) -> tuple[Axis, ...]:
        """What each input column is; none before the first data."""
        return self._members.axes

    @property
    def latest(self) -> float:
        """The largest first input of all keys so far, as a number (times in days)."""
        return self._members.newest

    @property
    def population(self) -> Population | None:
        """What new keys start from; None if nothing was asked for, or too few keys have learned."""
        return self._members.population

    def __getitem__(self, key: Hashable) -> ContinualGP:
        model = self._members.model(key)
        if model is None:
            raise KeyError(key)
        return model

    def __iter__(self) -> Iterator[Hashable]:
        return iter(list(self._members.models))

    def __len__(self) -> int:
        return len(self._members.models)

    def __contains__(self, key: object) -> bool:
        return key in self._members.models

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
        with self._lock, self._members.saving():
            if key in self._members.models:
                raise ConfigurationError(
                    problem("a new key", f"{key!r}, which exists", "Use `fleet[key]`.")
                )
            if model is not None:
                check_is_of_kind(model, self._members.updater.specification.channels)
            added = self._members.blank() if model is None else model
            self._members.add(key, added)
            return added

    def remove(self, key: Hashable) -> ContinualGP:
        """Take a key out of the fleet.

        Args:
            key: Of the model.

        Returns:
            The model, which goes on by itself.

        Raises:
            KeyError: If there is no such key.
        """
        with self._lock, self._members.saving():
            return self._members.remove(key)

    # -- storing -------------------------------------------------------------------------------

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

        Examples:
            >>> import tempfile, streamgp as sgp
            >>> folder = tempfile.TemporaryDirectory()
            >>> model = sgp.ContinualGP(sgp.Gaussian(), learning=None)
            >>> fleet = sgp.Fleet(model, store=f"{folder.name}/ward.db", live=10)
            >>> with fleet.transaction() as change:
            ...     report = fleet.update({"bed A": ([0.0, 1.0], [0.2, 0.3])})
            ...     change.set_offset("readings.csv", {"row": 2})
            >>> fleet.close(); folder.cleanup()
        """
        with self._lock, self._members.transaction() as change:
            yield change

    @property
    def store(self) -> Store:
        """Where the models are.

        Raises:
            ConfigurationError: If the fleet has no store.
        """
        return self._members.stored.store

    def close(self) -> None:
        """Let go of the store."""
        self._members.stored.store.close()

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
        """Learn the rows of any number of keys, each in its own model.

        Call it as `update(frame, key="patient", inputs="time")` with a pandas or polars frame or an
        Arrow table, wide or long as for `ContinualGP.update`, or as `update({key: batch, …})`,
        where a batch is whatever a single model takes, arrays being a pair (x, y). New keys
        begin a model.

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
        members = self._members
        with self._lock, members.saving():
            families = members.updater.specification.channels
            intakes = read(data, key, layout, families, members.axes, members.schema_of)
            self._note_form(intakes)
            work = Work(members, learn)
            work.all(intakes)
            report = work.report(intakes, begin)
        if report.errors:
            _log.warning("%s", report)
        else:
            _log.info("%s", report)
        return report

    def _note_form(self, intakes: Intakes) -> None:
        """Take the input columns of the first data as those of the fleet."""
        rows = next((i.rows for i in intakes.read.values() if i.rows is not None), None)
        if self.axes or rows is None:
            return
        first = next(i for i in intakes.read.values() if i.rows is rows)
        self._members.take_form(first.schema.axes)
        sentence = epochs(rows.x, self.axes)
        if sentence is not None:
            warnings.warn(sentence, EpochWarning, stacklevel=4)

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
        """Predict observations of the models' channels.

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
            table = as_table(x)
            if table is None:
                raise DataError(
                    problem("a table to go with `key=`", type(x).__name__, "Leave out `key=`.")
                )
            split = keyed(table, key)
            asked = dict(zip(split.keys, map(split.part, split.rows_of()), strict=True))
        parts: dict[Hashable, Any] = {}
        errors: dict[Hashable, Exception] = {}
        for name, own in asked.items():
            try:
                parts[name] = self._members.known(name).predict(own, channel)
            except DataError as error:
                errors[name] = error
        return FleetPredictions(parts, errors)

    def _has_data(self, key: Hashable) -> bool:
        model = self._members.models.get(key)
        return model is not None and model.state is not None

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
            for key, model in self._members.models.items():
                records = model._version.progress.calibrations
                for name, seen in model.observations.items():
                    last = self._members.latest[key].get(name, -np.inf)
                    record = records.get(name)
                    lines.append(Line(key, name, seen, 0.0, 0.0, False, 0, last, record))
            columns = table(lines, self.latest)
        for name in ("log_predictive", "surprise", "changed", "outliers"):
            del columns[name]
        return make_frame(columns, backend)
