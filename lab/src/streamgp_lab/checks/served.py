"""A service in a process of its own, which can be killed and started again quickly."""

import multiprocessing
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

import httpx

from streamgp.service import Token

# A process that has the service imported makes the others, so that each begins at once.
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["streamgp_lab.checks.served", "streamgp.service", "pandas"])


def _serve(
    path: str, port: int, cache: int, sources: tuple[str, ...], tokens: tuple[Token, ...]
) -> None:
    import logging
    import warnings

    from streamgp.service import Listening, Settings, server

    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    settings = Settings(path, tokens, open=not tokens, cache=cache, sources=sources)
    server(settings, Listening(port=port)).run()


class Served:
    """A service on a free port of this machine.

    Args:
        path: Of its store.
        cache: How many models it keeps in memory.
        sources: Feeds that its models follow.
        tokens: Who may use it; without any, everybody may.
    """

    def __init__(
        self,
        path: Path,
        cache: int = 64,
        sources: tuple[str, ...] = (),
        tokens: tuple[Token, ...] = (),
    ):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._given = (str(path), self.port, cache, sources, tokens)
        self.process: Any = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self.process = _processes.Process(target=_serve, args=self._given, daemon=True)
        self.process.start()
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                httpx.get(f"{self.url}/healthz", timeout=5)
            except httpx.TransportError:
                time.sleep(0.01)
            else:
                return
        sys.exit("The service does not answer.")

    def kill(self) -> None:
        """End it at once, without a chance to finish anything."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.join(30)

    def stop(self) -> None:
        """End it as an operator would."""
        self.process.terminate()
        self.process.join(30)

    def __enter__(self) -> "Served":
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


def free_port() -> int:
    """A port that nobody uses."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
