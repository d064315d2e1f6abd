"""Events: clients that follow models are told of every change, as server-sent events."""

import asyncio
import threading
from collections.abc import AsyncGenerator
from typing import Any, NamedTuple

from streamgp.errors import problem
from streamgp.service.names import shown
from streamgp.service.problems import RefusedError
from streamgp.service.wire import written

_BACKLOG = 100  # events that wait for a slow client; then it is told to look again
_BEAT = 15.0  # seconds between signs of life

Event = dict[str, Any]


class _Told(NamedTuple):
    """An event as text for a browser, and the key of the model that it is about."""

    key: str
    text: bytes


class Hub:
    """Hands every event to all who listen. Publishing never waits for anybody.

    Args:
        most: How many clients may listen.
    """

    def __init__(self, most: int):
        self._most = most
        self._lock = threading.Lock()
        self._listeners: dict[asyncio.Queue, asyncio.AbstractEventLoop] = {}

    def publish(self, key: str, event: Event) -> None:
        """Tell all listeners. It may be called from any thread, which writes the text for all."""
        if not self._listeners:
            return
        text = written({"name": shown(key), **event})
        told = _Told(key, b"event: %b\ndata: %b\n\n" % (event["event"].encode(), text))
        with self._lock:
            for queue, loop in self._listeners.items():
                loop.call_soon_threadsafe(_offer, queue, told)

    async def listen(self, *wanted: str) -> AsyncGenerator[bytes, None]:
        """Events as text for a browser, until the client goes.

        Args:
            *wanted: Keys, or what keys begin with, ending in a slash.

        Raises:
            RefusedError: If there are too many listeners.
        """
        told = self._told(wanted)
        await anext(told)  # from here on it is a listener, and leaves when it is closed
        return told

    async def _told(self, wanted: tuple[str, ...]) -> AsyncGenerator[bytes, None]:
        """First an empty text, when the client has its place among the listeners; then events."""
        queue = self._joined()
        try:
            yield b""
            yield b"retry: 1000\nevent: hello\ndata: {}\n\n"
            while True:
                try:
                    event = await asyncio.wait_for(queue.get(), _BEAT)
                except TimeoutError:
                    yield b": still here\n\n"
                    continue
                if event is None:
                    return
                key = event.key
                if any(key == own or (own[-1] == "/" and key.startswith(own)) for own in wanted):
                    yield event.text
        finally:
            with self._lock:
                self._listeners.pop(queue, None)

    def _joined(self) -> asyncio.Queue:
        """The queue of one more listener, unless there are too many."""
        queue: asyncio.Queue = asyncio.Queue(_BACKLOG)
        with self._lock:
            if len(self._listeners) >= self._most:
                raise RefusedError(
                    429,
                    problem(f"at most {self._most} listeners", "one more", "Try again later."),
                    {"Retry-After": "10"},
                )
            self._listeners[queue] = asyncio.get_running_loop()
        return queue

    def close(self) -> None:
        """Tell all listeners that there is no more to come."""
        with self._lock:
            for queue, loop in self._listeners.items():
                if not loop.is_closed():
                    loop.call_soon_threadsafe(_offer, queue, None)


def _offer(queue: asyncio.Queue, event: _Told | None) -> None:
    """Put an event at the end. A client that is too slow loses the oldest ones."""
    while queue.full():
        queue.get_nowait()
    queue.put_nowait(event)
