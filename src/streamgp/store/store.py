"""Store: models by key, how far their sources were read, and which requests were handled."""

import datetime
import json
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from streamgp.gp import ContinualGP
from streamgp.store.backend import AbstractBackend
from streamgp.store.change import Change, checked, owned
from streamgp.store.commit import Written, commit, unknown, versions_of
from streamgp.store.reading import Info, Life, Stored, belongings, infos, packed
from streamgp.store.schema import in_chunks, set_up

_SERVERS = ("postgresql://", "postgres://")
_REMEMBERED = 1024  # models of which the list of pieces is kept in memory
_DAY = datetime.timedelta(days=1)
_BEGINS = "key >= ? AND substr(key, 1, ?) = ?"  # the first part is what an index is for


class Store:
    """Models by key, in a database.

    One transaction changes any number of models, the offsets of the sources that they learned from,
    and the records of the requests that were handled: all of them or none. It is on disk when it
    ends. Of a model over a long time only what has changed is written.

    A store may be used from several threads, and the database from several processes. Readers see
    the last state that was committed and wait for nobody. Nothing in the database is executed.

    Args:
        where: The path of a file, which SQLite keeps and which is made if it is not there, or the
            URL of a PostgreSQL database (`postgresql://…`), which needs `streamgp[postgres]`.
        create: Whether to make a file that is not there.

    Raises:
        FileError: If the file is no store, damaged, or one of another version.
        StoreError: If the database cannot be used.
        OSError: If the file's folder is not there, or the file is not and may not be made.

    Examples:
        >>> import tempfile, numpy as np, streamgp as sgp
        >>> folder = tempfile.TemporaryDirectory()
        >>> store = sgp.Store(f"{folder.name}/stream.db")
        >>> model = sgp.ContinualGP(sgp.Gaussian(), learning=None)
        >>> report = model.update(np.arange(5.0), np.zeros(5))
        >>> with store.transaction() as change:
        ...     change.put("sensor", model)
        ...     change.set_offset("readings.csv", {"row": 5})
        >>> store.get("sensor").observations, store.offset("readings.csv")
        ({'y': 5}, {'row': 5})
        >>> store.close(); folder.cleanup()
    """

    def __init__(self, where: str | os.PathLike[str], *, create: bool = True):
        self._backend = _backend(where, create)
        self._lock = threading.Lock()
        self._written: OrderedDict[str, Written] = OrderedDict()
        try:
            set_up(self._backend)
        except BaseException:
            self._backend.close()
            raise

    def close(self) -> None:
        """Let go of the database. A store that is used again opens it again."""
        self._backend.close()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # -- writing -------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[Change]:
        """Change several things together.

        Returns:
            A context manager that gives a `Change`. What was put into it is committed when the
            block ends; if an exception leaves the block, nothing is.

        Raises:
            StaleError: When the block ends, if a model has another version than was expected, a
                request was recorded before, or the model to which something is to belong is not
                there.
            UnknownKeyError: If a model that is to be deleted is not there.
            StoreError: If the database cannot be written to.
        """
        change = Change()
        yield change
        if change.is_empty:
            return
        with self._backend.writing() as session:
            written = commit(session, change, self._known(change.models))
        change.versions.update({key: item.version for key, item in written.items()})
        self._remember(written)

    def put(self, key: str, model: ContinualGP, *, version: int | None = None) -> int:
        """Store a model as it is now, in a transaction of its own.

        Args:
            key: Any text of 1 to 1,024 characters.
            model: The model.
            version: The version that it is to replace, 0 for a key that must not be there. By
                default it replaces whatever is there.

        Returns:
            The version that it has now.

        Raises:
            StaleError: If the store has another version.
        """
        with self.transaction() as change:
            change.put(key, model, version=version)
        return change.versions[key]

    def delete(self, key: str, *, version: int | None = None) -> None:
        """Remove a model and what belongs to it, in a transaction of its own.

        Args:
            key: Of the model.
            version: The version that it must have; by default any.

        Raises:
            UnknownKeyError: If it is not there.
            StaleError: If it has another version.
        """
        with self.transaction() as change:
            change.delete(key, version=version)

    def forget_answers(self, older: datetime.timedelta = _DAY) -> int:
        """Remove old records of requests.

        Args:
            older: How old they have to be.

        Returns:
            How many were removed.
        """
        before = (time.time() - older.total_seconds(),)
        with self._backend.writing() as session:
            query = "SELECT count(*) FROM streamgp_answers WHERE made < ?"
            ((count,),) = session.run(query, before)
            session.run("DELETE FROM streamgp_answers WHERE made < ?", before)
        return count

    # -- reading -------------------------------------------------------------------------------

    def get(self, key: str) -> ContinualGP:
        """A model, ready to go on with its stream.

        Args:
            key: Of the model.

        Raises:
            UnknownKeyError: If it is not there.
            FileError: If what is stored is damaged, or of a newer format.
        """
        return self.fetch(key).model

    def fetch(self, key: str) -> Stored:
        """A model with its version, for a change that must not overtake another's.

        Args:
            key: Of the model.

        Raises:
            UnknownKeyError: If it is not there.
            FileError: If what is stored is damaged, or of a newer format.
        """
        found = self.fetch_many([key])
        if key not in found:
            raise unknown(key)
        return found[key]

    def fetch_many(self, keys: Iterable[str]) -> dict[str, Stored]:
        """Models with their versions, as they were at one moment.

        Args:
            keys: Of the models.

        Returns:
            Those that are there, by key.

        Raises:
            FileError: If what is stored is damaged, or of a newer format.
        """
        wanted = [checked(key, "key") for key in keys]
        with self._backend.reading() as session:
            found = packed(session, wanted)
        return {key: item.unpacked() for key, item in found.items()}

    def life(self, key: str, *, answers: int | None = None) -> Life:
        """A model with the offsets and the records of requests that belong to it.

        Args:
            key: Of the model.
            answers: How many of the latest records at most; by default all.

        Returns:
            All of it as it was at one moment.

        Raises:
            UnknownKeyError: If it is not there.
            FileError: If what is stored is damaged, or of a newer format.
        """
        with self._backend.reading() as session:
            found = packed(session, [checked(key, "key")])
            if key not in found:
                raise unknown(key)
            own = belongings(session, key, answers)
        return Life(found[key].unpacked(), *own)

    def versions(self, keys: Iterable[str]) -> dict[str, int]:
        """The versions of models, without loading them.

        Args:
            keys: Of the models.

        Returns:
            The versions of those that are there, by key.
        """
        wanted = [checked(key, "key") for key in keys]
        with self._backend.reading() as session:
            return versions_of(session, wanted)

    def keys(self, prefix: str = "") -> list[str]:
        """The keys of all models, in order.

        Args:
            prefix: What they begin with.
        """
        query = f"SELECT key FROM streamgp_models WHERE {_BEGINS} ORDER BY key"
        with self._backend.reading() as session:
            rows = session.run(query, _prefixed(prefix))
        return [key for (key,) in rows]

    def __contains__(self, key: str) -> bool:
        return bool(self._infos("key = ?", (checked(key, "key"),)))

    def info(self, key: str) -> Info:
        """What is known of a model without loading it.

        Args:
            key: Of the model.

        Raises:
            UnknownKeyError: If it is not there.
        """
        found = self._infos("key = ?", (checked(key, "key"),))
        if not found:
            raise unknown(key)
        return found[0]

    def infos(self, prefix: str = "") -> list[Info]:
        """What is known of all models, in the order of their keys.

        Args:
            prefix: What keys begin with.
        """
        return self._infos(f"{_BEGINS} ORDER BY key", _prefixed(prefix))

    def _infos(self, condition: str, values: tuple) -> list[Info]:
        with self._backend.reading() as session:
            return infos(session, condition, values)

    def offset(self, source: str, *, model: str | None = None) -> Any:
        """How far a source has been read.

        Args:
            source: The source's name.
            model: The key of the model to which the offset belongs, if it belongs to one.

        Returns:
            What `Change.set_offset` was given; None if there is nothing.
        """
        query = "SELECT value FROM streamgp_offsets WHERE model = ? AND source = ?"
        with self._backend.reading() as session:
            rows = session.run(query, owned(source, "source", model))
        return json.loads(rows[0][0]) if rows else None

    def answer(self, request: str, *, model: str | None = None) -> bytes | None:
        """What a request was answered.

        Args:
            request: What the client calls it.
            model: The key of the model to which the record belongs, if it belongs to one.

        Returns:
            What `Change.record` was given; None if it was not handled.
        """
        query = "SELECT answer FROM streamgp_answers WHERE model = ? AND request = ?"
        with self._backend.reading() as session:
            rows = session.run(query, owned(request, "request", model))
        return bytes(rows[0][0]) if rows else None

    def answers(self, request: str, models: Iterable[str]) -> dict[str, bytes]:
        """What a request was answered by several models.

        Args:
            request: What the client calls it.
            models: The keys of the models.

        Returns:
            The answers by key, of those models that handled it.
        """
        query = "SELECT model, answer FROM streamgp_answers WHERE request = ? AND model IN"
        named = [owned(request, "request", model) for model in models]
        with self._backend.reading() as session:
            rows = in_chunks(session, query, [model for model, _ in named], (request,))
        return {model: bytes(answer) for model, answer in rows}

    # -- which pieces the database has ---------------------------------------------------------

    def _known(self, keys: Iterable[str]) -> dict[str, Written]:
        with self._lock:
            return {key: self._written[key] for key in keys if key in self._written}

    def _remember(self, written: Mapping[str, Written]) -> None:
        """Keep the lists of pieces of the models that were stored last."""
        with self._lock:
            for key, item in written.items():
                self._written.pop(key, None)
                if item.pieces:
                    self._written[key] = item
            while len(self._written) > _REMEMBERED:
                self._written.popitem(last=False)


def _backend(where: str | os.PathLike[str], create: bool) -> AbstractBackend:
    if isinstance(where, str) and where.startswith(_SERVERS):
        from streamgp.store.postgres import Postgres

        return Postgres(where)
    from streamgp.store.sqlite import SQLite

    return SQLite(Path(where), create=create)


def _prefixed(prefix: str) -> tuple[str, int, str]:
    """The values of `_BEGINS`."""
    return (checked(prefix, "prefix") if prefix else "", len(prefix), prefix)
