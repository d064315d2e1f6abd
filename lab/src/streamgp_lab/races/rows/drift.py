"""A region of two inputs that drifts: what is known at the end of its oldest and newest part."""

from typing import Any

import numpy as np

import streamgp as sgp
from streamgp_lab.races.figures import Figures, over_seeds, scaled
from streamgp_lab.races.rows.streams import Rows, Waves, learned

_OLD, _NEW = "drifting: NLPD of the oldest fifth", "drifting: NLPD of the newest fifth"
_WORSE = "drifting: nats that the oldest fifth is above the newest"
_CPU = "drifting: an update, CPU s"
BARS = (
    *over_seeds(_OLD),
    *over_seeds(_NEW),
    *over_seeds(_WORSE, 0.01),
    over_seeds(_CPU)[0],
)
NOISE = 0.3
_ROWS, _BATCHES, _ASKED = 20_000, 100, 2000
_FAR, _LENGTHSCALE = 10.0, 1.5  # how far the region moves, whose spread is 1 in each input


def measure(share: float, seed: int) -> Figures:
    """Scores are expected over the noise, as f is known."""
    rows, f = stream(scaled(_ROWS, share), seed)
    model = sgp.ContinualGP(sgp.Gaussian())
    seconds = learned(model, rows.x, rows.y, batches=_BATCHES)
    old, new = (expected_nlpd(model, x, f(x)) for x in (rows.x_new[:_ASKED], rows.x_new[-_ASKED:]))
    return {_OLD: old, _NEW: new, _WORSE: old - new, _CPU: float(np.mean(seconds))}


def stream(count: int, seed: int) -> tuple[Rows, Waves]:
    """Rows as the region drifts, fresh ones in the order of the region, and the function."""
    rng = np.random.default_rng(seed)
    f = Waves(rng, 2, _LENGTHSCALE)
    x, x_new = _region(rng, count), _region(rng, 5 * _ASKED)
    y, y_new = (f(at) + NOISE * rng.normal(size=len(at)) for at in (x, x_new))
    return Rows(x, y, x_new, y_new), f


def expected_nlpd(model: Any, x: np.ndarray, f: np.ndarray) -> float:
    """Of observations with the true noise."""
    said = model.predict(x)
    missed = (f - said.mean) ** 2 + NOISE**2
    return float(np.mean(0.5 * np.log(2 * np.pi * said.variance) + 0.5 * missed / said.variance))


def _region(rng: np.random.Generator, count: int) -> np.ndarray:
    centre = np.column_stack([np.linspace(0, _FAR, count), np.zeros(count)])
    return centre + rng.normal(size=(count, 2))
