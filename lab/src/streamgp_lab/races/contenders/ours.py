"""streamgp itself."""

import numpy as np

import streamgp as sgp

KERNELS = {"rbf": sgp.RBF, "matern32": sgp.Matern32, "time": sgp.kernels.over_time}
LIKELIHOODS = {"real": sgp.Gaussian, "binary": sgp.Bernoulli}


def given(**options):
    return {name: value for name, value in options.items() if value is not None}


class Contender:
    """A `ContinualGP`. With `many`, single samples go through `update_many`.

    What is None is as in the library. `keep` is the number of rows that are kept. `grid` is (low,
    high, count) of fixed inducing points; there are none without it. If `every` is zero,
    hyperparameters are not learned. With `kept`, they are not learned from single samples.
    """

    def __init__(
        self, kind="real", kernel="rbf", channels=1, latents=1, keep=None, every=None,
        evaluations=None, rounds=None, grid=None, many=False, kept=False,
    ):  # fmt: skip
        names = [f"channel {index}" for index in range(channels)]
        learning = given(rounds=rounds, evaluations=evaluations, every=every)
        self.model = sgp.ContinualGP(
            {name: LIKELIHOODS[kind]() for name in names},
            latents=[KERNELS[kernel]()] * latents,
            inducing=sgp.Fixed(np.linspace(*grid)) if grid else None,
            learning=None if every == 0 else sgp.VEM(**learning),
            **given(keep=keep),
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
