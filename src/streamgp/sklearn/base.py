"""What the two estimators share: their settings, and how inputs are checked."""

from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from streamgp.adapters import Learning, build
from streamgp.gp import ContinualGP
from streamgp.kernels import Kernel
from streamgp.likelihoods import Likelihood
from streamgp.model.specification import Latents
from streamgp.online.forgetting import Forgetting


class Estimator(BaseEstimator):
    """The settings of both estimators. As scikit-learn asks, the constructor only stores them."""

    model_: ContinualGP

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        latents: Latents | None = None,
        inducing: Any = None,
        tolerance: float | None = None,
        budget: int | None = None,
        learning: Learning = "vem",
        forgetting: float | Forgetting = 1.0,
        random_state: Any = None,
    ):
        self.kernel = kernel
        self.latents = latents
        self.inducing = inducing
        self.tolerance = tolerance
        self.budget = budget
        self.learning = learning
        self.forgetting = forgetting
        self.random_state = random_state

    def _build(self, channels: dict[str, Likelihood]) -> ContinualGP:
        return build(
            channels,
            kernel=self.kernel,
            latents=self.latents,
            inducing=self.inducing,
            tolerance=self.tolerance,
            budget=self.budget,
            learning=self.learning,
            forgetting=self.forgetting,
            seed=int(check_random_state(self.random_state).randint(2**31)),
        )

    def _inputs(self, X: Any) -> Float[np.ndarray, "N P"]:
        check_is_fitted(self, "model_")
        return validate_data(self, X, reset=False, dtype=float)
