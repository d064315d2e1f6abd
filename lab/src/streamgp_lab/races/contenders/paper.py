"""Our implementation of the paper's algorithm, to the letter."""

import streamgp as sgp
from streamgp_lab.baselines.core import Specification
from streamgp_lab.baselines.paper import Paper


class Contender:
    """`first` inducing points (in each input) at the first update, `more` at each that follows.

    As in the paper, Gaussian noise is given.
    """

    def __init__(
        self, kind="real", noise=1.0, lengthscale=1.0, first=3, more=3, rounds=4, iterations=100
    ):
        likelihood = sgp.Gaussian(sgp.fixed(noise)) if kind == "real" else sgp.Bernoulli()
        kernel = sgp.RBF(lengthscale=lengthscale)
        self.model = Paper(
            Specification({"y": likelihood}, [kernel], 0),
            points=lambda t: first + more * (t - 1), rounds=rounds, iterations=iterations,
        )  # fmt: skip

    def learn(self, x, y, channel):
        self.model.update({"y": (x, y)})

    def predict(self, x, channel):
        prediction = self.model.predict(x)
        return prediction.mean, prediction.variance
