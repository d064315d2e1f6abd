"""Pictures of models, predictions and streams. They need `pip install 'streamgp[plot]'`.

A function that makes one picture draws on `ax`, or on the axes of a new figure, and returns these
axes. `channels`, `forecasts`, `components` and `history` make several and return an array of axes.
"""

from streamgp.plot.bands import band
from streamgp.plot.coverage import calibration, pit
from streamgp.plot.drawn import Drawn
from streamgp.plot.fans import forecast, forecasts
from streamgp.plot.maps import surface
from streamgp.plot.matrix import retention
from streamgp.plot.panels import channel, channels
from streamgp.plot.summands import components
from streamgp.plot.traces import history, hyperparameters, inducing, scores

__all__ = [
    "Drawn",
    "band",
    "calibration",
    "channel",
    "channels",
    "components",
    "forecast",
    "forecasts",
    "history",
    "hyperparameters",
    "inducing",
    "pit",
    "retention",
    "scores",
    "surface",
]
