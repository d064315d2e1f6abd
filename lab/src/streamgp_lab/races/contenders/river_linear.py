"""river: Bayesian linear regression over time, as the simplest method."""

import numpy as np
from river.linear_model import BayesianLinearRegression


class Contender:
    def __init__(self):
        self.model = BayesianLinearRegression()

    def learn(self, x, y, channel):
        for at, value in zip(x[:, 0], y, strict=True):
            self.model.learn_one({"t": at, "one": 1.0}, value)

    def predict(self, x, channel):
        found = [self.model.predict_one({"t": at, "one": 1.0}, with_dist=True) for at in x[:, 0]]
        return np.array([f.mu for f in found]), np.array([f.sigma**2 for f in found])
