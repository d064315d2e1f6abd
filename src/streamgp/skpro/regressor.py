"""Regression with one output or several, whose predictions are distributions."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from skpro.distributions.base import BaseDistribution
from skpro.regression.base import BaseProbaRegressor

from streamgp.adapters import Learning, Means, build_for, tables
from streamgp.adapters.distributions import distribution
from streamgp.gp import ContinualGP
from streamgp.kernels import RBF, Kernel, Linear
from streamgp.model.specification import Latents
from streamgp.online.forgetting import Forgetting
from streamgp.prediction.prediction import Prediction


class ContinualGPRegressor(BaseProbaRegressor):
    """A Gaussian process regressor that predicts distributions and goes on learning.

    `update` folds in further rows and lets go of them. Several outputs are the channels of one
    model, so that each output helps to predict the others. An entry of y that is NaN was not
    observed.

    Args:
        kernel: The kernel of every latent function, from streamgp or tinygp; by default an RBF.
        likelihood: The likelihood of every output, or its name; a list of one per output; or a
            dictionary of them by output.
        mean: "level" for a level that is learned, a mean function such as `Constant() + Trend()`,
            a dictionary of them by output, or None.
        latents: The number of latent functions that the outputs share, by default one per latent
            parameter and at most three; or, instead of `kernel`, a kernel or a list of kernels as
            in `ContinualGP`.
        inducing: A placement strategy as in `ContinualGP`. By default there is none: rows are kept.
        tolerance: Instead of `inducing`: the part of its prior variance that inducing points may
            leave unexplained at an input. A smaller tolerance makes more inducing points.
        budget: Instead of `inducing`: the largest number of inducing points of any latent function.
        learning: "vem", a `VEM`, or None to leave all hyperparameters where they start.
        forgetting: Below 1, the part of what the past said that is left after each `update`; or a
            `Forgetting`.
        seed: The seed of the random start of models with several outputs, and of draws.

    Attributes:
        model_: The `ContinualGP`, once data have been learned. Its channels have the names of the
            outputs; outputs whose name is not text are y0, y1, ….

    Raises:
        ConfigurationError: When data are learned, if the settings contradict each other.

    Examples:
        >>> import numpy as np, pandas as pd
        >>> from streamgp.skpro import ContinualGPRegressor
        >>> X = pd.DataFrame({"x": np.linspace(0, 6, 60)})
        >>> y = pd.DataFrame({"height": np.sin(X["x"])})
        >>> model = ContinualGPRegressor().fit(X[:40], y[:40]).update(X[40:], y[40:])
        >>> predicted = model.predict_proba(pd.DataFrame({"x": [1.0]}))
        >>> type(predicted).__name__, bool(abs(predicted.mean().iat[0, 0] - np.sin(1.0)) < 1e-2)
        ('Normal', True)
    """

    _tags: ClassVar[dict[str, Any]] = {
        "authors": ["The streamgp developers"],
        "maintainers": ["The streamgp developers"],
        "capability:multioutput": True,
        "capability:missing": False,  # of the inputs; an output may be missing
        "capability:update": True,
        "X_inner_mtype": "pd_DataFrame_Table",
        "y_inner_mtype": "pd_DataFrame_Table",
    }

    model_: ContinualGP

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        likelihood: tables.Likelihoods = "Gaussian",
        mean: Means = "level",
        latents: Latents | None = None,
        inducing: Any = None,
        tolerance: float | None = None,
        budget: int | None = None,
        learning: Learning = "vem",
        forgetting: float | Forgetting = 1.0,
        seed: int = 0,
    ):
        self.kernel = kernel
        self.likelihood = likelihood
        self.mean = mean
        self.latents = latents
        self.inducing = inducing
        self.tolerance = tolerance
        self.budget = budget
        self.learning = learning
        self.forgetting = forgetting
        self.seed = seed
        super().__init__()

    def _fit(self, X: pd.DataFrame, y: pd.DataFrame, C: Any = None) -> Self:
        names = tables.channel_names(y.columns)
        self.model_ = build_for(self, names, default_kernel=RBF())
        return self._learn(X, y)

    def _update(self, X: pd.DataFrame, y: pd.DataFrame, C: Any = None) -> Self:
        tables.check_columns(y.columns, self.model_.channels, "outputs")
        return self._learn(X, y)

    def _learn(self, X: pd.DataFrame, y: pd.DataFrame) -> Self:
        values = y.to_numpy(float)
        if not np.isnan(values).all():
            self.model_.update(tables.observed(self.model_.channels, _inputs(X), values))
        return self

    def _predict(self, X: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame(tables.means(self._predictions(X)), X.index, self._get_varnames())

    def _predict_quantiles(self, X: pd.DataFrame, alpha: Sequence[float]) -> pd.DataFrame:
        columns = self._get_columns(method="predict_quantiles", alpha=alpha)
        return pd.DataFrame(tables.quantiles(self._predictions(X), alpha), X.index, columns)

    def _predict_var(self, X: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame(tables.variances(self._predictions(X)), X.index, self._get_varnames())

    def _predict_proba(self, X: pd.DataFrame) -> BaseDistribution:
        columns = pd.Index(self._get_varnames())
        return distribution(self._predictions(X), X.index, columns, self.seed)

    def _predictions(self, X: pd.DataFrame) -> list[Prediction]:
        x = _inputs(X)
        return [self.model_.predict(x, name) for name in self.model_.channels]

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Settings for the checks of skpro. They are cheap.

        Args:
            parameter_set: Ignored; skpro passes it.

        Returns:
            Arguments of the constructor, one dictionary per check.
        """
        return [
            {"budget": 16, "learning": None},
            {"kernel": Linear(), "likelihood": "StudentT", "budget": 16, "learning": None},
        ]


def _inputs(X: pd.DataFrame) -> pd.DataFrame:
    """Inputs with names that kernels and means of some columns can use."""
    return X.set_axis([str(name) for name in X.columns], axis="columns")
