"""Mean functions: explicit basis functions of a channel, whose weights are learned with the rest.

f(x) = offset + h(x)·β + mixed latent functions, with a normal prior on β. The weights β belong to
the posterior: they are integrated out, never optimised (Rasmussen & Williams, section 2.7).
"""

from streamgp.model.means.base import NONE, Mean, MeanSum, OfScale, Spread, column_of
from streamgp.model.means.choice import Means, all_seasons, as_seasons, check, of_channel
from streamgp.model.means.constant import Constant
from streamgp.model.means.events import Events
from streamgp.model.means.seasonal import Seasonal
from streamgp.model.means.trend import Trend

__all__ = [
    "NONE",
    "Constant",
    "Events",
    "Mean",
    "MeanSum",
    "Means",
    "OfScale",
    "Seasonal",
    "Spread",
    "Trend",
    "all_seasons",
    "as_seasons",
    "check",
    "column_of",
    "of_channel",
]
