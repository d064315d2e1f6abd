"""Regression with one output or several."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from jaxtyping import Float
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_consistent_length, validate_data

from streamgp.adapters import Learning
from streamgp.adapters.tables import observed
from streamgp.errors import ConfigurationError, DataError, problem
from streamgp.gp import ContinualGP
from streamgp.kernels import Kernel
from streamgp.likelihoods import Gaussian, HeteroscedasticGaussian, Likelihood, StudentT
from streamgp.model.specification import Latents
from streamgp.online.forgetting import Forgetting
from streamgp.prediction.prediction import Prediction
from streamgp.sklearn.base import Estimator

_AROUND_F = (Gaussian, HeteroscedasticGaussian, StudentT)  # E[y | f] is the first parameter


class ContinualGPRegressor(MultiOutputMixin, RegressorMixin, Estimator):
    """A Gaussian process regressor that learns all rows at once or part by part.

    Several outputs are the channels of one model, so that each output helps to predict the others.
    Where y has several columns, an entry that is NaN was not observed.

    Args:
        kernel: The kernel of every latent function, from streamgp or tinygp; by default an RBF.
        likelihood: The likelihood of every output, or a list of one per output; by default
            `Gaussian`.
        latents: The number of latent functions that the outputs share, by default one per latent
            parameter and at most three; or, instead of `kernel`, a kernel or a list of kernels as
            in `ContinualGP`.
        inducing: A placement strategy as in `ContinualGP`. By default there is none: rows are kept.
        tolerance: Instead of `inducing`: the part of its prior variance that inducing points may
            leave unexplained at an input. A smaller tolerance makes more inducing points.
        budget: Instead of `inducing`: the largest number of inducing points of any latent function.
        learning: "vem", a `VEM`, or None to leave all hyperparameters where they start.
        forgetting: Below 1, the part of what the past said that is left after each `partial_fit`;
            or a `Forgetting`.
        random_state: The seed of the random start of models with several outputs.

    Attributes:
        model_: The `ContinualGP`, once data have been learned. Its channels are y0, y1, ….

    Raises:
        ConfigurationError: When data are learned, if the settings contradict each other.

    Examples:
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
        latents: Latents | None = None,
        inducing: Any = None,
        tolerance: float | None = None,
        budget: int | None = None,
        learning: Learning = "vem",
        forgetting: float | Forgetting = 1.0,
        random_state: Any = None,
    ):
        super().__init__(
            kernel,
            latents=latents,
            inducing=inducing,
            tolerance=tolerance,
            budget=budget,
            learning=learning,
            forgetting=forgetting,
            random_state=random_state,
        )
        self.likelihood = likelihood

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from these rows alone.

        Args:
            X: Inputs, of shape (N, P).
            y: Observations, of shape (N,), or (N, D) with NaN where nothing was observed.

        Returns:
            The estimator itself.

        Raises:
            DataError: If y has one column and holds NaN.
            ConfigurationError: If the settings contradict each other.
        """
        X, y = self._checked(X, y, reset=True)
        model = self._build(self._channels(y))
        model.update(observed(model.channels, X, y.reshape(len(y), -1)))
        self.model_, self._flat = model, y.ndim == 1
        return self

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn from further rows.

        Args:
            X: Inputs, of shape (N, P).
            y: Observations, with as many columns as in the first call.

        Returns:
            The estimator itself.

        Raises:
            DataError: If the number of outputs is not that of the first call.
        """
        if not hasattr(self, "model_"):
            return self.fit(X, y)
        X, y = self._checked(X, y, reset=False)
        outputs = 1 if y.ndim == 1 else y.shape[1]
        if outputs != len(self.model_.channels):
            raise DataError(
                problem(
                    f"{len(self.model_.channels)} output(s), as in the first call",
                    str(outputs),
                    "Fill outputs that were not observed with NaN.",
                )
            )
        self.model_.update(observed(self.model_.channels, X, y.reshape(len(y), -1)))
        return self

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        return_cov: bool = False,
    ) -> Any:
        """Predict new observations.

        Args:
            X: Inputs, of shape (N, P).
            return_std: Whether to return standard deviations too. They include the noise.
            return_cov: Whether to return the covariance between rows too. It includes the noise.

        Returns:
            The means, of shape (N,) or (N, D). With `return_std` a pair of means and standard
            deviations of the same shape. With `return_cov` a pair of means and covariances of shape
            (N, N) or (N, N, D).

        Raises:
            ConfigurationError: If both were asked for, or `return_cov` of a likelihood whose mean
                is not the latent function itself.
        """
        if return_std and return_cov:
            raise ConfigurationError(
                problem(
                    "one of return_std and return_cov",
                    "both",
                    "The diagonal of the covariance has the squared standard deviations.",
                )
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
        """Compute R² of the predictions, as a mean over the outputs.

        Args:
            X: Inputs, of shape (N, P).
            y: Observations, of shape (N,) or (N, D). Entries that are NaN do not count.

        Returns:
            The mean of R².
        """
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
            raise DataError(problem("y without NaN", "NaN", "Leave those rows out."))
        return X, y

    def _channels(self, y: np.ndarray) -> dict[str, Likelihood]:
        outputs = 1 if y.ndim == 1 else y.shape[1]
        given = Gaussian() if self.likelihood is None else self.likelihood
        each = [given] * outputs if isinstance(given, Likelihood) else list(given)
        if len(each) != outputs:
            raise ConfigurationError(
                problem(
                    f"{outputs} likelihood(s)",
                    str(len(each)),
                    "Give one, or a list of one per output.",
                )
            )
        return {f"y{d}": likelihood for d, likelihood in enumerate(each)}

    def _shaped(self, columns: list[np.ndarray]) -> np.ndarray:
        """Give the result the shape of y: a vector, or one column per output."""
        return columns[0] if self._flat else np.stack(columns, axis=-1)


def _covariance(
    model: ContinualGP, x: np.ndarray, channel: int, prediction: Prediction
) -> Float[np.ndarray, "N N"]:
    """The covariance of y between rows: that of f, with the variance of y on the diagonal."""
    if not isinstance(prediction.likelihood, _AROUND_F):
        raise ConfigurationError(
            problem(
                "return_cov with a likelihood whose mean is f (Gaussian, StudentT)",
                type(prediction.likelihood).__name__,
                "Use return_std.",
            )
        )
    assert model.state is not None
    _, covariance = model.learner.predict_joint(model.state, x, [channel])
    each = prediction.likelihood.latents
    between = covariance[::each, ::each].copy()
    np.fill_diagonal(between, prediction.variance)
    return between
