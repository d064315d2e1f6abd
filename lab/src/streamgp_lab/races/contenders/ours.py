"""streamgp itself."""

import numpy as np

import streamgp as sgp

KERNELS = {"rbf": sgp.RBF, "matern32": sgp.Matern32}
LIKELIHOODS = {"real": sgp.Gaussian, "binary": sgp.Bernoulli}


class Contender:
    """A `ContinualGP`. With `many`, single samples go through `update_many`.

    `grid` is (low, high, count) of fixed inducing points. If `every` is zero, hyperparameters are
    not learned. With `kept`, they are not learned from single samples.
    """

    def __init__(
        self, kind="real", kernel="rbf", channels=1, latents=1, budget=256, tolerance=1e-2,
        every=100, evaluations=40, grid=None, many=False, kept=False,
    ):  # fmt: skip
        names = [f"channel {index}" for index in range(channels)]
        self.model = sgp.ContinualGP(
            {name: LIKELIHOODS[kind]() for name in names},
            latents=[KERNELS[kernel]()] * latents,
            inducing=sgp.Fixed(np.linspace(*grid)) if grid else sgp.Adaptive(tolerance, budget),
            learning=sgp.VEM(evaluations=evaluations, every=every) if every else None,
        )
        self.names, self.kept = np.array(names), kept
        if many:
            self.stream = self._stream

    def learn(self, x, y, channel):
        self.model.update(
            {self.names[c]: (x[channel == c], y[channel == c]) for c in np.unique(channel)}
        )

    def _stream(self, x, y, channel):
        report = self.model.update_many(x, y, self.names[channel], learn=not self.kept)
        scores = np.zeros(len(y))
        for name, rows in report.log_predictive_rows.items():
            scores[self.names[channel] == name] = rows
        return scores

    def predict(self, x, channel):
        mean, variance = np.zeros(len(x)), np.zeros(len(x))
        for c in np.unique(channel):
            rows = channel == c
            prediction = self.model.predict(x[rows], self.names[c])
            mean[rows], variance[rows] = prediction.mean, prediction.variance
        return mean, variance
