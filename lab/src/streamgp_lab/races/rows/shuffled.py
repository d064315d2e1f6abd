"""Shuffled tables in batches, beside a collapsed sparse GP that has all rows at once."""

import numpy as np

import streamgp as sgp
from streamgp_lab.baselines.collapsed import CollapsedGP
from streamgp_lab.races.figures import Figures, nlpd, over_seeds
from streamgp_lab.races.rows.streams import learned, table
from streamgp_lab.scores import score_of_moments

TABLES = ("airfoil", "concrete", "powerplant", "winequality", "compactiv")
_MEAN, _WORST = 0.01, 0.02  # nats
_POINTS = 256  # of the reference


def _nats(name: str) -> str:
    return f"shuffled {name}: nats above a collapsed GP of all rows"


def _each(name: str) -> str:
    return f"shuffled {name}: an update, CPU s"


def _longest(name: str) -> str:
    return f"shuffled {name}: the longest update, CPU s"


BARS = tuple(
    bar
    for name in TABLES
    for bar in (
        *over_seeds(_nats(name), _MEAN, _WORST),
        over_seeds(_each(name))[0],
        over_seeds(_longest(name))[1],
    )
)


def measure(share: float, seed: int) -> Figures:
    """Held-out NLPD less that of the reference, and CPU seconds, with as many points for both."""
    found: Figures = {}
    for name in TABLES:
        rows = table(name, share, seed)
        points = min(_POINTS, len(rows.y))
        model = sgp.ContinualGP(sgp.Gaussian())
        seconds = learned(model, rows.x, rows.y)
        moments = CollapsedGP(points).fit(rows.x, rows.y).predict(rows.x_new)
        reference = score_of_moments("real", rows.y_new, *moments).nlpd
        found[_nats(name)] = nlpd(model, rows.x_new, rows.y_new) - reference
        found[_each(name)] = float(np.mean(seconds))
        found[_longest(name)] = max(seconds)
    return found
