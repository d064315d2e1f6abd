"""A store in one file: SQLite with a write-ahead log.

Readers see the last state that was committed and wait for nobody. Writers take turns. A commit is
on disk before it returns (`synchronous = FULL`), and a crash at any moment loses nothing of it.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from streamgp.errors import FileError, StoreError, problem
from streamgp.store.backend import AbstractBackend, AbstractSession
from streamgp.store.pool import Pool
from streamgp.store.schema import MARK

_PATIENCE = 60.0  # seconds that a writer waits for those of other processes
_TRANSIENT = (sqlite3.OperationalError, sqlite3.InterfaceError)  # full disk, locks, permissions


class _Session(AbstractSession):
    def __init__(self, connection: sqlite3.Connection):
        self._connection = connection

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple]:
        return self._connection.execute(statement, values).fetchall()

    def run_each(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        self._connection.executemany(statement, rows)


class SQLite(AbstractBackend):
    """A database in a file.

    Args:
        path: Of the file.
        create: Whether to make the file if it is not there.
    """

    types: ClassVar[dict[str, str]] = {
        "text": "TEXT", "bytes": "BLOB", "real": "REAL", "integer": "INTEGER",
    }  # fmt: skip

    def __init__(self, path: Path, *, create: bool):
        self._path = path
        self._check_path(create)
        self._pool = Pool(self._connect)
        self._turn = threading.Lock()  # of this process's writers; SQLite's own wait is not fair
        with _explained(path):
            self._set_up()

    def _check_path(self, create: bool) -> None:
        if self._path.is_dir():
            raise FileError(
                problem("a file", f"the directory {str(self._path)!r}", "Name a file in it.")
            )
        if not self._path.parent.is_dir():
            raise FileNotFoundError(
                problem(
                    f"a folder that exists, for the store {self._path.name!r}",
                    f"{str(self._path.parent)!r}, which does not",
                    "Create the folder first.",
                )
            )
        if not create and not self._path.exists():
            raise FileNotFoundError(
                problem("a store that exists", f"{str(self._path)!r}", "Check the path.")
            )

    def _set_up(self) -> None:
        connection = self._pool.take()
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if tables and MARK not in tables:
            connection.close()
            raise FileError(
                problem(
                    "a store, or a file that is not there yet",
                    f"{str(self._path)!r}, a database of something else",
                    "Name another file.",
                )
            )
        _use_log(connection)
        self._pool.give_back(connection)

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path,
            timeout=_PATIENCE,
            isolation_level=None,  # transactions begin where they are said to
            check_same_thread=False,  # the pool sees to it that only one thread uses it
        )
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    @contextmanager
    def reading(self) -> Iterator[AbstractSession]:
        """A session that sees one state."""
        with self._session("BEGIN") as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[AbstractSession]:
        """A session whose changes are all kept or none."""
        with self._turn, self._session("BEGIN IMMEDIATE") as session:
            yield session

    @contextmanager
    def _session(self, begin: str) -> Iterator[AbstractSession]:
        with _explained(self._path):
            connection = self._pool.take()
            try:
                connection.execute(begin)
                yield _Session(connection)
                connection.execute("COMMIT")
            except BaseException:
                self._take_back(connection)
                raise
            self._pool.give_back(connection)

    def _take_back(self, connection: sqlite3.Connection) -> None:
        """Undo what was not committed. A connection that is broken is not used again."""
        try:
            connection.execute("ROLLBACK")
        except sqlite3.Error:
            connection.close()
        else:
            self._pool.give_back(connection)

    def close(self) -> None:
        """Close all connections. The last one of all processes merges the log into the file."""
        self._pool.close()


def _use_log(connection: sqlite3.Connection) -> None:
    """Have a write-ahead log. SQLite does not wait when two processes ask for it at once."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return


@contextmanager
def _explained(path: str | os.PathLike[str]) -> Iterator[None]:
    """What SQLite says, as errors of this library."""
    try:
        yield
    except _TRANSIENT as error:
        raise StoreError(
            problem(
                f"a store at {str(path)!r} that can be read and written",
                f"SQLite's {error}",
                "Check free space, permissions and other programs that hold it.",
            )
        ) from error
    except sqlite3.DatabaseError as error:
        raise FileError(
            problem(
                f"a store at {str(path)!r} that is whole",
                f"SQLite's {error}",
                "Take another copy of the file.",
            )
        ) from error
