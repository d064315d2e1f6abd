"""Load on loopback: how fast the service answers, beside a route that does nothing.

One process serves and this one asks, over connections that stay open. Latencies are those of one
client that waits for each answer; requests per second are those of four clients at a time.

At the end many readers ask for the largest prediction that is permitted, all at once, and the check
fails if the service does not say meanwhile, within a second, that it is alive and ready.
"""

import http.client
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import streamgp as sgp
from streamgp.client import Client
from streamgp.service import Limits
from streamgp_lab.checks import command
from streamgp_lab.checks.served import Served

_CLIENTS = 4
_MODELS = 100
_JSON = {"Content-Type": "application/json"}
_PATIENCE = 1.0  # seconds in which a service under load says that it is alive and ready
_PAUSE = 0.05  # seconds between two such questions
_PIECE = 2**20  # bytes of an answer that are read at a time, and thrown away

# From the number of a request to its method, path and body.
Request = Callable[[int], tuple[str, str, Any]]


class Measured(NamedTuple):
    """Latencies in milliseconds of one client, and requests per second of several."""

    p50: float
    p99: float
    rate: float


def ask(connection: http.client.HTTPConnection, method: str, path: str, body: Any) -> None:
    connection.request(method, path, None if body is None else json.dumps(body), _JSON)
    answer = connection.getresponse()
    text = answer.read()
    assert answer.status == 200, text


def latencies(port: int, request: Request, seconds: float, first: int = 0) -> np.ndarray:
    """The times of requests that one client sends one after the other, in milliseconds."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    found: list[float] = []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        begin = time.perf_counter()
        ask(connection, *request(first + len(found)))
        found.append(1e3 * (time.perf_counter() - begin))
    connection.close()
    return np.array(found)


def rate(port: int, request: Request, seconds: float, first: int) -> float:
    """Requests per second of several clients."""
    counts = [0] * _CLIENTS

    def work(index: int) -> None:
        own = first + 10**6 * (index + 1)
        counts[index] = len(latencies(port, request, seconds, own))

    threads = [threading.Thread(target=work, args=(index,)) for index in range(_CLIENTS)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - begin)


def measured(port: int, request: Request, seconds: float) -> Measured:
    latencies(port, request, 0.2 * seconds)  # warm up
    alone = latencies(port, request, seconds, 10**5)
    p50, p99 = np.percentile(alone, [50, 99])
    return Measured(p50, p99, rate(port, request, seconds, 10**6))


# -- what is asked ---------------------------------------------------------------------------------


def model(points: int = 64) -> sgp.ContinualGP:
    """A model with so many inducing points, which stays as large as it is."""
    z = np.linspace(0, 100, points)
    made = sgp.ContinualGP(sgp.Gaussian(), inducing=sgp.Fixed(z), learning=None)
    x = np.linspace(0, 100, 500)
    made.update(x, np.sin(x))
    return made


def nothing(number: int) -> tuple[str, str, Any]:
    return "GET", "/healthz", None


def prediction(number: int) -> tuple[str, str, Any]:
    return "POST", "/v1/models/one/predict", {"inputs": np.linspace(0, 100, 100).tolist()}


def observation(number: int, name: str = "one") -> tuple[str, str, Any]:
    x = float(number % 9973) / 99.73
    return "POST", f"/v1/models/{name}/observations", [{"x": x, "y": float(np.sin(x))}]


def to_many(number: int) -> tuple[str, str, Any]:
    return observation(number, f"many-{number % _MODELS}")


def long_update(port: int, done: threading.Event) -> None:
    """A batch that takes a while, into a model of its own."""
    x = np.linspace(0, 500, 20_000)
    rows = [{"x": a, "y": b} for a, b in zip(x.tolist(), np.sin(x).tolist(), strict=True)]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    ask(connection, "POST", "/v1/models/slow/observations", rows)
    done.set()


def memory(served: Served) -> float:
    """Resident memory of the service in megabytes."""
    status = Path(f"/proc/{served.process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


# -- the check -------------------------------------------------------------------------------------


def prepare(served: Served) -> None:
    with Client(served.url) as client:
        client.upload("one", model())
        for index in range(_MODELS):
            client.upload(f"many-{index}", model())
        client.create(
            "slow", {"y": "Gaussian"}, data={"inputs": "x"},
            model={"latents": 1},
        )  # fmt: skip


def during_a_long_update(served: Served, seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """Latencies of predictions when nothing else happens, and while a long update runs."""
    idle = latencies(served.port, prediction, seconds)
    done = threading.Event()
    writer = threading.Thread(target=long_update, args=(served.port, done))
    writer.start()
    time.sleep(0.5)
    parts: list[np.ndarray] = []
    while not done.is_set() and len(parts) < 60:
        parts.append(latencies(served.port, prediction, 0.5))
    writer.join()
    return idle, np.concatenate(parts)


def largest() -> bytes:
    """The largest prediction of one channel: as many inputs and quantiles as there may be."""
    limits = Limits()
    columns = limits.answer // limits.predictions
    quantiles = columns - 5  # the input, mean, std, lower and upper
    asked = {
        "inputs": np.linspace(0, 100, limits.predictions).tolist(),
        "quantiles": np.linspace(0.05, 0.95, quantiles).tolist(),
    }
    return json.dumps(asked).encode()


def read_once(port: int, body: bytes) -> tuple[int, int]:
    """Ask for a prediction, and throw it away: its status and its size."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    connection.request("POST", "/v1/models/one/predict", body, _JSON)
    answer, size = connection.getresponse(), 0
    while piece := answer.read(_PIECE):
        size += len(piece)
    connection.close()
    return answer.status, size


