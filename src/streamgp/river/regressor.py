"""Regression, one sample at a time."""

from typing import Any

import numpy as np
from river import base, proba

from streamgp.adapters import Learning
from streamgp.kernels import Kernel
from streamgp.likelihoods import Gaussian, Likelihood
from streamgp.online.forgetting import Forgetting
from streamgp.river.base import Estimator, Sample
from streamgp.river.stream import Stream


class ContinualGPRegressor(Estimator, base.MiniBatchRegressor):
    """Gaussian process regression, one sample at a time.

    Args:
        kernel: a kernel of streamgp or tinygp; by default an RBF with a lengthscale a feature.
        likelihood: of the target; by default `Gaussian`.
        tolerance: the share of prior variance that inducing points may leave open.
        budget: the most inducing points.
        learning: "vem", a `VEM`, or None to leave hyperparameters where they start.
        forgetting: below 1, what is left of the past after each sample.
        seed: of the random start, where the likelihood has several latent parameters.

    Example:
        >>> import math
        >>> from streamgp.river import ContinualGPRegressor
        >>> model = ContinualGPRegressor()
        >>> for i in range(13):
        ...     model.learn_one({"t": i / 2}, math.sin(i / 2))
        >>> abs(model.predict_one({"t": 1.25}) - math.sin(1.25)) < 0.05
        True
        >>> model.predict_one({"t": 1.25}, with_dist=True).sigma < 0.2
        True
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        likelihood: Likelihood | None = None,
        tolerance: float = 1e-2,
        budget: int = 64,
        learning: Learning = "vem",
        forgetting: float | Forgetting = 1.0,
        seed: int = 0,
    ):
        super().__init__(kernel, tolerance, budget, learning, forgetting, seed)
        self.likelihood = likelihood
        self._stream = Stream()

    def predict_one(self, x: Sample, with_dist: bool = False) -> Any:
        """The expected target, or with `with_dist` a normal of its mean and variance."""
        model = self._stream.model
        if model is None:
            return proba.Gaussian._from_state(n=1, m=0.0, var=1.0, ddof=0) if with_dist else 0.0
        prediction = model.predict(self._inputs([x], learn=False))
        mean = float(prediction.mean[0])
        if not with_dist:
            return mean
        return proba.Gaussian._from_state(n=1, m=mean, var=float(prediction.variance[0]), ddof=0)

    def predict_many(self, X: Any) -> Any:
        """A series of expected targets."""
        import pandas as pd

        means, model = np.zeros(len(X)), self._stream.model
        if model is not None and len(X):
            means = model.predict(self._inputs(X.to_dict(orient="records"), learn=False)).mean
        return pd.Series(means, index=X.index)

    def _learn(self, samples: list[Sample], y: list[float]) -> None:
        x = self._inputs(samples, learn=True)
        if not x.size:  # nothing to go by yet
            return
        likelihood = Gaussian() if self.likelihood is None else self.likelihood
        self._stream.learn(lambda: self._build(likelihood), x, np.asarray(y, float))
