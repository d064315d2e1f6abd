"""A contender at work, in a process and an environment of its own.

    python worker.py DESCRIPTOR CONTENDER.py '{"setting": 1}'

It answers commands, which come through an open file descriptor, with their results and what they
took. Nothing but NumPy is imported here: a peer's environment has no streamgp.
"""

import importlib.util
import io
import json
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np


def pack(values: dict[str, Any]) -> bytes:
    """Arrays by name as bytes that any version of NumPy can read."""
    buffer = io.BytesIO()
    np.savez(buffer, **values)
    return buffer.getvalue()


def unpack(data: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(data)) as arrays:
        return {name: arrays[name] for name in arrays.files}


def learn(contender: Any, x: np.ndarray, y: np.ndarray, channel: np.ndarray) -> dict[str, Any]:
    """A batch that came together."""
    return _timed(lambda: contender.learn(x, y, channel))[1]


def predict(contender: Any, x: np.ndarray, channel: np.ndarray) -> dict[str, Any]:
    """Mean and variance of what will be observed; of a class, its probability."""
    (mean, variance), took = _timed(lambda: contender.predict(x, channel))
    return {"mean": mean, "variance": variance, **took}


def stream(contender: Any, x: np.ndarray, y: np.ndarray, channel: np.ndarray) -> dict[str, Any]:
    """Samples one at a time, each scored before it is learned.

    A contender that takes a whole stream says so by a method of that name, which returns the
    scores; of the others the updates alone are timed.
    """
    if hasattr(contender, "stream"):
        scores, took = _timed(lambda: contender.stream(x, y, channel))
        each = {name: np.full(len(y), seconds / len(y)) for name, seconds in took.items()}
        return {"log_density": scores, **each}
    scores, rows = [], []
    for begin in range(len(y)):
        row = slice(begin, begin + 1)
        mean, variance = contender.predict(x[row], channel[row])
        scores.append(_gaussian_log_density(y[row], mean, variance))
        _, took = _timed(lambda row=row: contender.learn(x[row], y[row], channel[row]))
        rows.append(took)
    took = {name: np.array([each[name] for each in rows]) for name in ("wall", "cpu")}
    return {"log_density": np.concatenate(scores), **took}


def peak(contender: Any) -> dict[str, Any]:
    """The most memory that this process has held, in MB.

    Not `getrusage`'s: that begins with what the parent held when it started this process.
    """
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmHWM"))
    return {"peak": float(line.split()[1]) / 1024}


_COMMANDS: dict[str, Callable[..., dict[str, Any]]] = {
    "learn": learn, "predict": predict, "stream": stream, "peak": peak
}  # fmt: skip


def _timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def _gaussian_log_density(y: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    return -0.5 * (np.log(2 * np.pi * variance) + (y - mean) ** 2 / variance)


def _make(file: str, settings: dict[str, Any]) -> Any:
    spec = importlib.util.spec_from_file_location("contender", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Contender(**settings)


def _answer(contender: Any, request: dict[str, np.ndarray]) -> dict[str, Any]:
    """What a command gives; what goes wrong in a contender is for the table to say."""
    command = str(request.pop("command"))
    try:
        return _COMMANDS[command](contender, **request)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}".splitlines()[0]}


def main(descriptor: str, file: str, settings: str) -> None:
    """Make the contender, then answer until the other side is gone."""
    with Connection(int(descriptor)) as connection:
        contender, took = _timed(lambda: _make(file, json.loads(settings)))
        connection.send_bytes(pack(took))
        while True:
            try:
                request = unpack(connection.recv_bytes())
            except EOFError:
                return
            connection.send_bytes(pack(_answer(contender, request)))


if __name__ == "__main__":
    main(*sys.argv[1:])
