"""Keeper: sees to it that what a fleet changes is in its store, all of it or nothing."""

from collections.abc import Iterator
from contextlib import contextmanager

from streamgp import persistence
from streamgp.errors import ConfigurationError
from streamgp.fleet.checks import check_is_of_kind
from streamgp.fleet.members import Members
from streamgp.fleet.stored import StoredLatest, StoredModels
from streamgp.store import Change, Store


class Keeper:
    """The members of a fleet, and the store that has them.

    Args:
        members: Of a fleet that has none yet. It gets those of the store.
        store: Where models are. It is the fleet's alone.
        live: The number of models that stay in memory.

    Attributes:
        store: The store.

    Raises:
        ConfigurationError: If the store has models of another kind.
    """

    def __init__(self, members: Members, store: Store, live: int):
        self.store = store
        self._members, self._models = members, StoredModels(store, live)
        self._first = members.pool, members.shared  # before anything is learned
        members.models, members.latest = self._models, StoredLatest(self._models)
        key = next(iter(self._models), None)
        if key is not None:
            model = self._models[key]
            try:
                check_is_of_kind(model, members.updater.specification.channels)
            except ConfigurationError:
                store.close()
                raise
            members.axes = model.axes
        self._read_common()

    @contextmanager
    def saving(self) -> Iterator[None]:
        """A block whose changes are stored together, unless a transaction is going on."""
        with self._undoing(), self._models.saving():
            yield
            self._write_common()

    @contextmanager
    def transaction(self) -> Iterator[Change]:
        """A block whose changes are stored together, with what else it changes."""
        with self._undoing(), self._models.transaction() as change:
            yield change
            self._write_common()

    @contextmanager
    def _undoing(self) -> Iterator[None]:
        """A block after which, if it fails, what is common to all keys is as it was."""
        axes = self._members.axes
        try:
            yield
        except BaseException:
            self._members.axes = axes
            self._read_common()
            raise

    def _write_common(self) -> None:
        """Hand over what is common to all keys to those who store it."""
        members = self._members
        common = {"pool": members.pool, "shared": members.shared, "total": members.total}
        self._models.common = persistence.wrap(common)

    def _read_common(self) -> None:
        members, (pool, shared), common = self._members, self._first, self._models.common
        found = persistence.unwrap(common) if common else {}
        members.total = found.get("total", 0)
        members.pool = pool and (found.get("pool") or pool)
        members.shared = shared and (found.get("shared") or shared)
        members.adopted.clear()
