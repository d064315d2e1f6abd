"""The paper's synthetic problems (its Appendix D), and what is measured on them."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

import streamgp as sgp

BATCHES = 10
WEIGHTS = np.array([[-0.5, -0.1], [0.1, 0.6]])  # channel by latent function
NOISES = {"first": 1.0, "second": 2.0}


class Data(NamedTuple):
    """Observations in the order of their inputs; `test` marks those that are never learned."""

    x: np.ndarray
    y: np.ndarray
    test: np.ndarray


class Outcome(NamedTuple):
    """Mean NLPD a test point: of everything, and of the first batch first and at the end."""

    final: float
    oldest_first: float
    oldest_now: float


def first_latent(x: np.ndarray) -> np.ndarray:
    return (
        4.5 * np.cos(2 * np.pi * x + 1.5 * np.pi)
        - 3 * np.sin(4.3 * np.pi * x + 0.3 * np.pi)
        + 5 * np.cos(7 * np.pi * x + 2.4 * np.pi)
    )


def second_latent(x: np.ndarray) -> np.ndarray:
    return (
        4.5 * np.cos(1.5 * np.pi * x + 0.5 * np.pi)
        + 5 * np.sin(3 * np.pi * x + 1.5 * np.pi)
        - 5.5 * np.cos(8 * np.pi * x + 0.25 * np.pi)
    )


def streaming(seed: int, rows: int = 2000) -> Data:
    """Single-output regression, noise 1.5, a third held out."""
    generator = np.random.default_rng(seed)
    x = np.sort(generator.uniform(0, 1, rows))
    y = first_latent(x) + 1.5 * generator.normal(size=rows)
    return Data(x, y, generator.uniform(size=rows) < 0.33)


def asynchronous(seed: int, rows: int = 2000) -> dict[str, Data]:
    """Two channels that mix two latent functions, each with inputs of its own."""
    generator = np.random.default_rng(seed)
    channels = {}
    for (name, noise), weights in zip(NOISES.items(), WEIGHTS, strict=True):
        x = np.sort(generator.uniform(0, 1, rows))
        f = weights @ np.stack([first_latent(x), second_latent(x)])
        y = f + noise * generator.normal(size=rows)
        channels[name] = Data(x, y, generator.uniform(size=rows) < 0.33)
    return channels


def two_channels(seed: int) -> sgp.ContinualGP:
    """Weights, noise and lengthscales all to be learned."""
    return sgp.ContinualGP({name: sgp.Gaussian() for name in NOISES}, latents=2, seed=seed)


def switching_batches(channels: dict[str, Data], parts: int = 5) -> Iterator[dict]:
    """One channel at a time, in turn."""
    for part in range(parts):
        for name, data in channels.items():
            rows = np.array_split(np.arange(len(data.x)), parts)[part]
            rows = rows[~data.test[rows]]
            yield {name: (data.x[rows], data.y[rows])}


def all_at_once(channels: dict[str, Data]) -> dict:
    return {name: (d.x[~d.test], d.y[~d.test]) for name, d in channels.items()}


def nlpd(
    model: sgp.ContinualGP, data: Data, name: str | None = None, rows: np.ndarray | None = None
) -> float:
    """Mean negative log predictive density a test point, of those among `rows`."""
    chosen = np.flatnonzero(data.test) if rows is None else rows[data.test[rows]]
    prediction = model.predict(data.x[chosen], name)
    return -float(np.mean(prediction.log_density(data.y[chosen])))


def stream_through(model: sgp.ContinualGP, data: Data) -> Outcome:
    """Ten batches, one after the other."""
    parts = np.array_split(np.arange(len(data.x)), BATCHES)
    first = np.nan
    for index, part in enumerate(parts):
        rows = part[~data.test[part]]
        model.update(data.x[rows], data.y[rows])
        if index == 0:
            first = nlpd(model, data, rows=part)
    return Outcome(nlpd(model, data), first, nlpd(model, data, rows=parts[0]))


def exact_nlpd(data: Data) -> float:
    """An exact GP with an RBF kernel, trained on everything by maximum likelihood."""
    x, y = data.x[~data.test], data.y[~data.test]
    average, squares = y.mean(), (x[:, None] - x[None, :]) ** 2

    def factorise(point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        lengthscale, variance, noise = np.exp(point)
        k = variance * np.exp(-0.5 * squares / lengthscale**2) + noise * np.eye(len(x))
        chol = np.linalg.cholesky(k)
        return chol, np.linalg.solve(chol, y - average)

    def loss(point: np.ndarray) -> float:
        chol, half = factorise(point)
        return 0.5 * half @ half + np.sum(np.log(np.diag(chol)))

    start = np.log([0.1, np.var(y), 0.1 * np.var(y)])
    best = minimize(loss, start, method="Nelder-Mead", options={"maxfev": 60}).x
    lengthscale, variance, noise = np.exp(best)
    chol, half = factorise(best)
    xs, ys = data.x[data.test], data.y[data.test]
    cross = np.linalg.solve(
        chol, variance * np.exp(-0.5 * (x[:, None] - xs[None, :]) ** 2 / lengthscale**2)
    )
    total = variance + noise - np.sum(cross**2, axis=0)
    residual = ys - average - cross.T @ half
    return 0.5 * float(np.mean(np.log(2 * np.pi * total) + residual**2 / total))
