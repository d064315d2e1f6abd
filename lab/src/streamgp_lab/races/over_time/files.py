"""Files: bytes for each observation while nothing is joined."""

from collections.abc import Iterator

import numpy as np

import streamgp as sgp
from streamgp_lab.races.figures import Bar, Figures, scaled

_ONE = "file, bytes per observation: one channel"
_TWO = "file, bytes per observation: two interleaved channels"
_THREE = "file, bytes per observation: three families with a season"
BARS = tuple(Bar(figure, 100) for figure in (_ONE, _TWO, _THREE))
_ROWS, _TOGETHER, _PERIOD = 6000, 300, 5.0

Column = tuple[np.ndarray, np.ndarray]


def measure(share: float) -> Figures:
    """Sizes of files, headers included, of streams at irregular times."""
    count = scaled(_ROWS, share)
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 0.1 * count, count))
    f = np.sin(x) + np.cos(2 * np.pi * x / _PERIOD)
    real = f + 0.1 * rng.normal(size=count)
    binary = (f + rng.normal(size=count) > 0).astype(float)
    number = rng.poisson(np.exp(f)).astype(float)
    one = sgp.ContinualGP(sgp.Gaussian())
    two = sgp.ContinualGP({"a": sgp.Gaussian(), "b": sgp.Gaussian()})
    three = sgp.ContinualGP(
        {"real": sgp.Gaussian(), "binary": sgp.Bernoulli(), "number": sgp.Poisson()},
        seasons=[_PERIOD],
    )
    return {
        _ONE: _bytes(one, x, {"y": real}),
        _TWO: _bytes(two, x, {"a": real, "b": real}),
        _THREE: _bytes(three, x, {"real": real, "binary": binary, "number": number}),
    }


def _bytes(model: sgp.ContinualGP, x: np.ndarray, values: dict[str, np.ndarray]) -> float:
    """Of a stream whose observations are those of each channel in turn; the first ones teach."""
    for number, batch in enumerate(_batches(x, values)):
        model.update(batch, learn=number == 0)
    return len(model.to_bytes()) / len(x)


def _batches(x: np.ndarray, values: dict[str, np.ndarray]) -> Iterator[dict[str, Column]]:
    turn = np.arange(len(x)) % len(values)
    for rows in np.array_split(np.arange(len(x)), -(-len(x) // _TOGETHER)):
        own = [rows[turn[rows] == k] for k in range(len(values))]
        columns = zip(values.items(), own, strict=True)
        yield {name: (x[at], y[at]) for (name, y), at in columns if len(at)}
