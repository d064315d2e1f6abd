"""Where inducing points go: one file per strategy."""

from streamgp.inducing.adaptive import Adaptive
from streamgp.inducing.fixed import Fixed
from streamgp.inducing.growing import Growing
from streamgp.inducing.kmeans import KMeans
from streamgp.inducing.refined import Refined
from streamgp.inducing.strategy import AbstractStrategy, View, as_given, as_strategy, place

__all__ = [
    "AbstractStrategy",
    "Adaptive",
    "Fixed",
    "Growing",
    "KMeans",
    "Refined",
    "View",
    "as_given",
    "as_strategy",
    "place",
]
