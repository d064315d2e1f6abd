"""The process of a contender.

    python worker.py DESCRIPTOR CONTENDER.py '{"setting": 1}'

It receives commands through an open file descriptor and answers with results and times. It imports
nothing but NumPy, because the environments of other libraries do not contain streamgp.
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

_PIECE = 250  # samples of a stream that are passed and timed together


def pack(values: dict[str, Any]) -> bytes:
    """Arrays by name as bytes that any version of NumPy can read."""
    buffer = io.BytesIO()
    np.savez(buffer, **values)
    return buffer.getvalue()


def unpack(data: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(data)) as arrays:
        return {name: arrays[name] for name in arrays.files}


def learn(contender: Any, x: np.ndarray, y: np.ndarray, channel: np.ndarray) -> dict[str, Any]:
    """Learn a batch."""
    return _timed(lambda: contender.learn(x, y, channel))[1]


def predict(contender: Any, x: np.ndarray, channel: np.ndarray) -> dict[str, Any]:
    """Mean and variance of the observations; for classes, the probability of class 1."""
    (mean, variance), took = _timed(lambda: contender.predict(x, channel))
    return {"mean": mean, "variance": variance, **took}


def stream(contender: Any, x: np.ndarray, y: np.ndarray, channel: np.ndarray) -> dict[str, Any]:
    """Learn samples one at a time. Each is scored before it is learned.

    If the contender has a method `stream`, it gets the samples in pieces and returns their scores.
    Otherwise it gets single samples, and only the time of its updates counts.
    """
    whole = hasattr(contender, "stream")
    scores, wall, cpu = [], [], []
    for part in np.array_split(np.arange(len(y)), -(-len(y) // (_PIECE if whole else 1))):
        if whole:
            rows = (x[part], y[part], channel[part])
            found, took = _timed(lambda rows=rows: contender.stream(*rows))
        else:
            mean, variance = contender.predict(x[part], channel[part])
            found = _gaussian_log_density(y[part], mean, variance)
            _, took = _timed(lambda part=part: contender.learn(x[part], y[part], channel[part]))
        scores.append(found)
        wall.append(np.full(len(part), took["wall"] / len(part)))
        cpu.append(np.full(len(part), took["cpu"] / len(part)))
    names = {"log_density": scores, "wall": wall, "cpu": cpu}
    return {name: np.concatenate(pieces) for name, pieces in names.items()}


def peak(contender: Any) -> dict[str, Any]:
    """The largest memory of this process so far, in MB.

    `getrusage` would include the memory of the parent when it started this process.
    """
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmHWM"))
    return {"peak": float(line.split()[1]) / 1024}


def restart(contender: Any) -> dict[str, Any]:
    """Forget all data."""
    contender.__init__(**contender.settings)
    return {}


_COMMANDS: dict[str, Callable[..., dict[str, Any]]] = {
    "learn": learn, "predict": predict, "stream": stream, "peak": peak, "restart": restart
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
    made = module.Contender(**settings)
    made.settings = settings
    return made


def _answer(contender: Any, request: dict[str, np.ndarray]) -> dict[str, Any]:
    """The answer to a command. An error of the contender is part of the answer."""
    command = str(request.pop("command"))
    try:
        return _COMMANDS[command](contender, **request)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}".splitlines()[0]}


def main(descriptor: str, file: str, settings: str) -> None:
    """Make the contender, then answer commands until the connection is closed."""
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
