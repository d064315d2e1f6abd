"""A NATS server with JetStream in a process of its own, which can be killed and started again."""

import asyncio
import contextlib
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import nats

from streamgp_lab.checks.served import free_port

STREAM = "READINGS"


def program() -> str | None:
    """The path of the server's program; None if it is not installed."""
    return shutil.which("nats-server") or shutil.which("nats-server", path="/usr/sbin")


class NatsServer:
    """A server on a free port, whose stream takes all messages on `readings.>`.

    Args:
        folder: Where it keeps its stream.
    """

    def __init__(self, folder: Path):
        self.port, self.mqtt_port = free_port(), free_port()
        self.address = f"127.0.0.1:{self.port}"
        folder.mkdir()
        config = folder / "server.conf"
        config.write_text(
            f'server_name: test\nlisten: "{self.address}"\njetstream {{ store_dir: "{folder}" }}\n'
            f'mqtt {{ listen: "127.0.0.1:{self.mqtt_port}" }}\n'
        )
        self._words = [f"{program()}", "-c", f"{config}"]

    def start(self) -> None:
        """Start it, and wait until it listens."""
        self._process = subprocess.Popen(
            self._words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until = time.monotonic() + 20
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            assert time.monotonic() < until
            time.sleep(0.02)

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait(20)

    def __enter__(self) -> "NatsServer":
        self.start()
        self.make()
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()

    def make(self) -> None:
        """Make the stream."""
        self._do(lambda streams: streams.add_stream(name=STREAM, subjects=["readings.>"]))

    def delete(self) -> None:
        """Delete the stream."""
        self._do(lambda streams: streams.delete_stream(STREAM))

    def send(self, rows: Iterable[Any], subject: str = "readings.all") -> None:
        """Publish rows, or messages as they are. They are in the stream afterwards."""

        async def work(streams: Any) -> None:
            for row in rows:
                text = row if isinstance(row, bytes) else json.dumps(row).encode()
                await streams.publish(subject, text)

        self._do(work)

    def forget_readers(self) -> None:
        """Have the server forget all who read."""

        async def work(streams: Any) -> None:
            for reader in await streams.consumers_info(STREAM):
                await streams.delete_consumer(STREAM, reader.name)

        self._do(work)

    def _do(self, work: Callable[[Any], Awaitable[Any]]) -> None:
        async def run() -> None:
            connection = await nats.connect(f"nats://{self.address}")
            await work(connection.jetstream())
            await connection.close()

        asyncio.run(run())
