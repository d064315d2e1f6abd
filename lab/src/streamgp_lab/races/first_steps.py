"""One task in a process of its own, and the CPU seconds that it took.

    python first_steps.py TASK

It uses only what every version of streamgp offers, so that PYTHONPATH may point at any of them. It
prints the figures by name, as JSON.
"""

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

Figures = dict[str, float]

_POINTS, _REPEATS, _STEPS = 64, 11, 40


def importing() -> Figures:
    """Import streamgp, with all that it needs."""
    return {"import streamgp": cpu_seconds(_streamgp)}


def one_channel() -> Figures:
    """The first update, with a Gaussian channel of 134 rows."""
    sgp, np = _streamgp(), _numpy()
    x = np.linspace(0, 1, 134)
    model = sgp.ContinualGP(sgp.Gaussian())
    seconds = cpu_seconds(lambda: model.update(x, np.sin(9 * x)))
    return {"first update, one Gaussian channel": seconds}


def three_families() -> Figures:
    """The first update, with a Gaussian, a Bernoulli and a Poisson channel of 60 rows each."""
    sgp, np = _streamgp(), _numpy()
    generator = np.random.default_rng(0)
    x = np.linspace(0, 6, 60)
    f = np.sin(x)
    model = sgp.ContinualGP(
        {"real": sgp.Gaussian(), "binary": sgp.Bernoulli(), "count": sgp.Poisson()}
    )
    values = {
        "real": f + 0.2 * generator.normal(size=60),
        "binary": (f + generator.normal(size=60) > 0).astype(float),
        "count": generator.poisson(np.exp(1 + f)).astype(float),
    }
    batch = {name: (x, y) for name, y in values.items()}
    return {"first update, three families": cpu_seconds(lambda: model.update(batch))}


def many_inputs() -> Figures:
    """A new classifier of 30 inputs that learns 8 batches of 70 rows."""
    sgp, np = _streamgp(), _numpy()
    generator = np.random.default_rng(0)
    x = generator.normal(size=(560, 30))
    y = (x[:, 0] + x[:, 1] * x[:, 2] + 0.5 * generator.normal(size=560) > 0).astype(float)

    def learn() -> None:
        model = sgp.ContinualGP(sgp.Bernoulli())
        for part in np.array_split(np.arange(560), 8):
            model.update(x[part], y[part])

    return {"8 batches of a classifier with 30 inputs": cpu_seconds(learn)}


def growing() -> Figures:
    """Forty batches of 100 rows, each from new ground: the largest update, and those around it."""
    sgp, np = _streamgp(), _numpy()
    generator = np.random.default_rng(0)
    model = sgp.ContinualGP(sgp.Gaussian(), latents=[sgp.RBF(lengthscale=1.0)])
    seconds = []
    for step in range(_STEPS):
        x = np.linspace(2 * step, 2 * step + 2, 100)
        y = np.sin(2 * x) + 0.2 * generator.normal(size=100)
        seconds.append(cpu_seconds(lambda x=x, y=y: model.update(x, y)))
    largest = 1 + int(np.argmax(seconds[1:]))
    begin = min(max(largest - 5, 1), _STEPS - 11)
    around = [s for i, s in enumerate(seconds[begin : begin + 11], begin) if i != largest]
    return {
        "growing stream, largest update": seconds[largest],
        "growing stream, median of the ten around it": float(np.median(around)),
    }


def warm_updates() -> Figures:
    """Updates of one row and of 100 rows, with 64 points and without learning."""
    _, np = _streamgp(), _numpy()
    generator = np.random.default_rng(0)
    found = {}
    for count in (1, 100):
        model = fixed_model("Gaussian")

        def learn(model: Any = model, count: int = count) -> None:
            x = generator.uniform(0, 20, count)
            model.update(x, np.sin(x))

        name = "one row" if count == 1 else f"{count} rows"
        found[f"update of {name}, M = {_POINTS}, no learning"] = _typical(learn)
    return found


def predictions() -> Figures:
    """The mean and the 95% interval at 100 inputs, with 64 points."""
    np = _numpy()
    x, found = np.linspace(0, 20, 100), {}
    for family in ("Gaussian", "Poisson"):
        model = fixed_model(family)
        called = f"predict 100 rows, {family}"
        found[f"{called}, mean"] = _typical(lambda model=model: model.predict(x).mean)
        found[f"{called}, 95% interval"] = _typical(
            lambda model=model: model.predict(x).interval(0.95)
        )
    return found


TASKS: dict[str, Callable[[], Figures]] = {
    task.__name__: task
    for task in (
        importing, one_channel, three_families, many_inputs, growing, warm_updates, predictions,
    )
}  # fmt: skip


def _streamgp() -> Any:
    import streamgp

    return streamgp


def _numpy() -> Any:
    import numpy

    return numpy


def fixed_model(family: str) -> Any:
    """A model with 64 points and fixed hyperparameters that has learned 200 rows."""
    sgp, np = _streamgp(), _numpy()
    generator = np.random.default_rng(1)
    x = generator.uniform(0, 20, 200)
    y = np.sin(x) + 0.2 * generator.normal(size=200)
    model = sgp.ContinualGP(
        getattr(sgp, family)(), latents=[sgp.RBF(lengthscale=1.0)], learning=None,
        inducing=sgp.Fixed(np.linspace(0, 20, _POINTS)),
    )  # fmt: skip
    model.update(x, y if family == "Gaussian" else generator.poisson(np.exp(y)).astype(float))
    return model


def cpu_seconds(work: Callable[[], Any]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def _typical(work: Callable[[], Any]) -> float:
    """The median of several times, after two that do not count."""
    return sorted(_times(work))[_REPEATS // 2]


def _times(work: Callable[[], Any]) -> Iterator[float]:
    work()
    work()
    for _ in range(_REPEATS):
        yield cpu_seconds(work)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.stdout.write(json.dumps(TASKS[sys.argv[1]]()))
