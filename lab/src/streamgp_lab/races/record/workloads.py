"""The workloads of the record, in a process of its own.

    python workloads.py

It uses only what most versions of streamgp offer, so that PYTHONPATH may point at any of them. It
prints CPU times by workload as multiples of a fixed piece of NumPy work, as JSON; what a version
cannot do is left out.
"""

import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

from streamgp_lab.races.first_steps import cpu_seconds, fixed_model

_REPEATS = 7
_SAMPLES, _KEYS = 256, 100


def yardstick() -> None:
    """Fixed work of the kind that an update is: small arrays, and LAPACK on small matrices."""
    import numpy as np

    points = np.linspace(0, 20, 64)
    covariance = np.exp(-0.5 * (points[:, None] - points) ** 2) + 0.1 * np.eye(64)
    for _ in range(60):
        factor = np.linalg.cholesky(covariance)
        solved = np.linalg.solve(factor, points)
        for _ in range(40):
            solved = np.tanh(0.5 * solved + 0.1)


def first_update(sgp: Any, np: Any) -> Callable[[], Any]:
    """A new model learns 134 rows and its hyperparameters."""
    x = np.linspace(0, 1, 134)
    return lambda: sgp.ContinualGP(sgp.Gaussian()).update(x, np.sin(9 * x))


def one_sample_at_points(sgp: Any, np: Any) -> Callable[[], Any]:
    """One row, RBF with 64 points, fixed hyperparameters; twenty times."""
    model = fixed_model("Gaussian")
    return _one_by_one(model, np)


def one_sample_in_time(sgp: Any, np: Any) -> Callable[[], Any]:
    """One row, Matérn-3/2 and every other setting as it is by default, fixed; twenty times."""
    x = np.linspace(0, 20, 200)
    kernel = sgp.Matern32(lengthscale=1.0)
    model = sgp.ContinualGP(sgp.Gaussian(noise=0.2), latents=[kernel], learning=None)
    model.update(x, np.sin(x))
    return _one_by_one(model, np)


def samples_at_once(sgp: Any, np: Any) -> Callable[[], Any]:
    """256 rows, one at a time by `update_many`, Matérn-3/2, fixed."""
    model = sgp.ContinualGP(
        sgp.Gaussian(noise=0.2), latents=[sgp.Matern32(lengthscale=1.0)], learning=None
    )
    x = np.linspace(0, 20, 200)
    model.update(x, np.sin(x))
    start = [20.0]

    def learn() -> None:
        more = start[0] + np.arange(1, _SAMPLES + 1) * 0.02
        start[0] = float(more[-1])
        model.update_many(more, np.sin(more))

    return learn


def learning(sgp: Any, np: Any) -> Callable[[], Any]:
    """Five batches of 50 rows of a new model, Matérn-3/2, which learns its hyperparameters."""
    x = np.linspace(0, 20, 250)
    y = np.sin(x) + 0.2 * np.random.default_rng(0).normal(size=250)

    def learn() -> None:
        model = sgp.ContinualGP(sgp.Gaussian(), latents=[sgp.Matern32()])
        for rows in np.array_split(np.arange(250), 5):
            model.update(x[rows], y[rows])

    return learn


def predicting(sgp: Any, np: Any) -> Callable[[], Any]:
    """Mean and interval at 100 inputs, RBF with 64 points."""
    model, x = fixed_model("Gaussian"), np.linspace(0, 20, 100)

    def ask() -> Any:
        prediction = model.predict(x)
        return prediction.mean, prediction.interval(0.95)

    return ask


def saving(sgp: Any, np: Any) -> Callable[[], Any]:
    """A model of 64 points to bytes and back."""
    model = fixed_model("Gaussian")
    return lambda: sgp.from_bytes(model.to_bytes())


def fleet(sgp: Any, np: Any) -> Callable[[], Any]:
    """Five rows for each of 100 keys that are known, fixed hyperparameters."""
    import pandas as pd

    model = sgp.ContinualGP(
        sgp.Gaussian(noise=0.2), latents=[sgp.Matern32(lengthscale=1.0)], learning=None
    )
    keys, begin = sgp.Fleet(model), [0.0]

    def learn() -> None:
        time = np.tile(begin[0] + np.linspace(0.2, 1.0, 5), _KEYS)
        begin[0] += 1.0
        key = np.repeat(np.arange(_KEYS), 5)
        keys.update(pd.DataFrame({"key": key, "time": time, "y": np.sin(time)}), **columns)

    columns = {"key": "key", "inputs": "time"}
    return learn


WORKLOADS: dict[str, Callable[[Any, Any], Callable[[], Any]]] = {
    "first update": first_update,
    "20 single samples, M = 64": one_sample_at_points,
    "20 single samples over time": one_sample_in_time,
    "256 samples by update_many": samples_at_once,
    "five batches with learning": learning,
    "predict 100 rows": predicting,
    "to bytes and back": saving,
    "fleet, 100 keys": fleet,
}
IMPORT = "import"


def measured() -> dict[str, Any]:
    """The version, and the least CPU time of each workload in units of the yardstick."""
    import numpy as np

    imported = cpu_seconds(_streamgp)
    sgp = _streamgp()
    unit = _least(yardstick)
    ratios = {IMPORT: imported / unit}
    for name, prepare in WORKLOADS.items():
        try:
            ratios[name] = _least(prepare(sgp, np)) / min(unit, _least(yardstick))
        except (AttributeError, TypeError, ImportError) as error:
            sys.stderr.write(f"{name}: {error}\n")
    return {"version": sgp.__version__, "ratios": {k: round(v, 3) for k, v in ratios.items()}}


def _one_by_one(model: Any, np: Any) -> Callable[[], Any]:
    latest = [20.0]

    def learn() -> None:
        for _ in range(20):
            latest[0] += 0.01
            model.update(np.array(latest), np.sin(np.array(latest)))

    return learn


def _least(work: Callable[[], Any]) -> float:
    """The least of several CPU times, after one that does not count; no more than ten seconds."""
    work()
    begin = time.process_time()
    times: list[float] = []
    while len(times) < _REPEATS and (not times or time.process_time() - begin < 10):
        times.append(cpu_seconds(work))
    return min(times)


def _streamgp() -> Any:
    import streamgp

    return streamgp


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.stdout.write(json.dumps(measured()))