def during_large_predictions(port: int, readers: int) -> dict[str, np.ndarray]:
    """Latencies of health and readiness, and of a short prediction, while readers ask for much."""
    body, answers = largest(), [(0, 0)] * readers

    def read(index: int) -> None:
        answers[index] = read_once(port, body)

    threads = [threading.Thread(target=read, args=(index,)) for index in range(readers)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    asked = {"/healthz": nothing(0), "/readyz": ("GET", "/readyz", None), "predict": prediction(0)}
    found: dict[str, list[float]] = {name: [] for name in asked}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    while any(thread.is_alive() for thread in threads):
        for name, request in asked.items():
            one = time.perf_counter()
            ask(connection, *request)
            found[name].append(1e3 * (time.perf_counter() - one))
        time.sleep(_PAUSE)
    connection.close()
    statuses = [status for status, _ in answers]
    print(
        f"\n{readers} readers at once, of {max(size for _, size in answers) / 1e6:.0f} MB each: "
        f"{statuses.count(200)} answered, {statuses.count(503)} told to come back, "
        f"in {time.perf_counter() - begin:.0f} s."
    )
    return {name: np.array(values) for name, values in found.items()}


def soaked(served: Served, seconds: float) -> None:
    """Observations and predictions without a pause, and the memory that they take."""
    print("\n| minutes | requests | resident memory, MB |\n|---|---|---|")
    begin, count = time.perf_counter(), 0
    while (passed := time.perf_counter() - begin) < seconds:
        span = min(seconds / 10, seconds - passed)
        count += len(latencies(served.port, to_many, span / 2, count))
        count += len(latencies(served.port, prediction, span / 2))
        print(f"| {(time.perf_counter() - begin) / 60:.1f} | {count} | {memory(served):.0f} |")


def main(seconds: float = 5.0, soak: float = 0.0, readers: int = 44) -> None:
    with tempfile.TemporaryDirectory() as folder, Served(Path(folder) / "load.db", 128) as served:
        prepare(served)
        print("| | p50, ms | p99, ms | requests per second |\n|---|---|---|---|")
        for label, request in (
            ("a route that does nothing", nothing),
            ("100 predictions at M = 64", prediction),
            ("one observation into one model", observation),
            (f"one observation into one of {_MODELS} models", to_many),
        ):
            found = measured(served.port, request, seconds)
            print(f"| {label} | {found.p50:.2f} | {found.p99:.2f} | {found.rate:.0f} |")
        idle, busy = during_a_long_update(served, seconds)
        for label, values in (("nothing else", idle), ("an update of 20,000 rows", busy)):
            p50, p99 = np.percentile(values, [50, 99])
            print(f"| 100 predictions during {label} | {p50:.2f} | {p99:.2f} | |")
        print(f"\nResident memory: {memory(served):.0f} MB.")
        loaded = during_large_predictions(served.port, readers)
        print("\n| meanwhile | p50, ms | p99, ms | worst, ms |\n|---|---|---|---|")
        for label, values in loaded.items():
            p50, p99, worst = np.percentile(values, [50, 99, 100])
            print(f"| {label} | {p50:.0f} | {p99:.0f} | {worst:.0f} |")
        print(f"\nResident memory after it: {memory(served):.0f} MB.")
        if soak:
            soaked(served, soak)
    late = [name for name in ("/healthz", "/readyz") if loaded[name].max() > 1e3 * _PATIENCE]
    if late:
        sys.exit(f"{' and '.join(late)} took longer than {_PATIENCE:g} s under load.")


if __name__ == "__main__":
    command("service_load")
