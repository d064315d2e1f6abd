"""Our implementation of streaming sparse GPs (Bui et al., 2017)."""

import numpy as np

import streamgp as sgp
from streamgp_lab.baselines.streaming_sparse import StreamingSparse

KERNELS = {"rbf": sgp.RBF, "matern32": sgp.Matern32}
LIKELIHOODS = {"real": sgp.Gaussian, "binary": sgp.Bernoulli}


class Contender:
    """`first` inducing points at the first update, and `more` at each later one."""

    def __init__(self, kind="real", kernel="rbf", first=30, more=0.0):
        self.model = StreamingSparse(
            LIKELIHOODS[kind](), KERNELS[kernel](), points=lambda t: first + int(more * (t - 1))
        )

    def learn(self, x, y, channel):
        self.model.update({"y": (x, y)})

    def stream(self, x, y, channel):
        return np.array(self.model.update_many(x, y).log_predictive_rows["y"])

    def predict(self, x, channel):
        prediction = self.model.predict(x)
        return prediction.mean, prediction.variance
