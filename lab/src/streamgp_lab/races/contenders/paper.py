"""Our implementation of the algorithm of the paper, exactly as published."""

import streamgp as sgp
from streamgp.model.specification import Specification
from streamgp_lab.baselines.paper import Paper


class Contender:
    """`first` inducing points per input at the first update, and `more` at each later one.

    As in the paper, Gaussian noise is given.
    """

    def __init__(
        self, kind="real", noise=1.0, lengthscale=1.0, first=3, more=3, rounds=4, iterations=100
    ):
        likelihood = sgp.Gaussian(sgp.fixed(noise)) if kind == "real" else sgp.Bernoulli()
        kernel = sgp.RBF(lengthscale=lengthscale)
        self.model = Paper(
            Specification({"y": likelihood}, [kernel]),
            points=lambda t: first + more * (t - 1), rounds=rounds, iterations=iterations,
        )  # fmt: skip

    def learn(self, x, y, channel):
        self.model.update({"y": (x, y)})

    def predict(self, x, channel):
        prediction = self.model.predict(x)
        return prediction.mean, prediction.variance
