"""What the topics share: tables in two parts, functions that are drawn, and streams of batches."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamgp_lab.datasets import files
from streamgp_lab.races.figures import cpu_seconds, scaled
from streamgp_lab.races.unseen.tables import standardised

BATCHES = 25
TABLES: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
    "powerplant": files.powerplant,
    "airfoil": files.airfoil,
    "yacht": files.yacht,
    "concrete": files.concrete,
    "wizmir": files.wizmir,
    "protein": files.protein,
    "winequality": files.winequality,
    "treasury": files.treasury,
    "compactiv": files.compactiv,
}
_HELD_OUT, _MOST_HELD_OUT = 0.1, 1000
_WAVES = 400  # of which a function that is drawn consists


class Rows(NamedTuple):
    """Rows in their order, and held-out ones."""

    x: np.ndarray
    y: np.ndarray
    x_new: np.ndarray
    y_new: np.ndarray

    @property
    def ordered(self) -> "Rows":
        """The same by the input that is most correlated with the values."""
        main = int(np.argmax(np.abs(standardised(self.x).T @ standardised(self.y))))
        order = np.argsort(self.x[:, main], kind="stable")
        return self._replace(x=self.x[order], y=self.y[order])


def table(
    name: str, share: float, seed: int, most: int | None = None, *, distinct: bool = False
) -> Rows:
    """A shuffled table, standardised, of which a tenth is held out.

    Args:
        name: Of the table.
        share: Of its rows.
        seed: Of their order.
        most: How many rows are not held out, if there are so many.
        distinct: Whether rows with the same inputs as another are left out. In tables with copies
            of rows, an exact GP finds that there is no noise.
    """
    x, y = TABLES[name]()
    if distinct:
        first = np.unique(x, axis=0, return_index=True)[1]
        x, y = x[first], y[first]
    order = np.random.default_rng(seed).permutation(len(y))[: scaled(len(y), share)]
    x, y = standardised(x[order]), standardised(y[order])
    end = round((1 - _HELD_OUT) * len(y))
    if most is not None:
        end = min(end, most)
    new = slice(end, end + _MOST_HELD_OUT)
    return Rows(x[:end], y[:end], x[new], y[new])


class Waves:
    """A function drawn from a squared exponential kernel of variance one."""

    def __init__(self, rng: np.random.Generator, inputs: int, lengthscale: float):
        self._rates = rng.normal(size=(inputs, _WAVES)) / lengthscale
        self._phases = rng.uniform(0, 2 * np.pi, _WAVES)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return np.sqrt(2 / _WAVES) * np.cos(x @ self._rates + self._phases).sum(axis=1)


def learned(model: Any, *columns: np.ndarray, batches: int = BATCHES) -> list[float]:
    """CPU seconds of the update with each batch. Columns are inputs and values."""
    parts = [np.array_split(column, min(batches, len(column))) for column in columns]
    return [cpu_seconds(lambda b=batch: model.update(*b)) for batch in zip(*parts, strict=True)]


def learned_by_channel(
    model: Any, x: np.ndarray, values: dict[str, np.ndarray], batches: int = BATCHES
) -> list[float]:
    """The same of channels with inputs in common; values that are not numbers are left out."""
    seconds = []
    for rows in np.array_split(np.arange(len(x)), min(batches, len(x))):
        batch = {name: seen(x[rows], y[rows]) for name, y in values.items()}
        batch = {name: columns for name, columns in batch.items() if len(columns[1])}
        seconds.append(cpu_seconds(lambda b=batch: model.update(b)))
    return seconds


def seen(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and values where there is a value."""
    there = np.isfinite(y)
    return x[there], y[there]


def rmse(f: Sequence[np.ndarray], said: Sequence[np.ndarray]) -> float:
    """The error of several functions together, as a part of their deviation."""
    errors = np.concatenate([a - b for a, b in zip(f, said, strict=True)])
    return float(np.sqrt(np.mean(errors**2)) / np.std(np.concatenate(list(f))))
