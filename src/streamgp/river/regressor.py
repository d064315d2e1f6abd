"""Regression that learns one sample at a time."""

from typing import Any

import numpy as np
from river import base, proba

from streamgp.adapters import Learning
from streamgp.kernels import Kernel
from streamgp.likelihoods import Gaussian, Likelihood
from streamgp.model.specification import Latents
from streamgp.online.forgetting import Forgetting
from streamgp.river.base import Estimator, Sample
from streamgp.river.stream import Stream


class ContinualGPRegressor(Estimator, base.MiniBatchRegressor):
    """A Gaussian process regressor that learns one sample at a time.

    Args:
        kernel: A kernel of streamgp or tinygp; by default an RBF with one lengthscale per feature.
        likelihood: The likelihood of the target; by default `Gaussian`.
        tolerance: Instead of `inducing`: the part of its prior variance that inducing points may
            leave unexplained at an input. A smaller tolerance makes more inducing points.
        budget: Instead of `inducing`: the largest number of inducing points of any latent function.
        learning: "vem", a `VEM`, or None to leave all hyperparameters where they start.
        forgetting: Below 1, the part of what the past said that is left after each sample; or a
            `Forgetting`.
        seed: The seed of the random start of likelihoods with several latent parameters.
        latents: The number of latent functions, by default one per latent parameter and at most
            three; or, instead of `kernel`, a kernel or a list of kernels as in `ContinualGP`.
        inducing: A placement strategy as in `ContinualGP`. By default there is none: rows are kept.

    Raises:
        ConfigurationError: When the first sample is learned, if the settings contradict each other.

    Examples:
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
        tolerance: float | None = None,
        budget: int | None = None,
        learning: Learning = "vem",
        forgetting: float | Forgetting = 1.0,
        seed: int = 0,
        latents: Latents | None = None,
        inducing: Any = None,
    ):
        super().__init__(kernel, tolerance, budget, learning, forgetting, seed, latents, inducing)
        self.likelihood = likelihood
        self._stream = Stream()

    def predict_one(self, x: Sample, with_dist: bool = False) -> Any:
        """Predict the target of one sample.

        Args:
            x: The features, numbers by name.
            with_dist: Whether to return a distribution instead of a number.

        Returns:
            The expected target, or a `river.proba.Gaussian` with its mean and variance. Before the
            first sample they are 0 and 1.
        """
        model = self._stream.model
        if model is None:
            return proba.Gaussian._from_state(n=1, m=0.0, var=1.0, ddof=0) if with_dist else 0.0
        prediction = model.predict(self._inputs([x], learn=False))
        mean = float(prediction.mean[0])
        if not with_dist:
            return mean
        return proba.Gaussian._from_state(n=1, m=mean, var=float(prediction.variance[0]), ddof=0)

    def predict_many(self, X: Any) -> Any:
        """Predict the targets of the rows of a data frame.

        Args:
            X: The features, one column each.

        Returns:
            A series of expected targets, with the index of the frame.
        """
        import pandas as pd

        means, model = np.zeros(len(X)), self._stream.model
        if model is not None and len(X):
            means = model.predict(self._inputs(X.to_dict(orient="records"), learn=False)).mean
        return pd.Series(means, index=X.index)

    def _learn(self, samples: list[Sample], y: list[float]) -> None:
        x = self._inputs(samples, learn=True)
        if not x.size:  # no feature is known yet
            return
        likelihood = Gaussian() if self.likelihood is None else self.likelihood
        self._stream.learn(lambda: self._build(likelihood), x, np.asarray(y, float))
