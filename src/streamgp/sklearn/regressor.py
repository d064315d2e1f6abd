"""Regression, of one output or several."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from jaxtyping import Float
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_consistent_length, validate_data

from streamgp.adapters import Learning
from streamgp.errors import ConfigurationError, DataError, problem
from streamgp.gp import ContinualGP
from streamgp.kernels import Kernel
from streamgp.likelihoods import Gaussian, HeteroscedasticGaussian, Likelihood, StudentT
from streamgp.online.forgetting import Forgetting
from streamgp.prediction.prediction import Prediction
from streamgp.prediction.predictor import predict_joint
from streamgp.sklearn.base import Estimator

_AROUND_F = (Gaussian, HeteroscedasticGaussian, StudentT)  # E[y | f] is the first parameter


class ContinualGPRegressor(MultiOutputMixin, RegressorMixin, Estimator):
    """A Gaussian process that is fitted at once or by parts, for one output or several.

    Several outputs are the channels of one model and inform each other. An entry of y that is
    NaN is simply not an observation.

    Args:
        kernel: of the latent functions: a kernel of streamgp or tinygp; by default an RBF.
        likelihood: of an output, or a list of one an output; by default `Gaussian`.
        latents: how many latent functions the outputs share; at most three by default.
        tolerance: the share of prior variance that inducing points may leave open.
        budget: the most inducing points of a latent function.
        learning: "vem", a `VEM`, or None to leave hyperparameters where they start.
        forgetting: below 1, what is left of the past after each `partial_fit`.
        random_state: of the random start of several outputs.

    Example:
        >>> import numpy as np
        >>> from streamgp.sklearn import ContinualGPRegressor
        >>> X = np.linspace(0, 6, 60)[:, None]
        >>> model = ContinualGPRegressor().fit(X, np.sin(X[:, 0]))
        >>> mean, std = model.predict([[1.0]], return_std=True)
        >>> bool(abs(mean[0] - np.sin(1.0)) < 1e-3)
        True
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        likelihood: Likelihood | Sequence[Likelihood] | None = None,
        latents: int | None = None,
        tolerance: float = 1e-2,
        budget: int = 256,
        learning: Learning = "vem",
        forgetting: float | Forgetting = 1.0,
        random_state: Any = None,
    ):
        super().__init__(
            kernel,
            latents=latents,
            tolerance=tolerance,
            budget=budget,
            learning=learning,
            forgetting=forgetting,
            random_state=random_state,
        )
        self.likelihood = likelihood

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from these rows alone; y is (N,), or (N, D) with NaN where nothing was seen."""
        X, y = self._checked(X, y, reset=True)
        model = self._build(self._channels(y))
        model.update(_parts(model, X, y))
        self.model_, self._flat = model, y.ndim == 1
        return self

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn from further rows."""
        if not hasattr(self, "model_"):
            return self.fit(X, y)
        X, y = self._checked(X, y, reset=False)
        outputs = 1 if y.ndim == 1 else y.shape[1]
        if outputs != len(self.model_.channels):
            raise DataError(
                problem(
                    f"{len(self.model_.channels)} output(s), as at first",
                    str(outputs),
                    "Fill outputs that were not observed with NaN.",
                )
            )
        self.model_.update(_parts(self.model_, X, y))
        return self

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        return_cov: bool = False,
    ) -> Any:
        """Means of new observations, (N,) or (N, D); with their standard deviations if asked for.

        `return_cov` gives the covariance between the rows instead, (N, N) or (N, N, D). Noise
        is included in both.
        """
        if return_std and return_cov:
            raise ConfigurationError(
                problem("one of return_std and return_cov", "both", "The diagonal has std².")
            )
        x = self._inputs(X)
        predictions = [self.model_.predict(x, name) for name in self.model_.channels]
        mean = self._shaped([p.mean for p in predictions])
        if return_std:
            return mean, self._shaped([p.std for p in predictions])
        if return_cov:
            pairs = enumerate(predictions)
            return mean, self._shaped([_covariance(self.model_, x, d, p) for d, p in pairs])
        return mean

    def score(self, X: Any, y: Any) -> float:
        """R² of the predictions, a mean over outputs; entries that are NaN do not count."""
        predicted, y = self.predict(X), np.asarray(y, float)
        check_consistent_length(X, y)
        columns = zip(y.reshape(len(y), -1).T, predicted.reshape(len(y), -1).T, strict=True)
        seen = [(true[~np.isnan(true)], mean[~np.isnan(true)]) for true, mean in columns]
        return float(np.mean([r2_score(true, mean) for true, mean in seen]))

    def _checked(self, X: Any, y: Any, *, reset: bool) -> tuple[np.ndarray, np.ndarray]:
        of_y = {"dtype": float, "ensure_2d": False, "ensure_all_finite": "allow-nan"}
        X, y = validate_data(self, X, y, reset=reset, validate_separately=({"dtype": float}, of_y))
        check_consistent_length(X, y)
        if y.ndim == 1 and np.isnan(y).any():
            raise DataError(problem("y without NaN", "some", "Leave those rows out."))
        return X, y

    def _channels(self, y: np.ndarray) -> dict[str, Likelihood]:
        outputs = 1 if y.ndim == 1 else y.shape[1]
        given = Gaussian() if self.likelihood is None else self.likelihood
        each = [given] * outputs if isinstance(given, Likelihood) else list(given)
        if len(each) != outputs:
            raise ConfigurationError(
                problem(f"{outputs} likelihood(s)", str(len(each)), "Give one, or one an output.")
            )
        return {f"y{d}": likelihood for d, likelihood in enumerate(each)}

    def _shaped(self, columns: list[np.ndarray]) -> np.ndarray:
        """As y was: one output is a vector, several are columns."""
        return columns[0] if self._flat else np.stack(columns, axis=-1)


def _parts(model: ContinualGP, x: np.ndarray, y: np.ndarray) -> dict[str, tuple]:
    """The rows of each output that were observed."""
    columns = zip(model.channels, y.reshape(len(y), -1).T, strict=True)
    return {name: (x[~np.isnan(column)], column[~np.isnan(column)]) for name, column in columns}


def _covariance(
    model: ContinualGP, x: np.ndarray, channel: int, prediction: Prediction
) -> Float[np.ndarray, "N N"]:
    """Cov(y, y') between rows: that of f, and each row's own variance on the diagonal."""
    if not isinstance(prediction.likelihood, _AROUND_F):
        raise ConfigurationError(
            problem(
                "return_cov with a likelihood whose mean is f (Gaussian, StudentT)",
                type(prediction.likelihood).__name__,
                "Use return_std.",
            )
        )
    assert model.state is not None
    _, covariance = predict_joint(model.learner, model.state, x, np.full(len(x), channel))
    between = np.array(covariance[:, 0, :, 0])
    np.fill_diagonal(between, prediction.variance)
    return between
