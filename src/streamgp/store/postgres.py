"""A store in PostgreSQL. It needs psycopg: `pip install 'streamgp[postgres]'`.

Tables are made in the first schema of the search path. Writers of one schema take turns, as those
of a file do, by an advisory lock that ends with the transaction. Readers wait for nobody.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from streamgp.errors import FileError, StoreError, problem
from streamgp.store.backend import AbstractBackend, AbstractSession
from streamgp.store.pool import Pool

try:
    import psycopg
except ImportError as error:
    raise ImportError(
        problem(
            "psycopg, for a store in PostgreSQL",
            f"{error}",
            "Run `pip install 'streamgp[postgres]'`.",
        )
    ) from error

_TURN = "SELECT pg_advisory_xact_lock(1396922452, hashtext(current_schema()))"
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_DAMAGED = (psycopg.DataError, psycopg.InternalError, psycopg.errors.DataCorrupted)


class _Session(AbstractSession):
    def __init__(self, cursor: Any):
        self._cursor = cursor

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple]:
        self._cursor.execute(statement.replace("?", "%s"), values)
        return self._cursor.fetchall() if self._cursor.description else []

    def run_each(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        self._cursor.executemany(statement.replace("?", "%s"), rows)


class Postgres(AbstractBackend):
    """A database that a server keeps.

    Args:
        url: Of the database, as libpq reads it.
    """

    types: ClassVar[dict[str, str]] = {
        "text": 'TEXT COLLATE "C"', "bytes": "BYTEA", "real": "DOUBLE PRECISION",
        "integer": "BIGINT",
    }  # fmt: skip

    def __init__(self, url: str):
        self._url = url
        self._pool = Pool(self._connect)

    def _connect(self) -> Any:
        return psycopg.connect(self._url, autocommit=True)

    @contextmanager
    def reading(self) -> Iterator[AbstractSession]:
        """A session that sees one state."""
        with self._session(_READ) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[AbstractSession]:
        """A session whose changes are all kept or none."""
        with self._session("BEGIN") as session:
            session.run(_TURN)
            yield session

    @contextmanager
    def _session(self, begin: str) -> Iterator[AbstractSession]:
        with _explained():
            connection = self._begun(begin)
            try:
                with connection.cursor(binary=True) as cursor:
                    yield _Session(cursor)
                connection.execute("COMMIT")
            except BaseException:
                self._take_back(connection)
                raise
            self._pool.give_back(connection)

    def _take_back(self, connection: Any) -> None:
        """Undo what was not committed. A connection that is broken is not used again."""
        try:
            connection.execute("ROLLBACK")
        except psycopg.Error:
            connection.close()
        else:
            self._pool.give_back(connection)

    def _begun(self, begin: str) -> Any:
        """A connection in a transaction. One that broke while nobody used it is replaced."""
        connection = self._pool.take()
        try:
            connection.execute(begin)
        except psycopg.OperationalError:
            connection.close()
            self._pool.close()
            connection = self._connect()
            connection.execute(begin)
        return connection

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()


@contextmanager
def _explained() -> Iterator[None]:
    """What PostgreSQL says, as errors of this library. They never have the URL: it has secrets."""
    try:
        yield
    except _DAMAGED as error:
        raise FileError(
            problem("a store that is whole", f"PostgreSQL's {error}", "Restore the database.")
        ) from error
    except psycopg.Error as error:
        raise StoreError(
            problem(
                "a PostgreSQL database that can be read and written",
                f"its answer: {error}",
                "Check the server, the URL and the permissions.",
            )
        ) from error
