"""Traps: streams that begin or go on otherwise than they were, beside the same model offline."""

from typing import NamedTuple

import numpy as np

import streamgp as sgp
from streamgp_lab.races.figures import Bar, Figures, nlpd

_MOST = 0.1  # nats
_SEEDS = 5
_ROWS, _NOISE, _STEP, _HELD_OUT = 400, 0.1, 0.2, 5  # every fifth row is held out


class Trap(NamedTuple):
    """A stream.

    Attributes:
        about: What happens.
        first: Rows of the first batch.
        batch: Rows of the others.
        still: How many rows say nothing but a little noise, at the beginning.
        constant: How many rows are the same number, at the beginning.
        steps: Whether the second half is a hundred times as large.
    """

    about: str
    first: int = 16
    batch: int = 16
    still: int = 0
    constant: int = 0
    steps: bool = False

    @property
    def figure(self) -> str:
        """The name of what is measured."""
        return f"{self.about}: nats above offline, worst of five seeds"


TRAPS = (
    Trap("still for one batch of 10 rows", 10, 10, still=10),
    Trap("still for three batches of 10 rows", 10, 10, still=30),
    Trap("still for one batch of 40 rows", 40, 40, still=40),
    Trap("still for three batches of 40 rows", 40, 40, still=120),
    Trap("the scale steps by 100", steps=True),
    Trap("constants, then not", constant=80),
    Trap("a first batch of 1 row", 1),
    Trap("a first batch of 2 rows", 2),
    Trap("a first batch of 3 rows", 3),
)
BARS = tuple(Bar(trap.figure, _MOST) for trap in TRAPS)


def measure(share: float) -> Figures:
    """How much worse than offline each stream ends, at the worst of some seeds."""
    seeds = range(max(round(_SEEDS * share), 1))
    return {trap.figure: max(worse(trap, seed) for seed in seeds) for trap in TRAPS}


def worse(trap: Trap, seed: int, rows: int = _ROWS) -> float:
    """NLPD of held-out rows after the first third, less that of a model of all rows at once."""
    x, y, held = stream(trap, seed, rows)
    learned, (x_held, y_held) = (x[~held], y[~held]), (x[held], y[held])
    online, offline = sgp.ContinualGP(sgp.Gaussian()), sgp.ContinualGP(sgp.Gaussian())
    cuts = range(trap.first, len(learned[0]), trap.batch)
    for columns in zip(*(np.split(column, cuts) for column in learned), strict=True):
        online.update(*columns)
    offline.update(*learned)
    offline.refine()
    late = x_held > x[len(x) // 3]
    scores = (nlpd(model, x_held[late], y_held[late]) for model in (online, offline))
    return next(scores) - next(scores)


def stream(trap: Trap, seed: int, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, values, and which rows are held out. Rows of a trap are counted without these."""
    rng = np.random.default_rng(seed)
    x = _STEP * np.arange(rows)
    y = np.sin(x) + 0.5 * np.sin(x / 6) + _NOISE * rng.normal(size=rows)
    held = np.zeros(rows, bool)
    held[rng.permutation(rows)[: rows // _HELD_OUT]] = True
    learned = np.cumsum(~held)
    is_still = learned <= trap.still
    y[is_still] = 1e-3 * rng.normal(size=is_still.sum())
    y[learned <= trap.constant] = 3.0
    if trap.steps:
        y[rows // 2 :] *= 100
    return x, y, held
