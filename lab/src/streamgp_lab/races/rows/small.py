"""Small tables in batches, with default settings, beside an exact GP that has all rows at once."""

import streamgp as sgp
from streamgp_lab.baselines.exact_rbf import ExactRBF
from streamgp_lab.races.figures import Figures, cpu_seconds, nlpd, over_seeds, scaled
from streamgp_lab.races.rows.streams import learned, table
from streamgp_lab.scores import score_of_moments

_MEAN, _WORST, _TIMES = 0.015, 0.025, 3.0  # nats, nats, and CPU beside that of the exact GP
_SIZES = (300, 600, 1000)
TABLES = (
    ("concrete", 1000),
    *((name, size) for name in ("airfoil", "wizmir", "treasury", "winequality") for size in _SIZES),
)


def _nats(name: str, size: int) -> str:
    return f"small {name}, {size} rows: nats above an exact GP"


def _cpu(name: str, size: int) -> str:
    return f"small {name}, {size} rows: CPU, in that of the exact GP"


BARS = tuple(
    bar
    for each in TABLES
    for bar in (*over_seeds(_nats(*each), _MEAN, _WORST), over_seeds(_cpu(*each), _TIMES)[0])
)


def measure(share: float, seed: int) -> Figures:
    """Held-out NLPD less that of the exact GP, and CPU seconds as a multiple of its."""
    found: Figures = {}
    for name, size in TABLES:
        rows = table(name, 1.0, seed, scaled(size, share), distinct=True)
        model, exact = sgp.ContinualGP(sgp.Gaussian()), ExactRBF()
        seconds = sum(learned(model, rows.x, rows.y))
        theirs = cpu_seconds(lambda rows=rows, exact=exact: exact.fit(rows.x, rows.y))
        reference = score_of_moments("real", rows.y_new, *exact.predict(rows.x_new)).nlpd
        found[_nats(name, size)] = nlpd(model, rows.x_new, rows.y_new) - reference
        found[_cpu(name, size)] = seconds / theirs
    return found
