"""What a store needs of a database."""

import abc
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any


class AbstractSession(abc.ABC):
    """A transaction that is going on. Statements have `?` in place of values."""

    @abc.abstractmethod
    def run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple]:
        """Run a statement, and return the rows that it gives."""

    @abc.abstractmethod
    def run_each(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement that gives no rows once for every row of values."""


class AbstractBackend(abc.ABC):
    """A database. It may be used from several threads.

    Attributes:
        types: What the database calls the types of columns: `text`, `bytes`, `real`, `integer`.
    """

    types: dict[str, str]

    @abc.abstractmethod
    def reading(self) -> AbstractContextManager[AbstractSession]:
        """A session in which all statements see one state of the database, that of its beginning.

        It waits for no writer.

        Raises:
            StoreError: If the database cannot be read.
            FileError: If it is damaged.
        """

    @abc.abstractmethod
    def writing(self) -> AbstractContextManager[AbstractSession]:
        """A session whose changes are all kept or, if an exception leaves it, none.

        Writers wait for each other, from this process and others. Changes are on disk when it ends.

        Raises:
            StoreError: If the database cannot be written to.
            FileError: If it is damaged.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Let go of the database."""
