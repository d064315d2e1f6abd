"""A stream of NATS JetStream. It needs nats-py: `pip install 'streamgp[nats]'`.

The server numbers the messages of a stream. Whoever reads keeps the number of the last message,
together with what was made of it, and so handles each message once. Nothing is acknowledged.
"""

import asyncio
import ssl
import threading
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from streamgp.errors import DataError, SourceError, problem
from streamgp.sources.feed import AbstractFeed, Messages

try:
    import nats
    from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
    from nats.js.errors import NotFoundError, ServiceUnavailableError
except ImportError as error:
    raise ImportError(
        problem("nats-py", f"{error}", "Run `pip install 'streamgp[nats]'`.")
    ) from error

T = TypeVar("T")

_WAIT = 0.2  # seconds for messages
_PATIENCE = 30.0  # seconds for the server to answer
_SILENCE = 25  # empty answers after which to look whether the server still knows us
_KEPT = 600.0  # seconds that the server remembers a reader that asks for nothing
_TLS = ("tls_ca", "tls_certificate", "tls_key")


class NatsFeed(AbstractFeed):
    """The messages of a stream, which are objects in JSON.

    Args:
        servers: Addresses, such as "nats:4222", separated by commas.
        stream: The name of the stream.
        place: What `Messages.place` was; None for the beginning.
        subject: Which messages of the stream; by default all.
        settings: Options of `nats.connect`, such as `user_credentials`, and the files `tls_ca`,
            `tls_certificate` and `tls_key`.

    Attributes:
        lost: Whether there was a place and its stream is gone, replaced by another of its name.

    Raises:
        DataError: If there is no such stream.
        SourceError: If no server answers.
    """

    def __init__(
        self,
        servers: str,
        stream: str,
        place: Any = None,
        subject: str | None = None,
        settings: Mapping[str, Any] | None = None,
    ):
        self._stream, self._subject = stream, subject
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._connection: Any = None
        self._reader: Any = None  # what the server sends messages to
        self._came: list[Any] = []  # messages that are still to be read
        self._empty = 0
        try:
            self._made = self._done(self._connect(servers, dict(settings or {})))
        except BaseException:
            self.close()
            raise
        known = place if place is not None and place["made"] == self._made else None
        self.lost = place is not None and known is None
        self._last: int = 0 if known is None else known["sequence"]

    def read(self, most: int) -> Messages:
        """The messages that have come. It waits for a moment if none have."""
        if not self._came:
            self._came = self._done(self._fetched(most))
        now, self._came = self._came[:most], self._came[most:]
        if now:
            self._last = now[-1].metadata.sequence.stream
        place = {"made": self._made, "sequence": self._last}
        full = [message for message in now if message.data]
        numbers = [f"{message.metadata.sequence.stream}" for message in full]
        return Messages([message.data for message in full], b"", place, numbers)

    def close(self) -> None:
        """Leave the server."""
        if self._connection is not None:
            self._done(self._connection.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_PATIENCE)
        self._loop.close()

    def _done(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of work with the server."""
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result(2 * _PATIENCE)
        except (nats.errors.Error, OSError, TimeoutError) as error:
            raise SourceError(
                problem("a NATS server that answers", f"{error!r}", "Check it and its address.")
            ) from error

    async def _connect(self, servers: str, settings: dict[str, Any]) -> str:
        """Connect. Returns when the stream was made."""
        files = [settings.pop(name, None) for name in _TLS]
        if any(files):
            settings["tls"] = _tls(*files)
        addresses = [f"nats://{address}" for address in servers.split(",")]
        work = nats.connect(addresses, max_reconnect_attempts=-1, error_cb=_ignore, **settings)
        self._connection = await asyncio.wait_for(work, _PATIENCE)
        try:
            info = await self._connection.jetstream().stream_info(self._stream)
        except NotFoundError as error:
            raise DataError(
                problem(f"a stream {self._stream!r}", f"{error}", "Create it first.")
            ) from error
        return f"{info.created}"

    async def _fetched(self, most: int) -> list[Any]:
        """Messages after those that have come, without a gap."""
        if self._reader is None:
            await self._begin()
        try:
            found = await self._reader.fetch(most, timeout=_WAIT)
        except ServiceUnavailableError:
            found, self._empty = [], _SILENCE
        except TimeoutError:
            found = []
        numbers = [message.metadata.sequence.consumer for message in found]
        first = self._count + 1
        if numbers != list(range(first, first + len(numbers))):  # some were lost on their way
            self._reader = None
            return []
        self._count += len(numbers)
        self._empty = 0 if found else self._empty + 1
        if self._empty >= _SILENCE:
            await self._check()
        return found

    async def _begin(self) -> None:
        """Have the server send what comes after the last message."""
        stream = self._connection.jetstream()
        asked = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=self._last + 1,
            ack_policy=AckPolicy.NONE,
            filter_subject=self._subject,
            inactive_threshold=_KEPT,
        )
        made = await stream.add_consumer(self._stream, asked)
        self._reader = await stream.pull_subscribe_bind(consumer=made.name, stream=self._stream)
        self._count = 0

    async def _check(self) -> None:
        """Begin again if the server has forgotten us, as one that was restarted may have."""
        self._empty = 0
        try:
            await self._reader.consumer_info()
        except NotFoundError:
            self._reader = None


async def _ignore(error: Exception) -> None:
    """Errors of a connection that is being made again: what is asked of it tells of those."""


def _tls(ca: str | None, certificate: str | None, key: str | None) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=ca)
    if certificate is not None:
        made.load_cert_chain(certificate, key)
    return made
