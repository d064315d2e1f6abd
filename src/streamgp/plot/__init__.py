"""Pictures of models, predictions and streams. They need matplotlib (`streamgp[plot]`).

Each function draws on `ax`, or on the current axes, and returns them.
"""

from streamgp.plot.bands import band
from streamgp.plot.coverage import calibration, pit
from streamgp.plot.maps import surface
from streamgp.plot.matrix import retention
from streamgp.plot.panels import channel, channels
from streamgp.plot.traces import history, hyperparameters, inducing, scores

__all__ = [
    "band",
    "calibration",
    "channel",
    "channels",
    "history",
    "hyperparameters",
    "inducing",
    "pit",
    "retention",
    "scores",
    "surface",
]
