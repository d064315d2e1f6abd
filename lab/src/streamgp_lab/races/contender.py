"""The other end of a worker: a contender that is told what to do, and what it took."""

import json
import subprocess
import tempfile
from dataclasses import dataclass, field
from multiprocessing.connection import Pipe
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from streamgp_lab.races import worker
from streamgp_lab.races.environments import OURS, python

_HERE = Path(__file__).parent


class ContenderError(Exception):
    """A contender broke down; the table says how."""


@dataclass(frozen=True)
class Entry:
    """A contender in a comparison: its file, the environment it runs in, its settings."""

    name: str
    file: str
    environment: str = OURS
    settings: dict[str, Any] = field(default_factory=dict)
    everything: bool = False  # it is given all batches at once
    rehearsed: bool = False  # it compiles: timed the second time that it learns the batches

    def start(self, peers: Path) -> "Contender":
        return Contender(self, peers)


class Contender:
    """A running contender. Leave the `with` block to end it."""

    def __init__(self, entry: Entry, peers: Path):
        interpreter = python(entry.environment, peers)
        file = _HERE / "contenders" / f"{entry.file}.py"
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed at the end)
        self._connection, theirs = Pipe()
        with theirs:
            there = theirs.fileno()
            settings = json.dumps(entry.settings)
            self._process = subprocess.Popen(
                [interpreter, worker.__file__, str(there), file, settings],
                pass_fds=[there], stdout=self._log, stderr=self._log,
            )  # fmt: skip
        try:
            self.start = self._received()
        except ContenderError:
            self.close()
            raise

    def _received(self) -> dict[str, Any]:
        try:
            answer = worker.unpack(self._connection.recv_bytes())
        except EOFError:
            self._process.wait()
            raise ContenderError(self._last_words()) from None
        if "error" in answer:
            raise ContenderError(str(answer["error"]))
        return answer

    def _last_words(self) -> str:
        self._log.seek(0)
        lines = self._log.read().strip().splitlines()
        return lines[-1] if lines else f"ended with {self._process.returncode}"

    def ask(self, command: str, **arrays: np.ndarray) -> dict[str, np.ndarray]:
        """The answer to a command: its results by name, and `wall` and `cpu` seconds."""
        self._connection.send_bytes(worker.pack({"command": command, **arrays}))
        return self._received()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()
        self._process.kill()
        self._process.wait()
        self._log.close()
