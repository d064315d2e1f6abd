"""Connections to a database, each used by one thread at a time and kept for the next."""

import os
import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar


class Closable(Protocol):
    """What can be closed."""

    def close(self) -> None:
        """Let go of it."""


C = TypeVar("C", bound=Closable)


class Pool(Generic[C]):
    """Connections that nobody uses at the moment.

    Args:
        connect: Makes a new connection.
    """

    def __init__(self, connect: Callable[[], C]):
        self._connect = connect
        self._lock = threading.Lock()
        self._idle: list[C] = []
        self._process = os.getpid()

    def take(self) -> C:
        """A connection, which is the caller's until it is given back."""
        with self._lock:
            if self._process != os.getpid():  # those of the process that this one was forked from
                self._idle, self._process = [], os.getpid()
            if self._idle:
                return self._idle.pop()
        return self._connect()

    def give_back(self, connection: C) -> None:
        """Keep a connection for the next who needs one."""
        with self._lock:
            self._idle.append(connection)

    def close(self) -> None:
        """Close all connections that nobody uses."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
