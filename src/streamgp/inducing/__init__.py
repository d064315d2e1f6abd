"""Where inducing points go: one file a strategy."""

from streamgp.inducing.adaptive import Adaptive
from streamgp.inducing.base import Strategy, View, place
from streamgp.inducing.fixed import Fixed
from streamgp.inducing.growing import Growing
from streamgp.inducing.kmeans import KMeans
from streamgp.inducing.refined import Refined

__all__ = ["Adaptive", "Fixed", "Growing", "KMeans", "Refined", "Strategy", "View", "place"]
