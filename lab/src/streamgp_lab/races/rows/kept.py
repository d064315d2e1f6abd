"""How many rows are kept, and what that loses beside a model that keeps all."""

from collections.abc import Callable

import numpy as np

import streamgp as sgp
from streamgp_lab.races.figures import Figures, nlpd, over_seeds, scaled
from streamgp_lab.races.rows import drift
from streamgp_lab.races.rows.streams import Rows, learned, table

_MOST = 0.01  # nats
_DEFAULT = "default"
_ALL = "all"
_KEPT: dict[str, Callable[[], sgp.ContinualGP]] = {
    "0": lambda: sgp.ContinualGP(sgp.Gaussian(), keep=0),
    "256": lambda: sgp.ContinualGP(sgp.Gaussian(), keep=256),
    _DEFAULT: lambda: sgp.ContinualGP(sgp.Gaussian()),
    _ALL: lambda: sgp.ContinualGP(sgp.Gaussian(), keep=None),
}
_FEWER = tuple(kept for kept in _KEPT if kept != _ALL)
_ROWS = 12_000
STREAMS: dict[str, Callable[[float, int], Rows]] = {
    "powerplant, shuffled": lambda share, seed: table("powerplant", share, seed),
    "compactiv, shuffled": lambda share, seed: table("compactiv", share, seed),
    "protein, shuffled": lambda share, seed: table("protein", share, seed, scaled(_ROWS, share)),
    "powerplant, ordered": lambda share, seed: table("powerplant", share, seed).ordered,
    "drifting": lambda share, seed: drift.stream(scaled(_ROWS, share), seed)[0],
}


def _nats(stream: str, kept: str) -> str:
    return f"kept {kept}, {stream}: nats above all kept"


BARS = tuple(
    bar
    for stream in STREAMS
    for kept in _FEWER
    for bar in over_seeds(_nats(stream, kept), _MOST if kept == _DEFAULT else None)
)


def measure(share: float, seed: int) -> Figures:
    """NLPDs of held-out rows. No numbers where the model keeps no rows over several inputs."""
    found: Figures = {}
    for name, stream in STREAMS.items():
        scores = dict.fromkeys(_KEPT, np.nan)
        if hasattr(sgp.ContinualGP, "compact"):
            rows = stream(share, seed)
            scores = {kept: _score(rows, model()) for kept, model in _KEPT.items()}
        for kept in _FEWER:
            found[_nats(name, kept)] = scores[kept] - scores[_ALL]
    return found


def _score(rows: Rows, model: sgp.ContinualGP) -> float:
    learned(model, rows.x, rows.y)
    return nlpd(model, rows.x_new, rows.y_new)
