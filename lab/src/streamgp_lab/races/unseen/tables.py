"""Tables of regression in fifty batches, beside a collapsed sparse GP that has all rows at once."""

from collections.abc import Callable

import numpy as np

import streamgp as sgp
from streamgp_lab.baselines.collapsed import CollapsedGP
from streamgp_lab.datasets import files
from streamgp_lab.races.unseen.marks import Marks, marks

TABLES: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
    "airfoil": files.airfoil,
    "concrete": files.concrete,
    "wizmir": files.wizmir,
    "treasury": files.treasury,
    "grid": files.grid_stability,
}
POINTS, _BATCHES, _TEST_SHARE = 256, 50, 0.1  # the first: of the collapsed GP
STREAM, AT_ONCE = "streamgp, fifty batches", "streamgp, on everything at once"
COLLAPSED, LINEAR = "collapsed sparse GP (ours), on everything at once", "linear regression"


def run(name: str, *, drift: bool, share: float, seed: int) -> dict[str, Marks]:
    """One split of a table: a tenth is held out. With `drift`, rows come sorted."""
    x, y = TABLES[name]()
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(y))[: max(int(len(y) * share), 100)]
    x, y = standardised(x[order]), standardised(y[order])
    if drift:
        order = np.argsort(x @ np.linalg.svd(x, full_matrices=False)[2][0])
        x, y = x[order], y[order]
    test = generator.uniform(size=len(y)) < _TEST_SHARE
    old, new = (x[~test], y[~test]), x[test]
    methods = {STREAM: _stream, AT_ONCE: _at_once, COLLAPSED: _collapsed, LINEAR: _linear}
    return {name: marks(y[test], *method(*old, new)) for name, method in methods.items()}


def _stream(x: np.ndarray, y: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return _learned(np.array_split(np.arange(len(y)), _BATCHES), x, y, new)


def _at_once(x: np.ndarray, y: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return _learned([np.arange(len(y))], x, y, new)


def _learned(
    batches: list[np.ndarray], x: np.ndarray, y: np.ndarray, new: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Every setting as it is by default."""
    model = sgp.ContinualGP(sgp.Gaussian())
    for rows in batches:
        model.update(x[rows], y[rows])
    prediction = model.predict(new)
    return prediction.mean, prediction.variance


def _collapsed(x: np.ndarray, y: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return CollapsedGP(POINTS).fit(x, y).predict(new)


def _linear(x: np.ndarray, y: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    design, asked = (np.column_stack([np.ones(len(rows)), rows]) for rows in (x, new))
    weights = np.linalg.lstsq(design, y, rcond=None)[0]
    return asked @ weights, np.full(len(new), np.mean((y - design @ weights) ** 2))


def standardised(values: np.ndarray) -> np.ndarray:
    spread = values.std(axis=0)
    return (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
