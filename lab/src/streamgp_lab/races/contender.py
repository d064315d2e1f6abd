"""Contenders: each is a file that runs in a process and an environment of its own."""

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass, field
from multiprocessing.connection import Pipe
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from streamgp.data.batch import Rows
from streamgp_lab.races import worker
from streamgp_lab.races.environments import OWN, python, variables

FOLDER = Path(__file__).parent / "contenders"

Answer = dict[str, np.ndarray]  # results by name, and the seconds `wall` and `cpu`


class ContenderError(Exception):
    """A contender failed. The message is shown in its row of the table."""


@dataclass(frozen=True)
class Contender:
    """A method in a race: its file, the environment that it runs in, and its settings."""

    name: str
    file: str
    environment: str = OWN
    settings: dict[str, Any] = field(default_factory=dict)
    everything: bool = False  # it gets all batches at once
    rehearsed: bool = False  # the second time that it learns the stream counts
    only_first: bool = False  # too slow to learn more than the first problem of a race
    source: Path | None = None  # a checkout of another version of streamgp that it should import

    def start(self, peers: Path) -> "Running":
        return Running(self, peers)


class Running:
    """A contender whose process runs until the `with` block ends."""

    def __init__(self, contender: Contender, peers: Path):
        interpreter = python(contender.environment, peers)
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed at the end)
        self._connection, theirs = Pipe()
        with theirs:
            descriptor = theirs.fileno()
            self._process = subprocess.Popen(
                [
                    interpreter, worker.__file__, str(descriptor),
                    FOLDER / f"{contender.file}.py", json.dumps(contender.settings),
                ],
                pass_fds=[descriptor], stdout=self._log, stderr=self._log,
                env={**os.environ, **variables(contender.source)},
            )  # fmt: skip
        try:
            self.start = self._received()
        except ContenderError:
            self.close()
            raise

    def learn(self, rows: Rows) -> Answer:
        """Learn a batch."""
        return self._ask("learn", x=rows.x, y=rows.y[:, 0], channel=rows.channel)

    def stream(self, rows: Rows) -> Answer:
        """Learn samples one at a time; `log_density` has the score of each before learning it."""
        return self._ask("stream", x=rows.x, y=rows.y[:, 0], channel=rows.channel)

    def predict(self, rows: Rows) -> Answer:
        """`mean` and `variance` of the observations at these inputs."""
        return self._ask("predict", x=rows.x, channel=rows.channel)

    def peak(self) -> float:
        """The largest memory of the process so far, in MB."""
        return float(self._ask("peak")["peak"])

    def restart(self) -> None:
        """Forget all data."""
        self._ask("restart")

    def _ask(self, command: str, **arrays: np.ndarray) -> Answer:
        self._connection.send_bytes(worker.pack({"command": command, **arrays}))
        return self._received()

    def _received(self) -> Answer:
        try:
            answer = worker.unpack(self._connection.recv_bytes())
        except EOFError:
            self._process.wait()
            raise ContenderError(self._last_line()) from None
        if "error" in answer:
            raise ContenderError(str(answer["error"]))
        return answer

    def _last_line(self) -> str:
        self._log.seek(0)
        lines = self._log.read().strip().splitlines()
        return lines[-1] if lines else f"ended with exit status {self._process.returncode}"

    def __enter__(self) -> "Running":
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
