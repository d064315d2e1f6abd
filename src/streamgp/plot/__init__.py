"""Pictures of models, predictions and streams. They need `pip install 'streamgp[plot]'`.

A function that makes one picture draws on `ax`, or on the current axes, and returns these axes.
`channels` and `history` make several pictures and return an array of axes.
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
