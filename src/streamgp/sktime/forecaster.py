"""Forecasts of one series or several."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sktime.forecasting.base import BaseForecaster

from streamgp.adapters import Learning, Means, build_for, tables
from streamgp.adapters.distributions import distribution
from streamgp.errors import ConfigurationError, DataError, problem
from streamgp.gp import ContinualGP
from streamgp.kernels import RBF, Kernel, Matern32, over_time
from streamgp.model.specification import Latents
from streamgp.online.forgetting import Forgetting
from streamgp.prediction.prediction import Prediction
from streamgp.sktime.inputs import inputs
from streamgp.sktime.seasons import all_seasons


class ContinualGPForecaster(BaseForecaster):
    """A Gaussian process forecaster that goes on learning as the series grows.

    `update` folds in the rows that are new and does not need them again. Several columns are the
    channels of one model, so that each helps to forecast the others. Time is an input, and so is
    every exogenous variable. A value that is NaN was not observed; a row without all its exogenous
    variables is not learned.

    A row is new to a column if it is later than all that the column has learned. Windows may
    therefore overlap. Values that arrive late, for times already passed, are not learned.

    Args:
        kernel: The kernel of every latent function, from streamgp or tinygp; by default
            `kernels.over_time()`, and with exogenous variables a `Matern32`.
        likelihood: The likelihood of every column, or its name; a list of one per column; or a
            dictionary of them by column.
        mean: "level" for a level that is learned, a mean function such as
            `Constant() + Trend()`, a dictionary of them by column, or None.
        seasons: Periods, such as ("1D", "7D"): each is added to the mean of every column. For an
            index of whole numbers, numbers.
        sp: Periods in steps of the index, a number or a list of numbers: with months, 12 is a year.
            A step is what a forecasting horizon of 1 goes forward. If steps are not equally long,
            as months are not, it is their average: a month has 30.4375 days, and five business days
            have seven. None or 1 stands for none.
        latents: The number of latent functions that the columns share, by default one per latent
            parameter and at most three; or, instead of `kernel`, a kernel or a list of kernels as
            in `ContinualGP`.
        inducing: A placement strategy as in `ContinualGP`. By default there is none: rows are kept.
        tolerance: Instead of `inducing`: the part of its prior variance that inducing points may
            leave unexplained at an input. A smaller tolerance makes more inducing points.
        budget: Instead of `inducing`: the largest number of inducing points of any latent function.
        learning: "vem", a `VEM`, or None to leave all hyperparameters where they start.
        forgetting: Below 1, the part of what the past said that is left after each `update`; or a
            `Forgetting`.
        seed: The seed of the random start of models with several columns, and of draws.

    Attributes:
        model_: The `ContinualGP`, once data have been learned. Its channels have the names of the
            columns; columns whose name is not text are y0, y1, ….
        learned_until_: The last time that each channel has learned, by channel.

    Raises:
        ConfigurationError: When data are learned, if the settings contradict each other, or rows
            are too far apart for a season.

    Examples:
        >>> import numpy as np, pandas as pd
        >>> from streamgp.sktime import ContinualGPForecaster
        >>> days = pd.period_range("2025-01-01", periods=70, freq="D")
        >>> y = pd.Series(20 + 3 * np.sin(2 * np.pi * np.arange(70) / 7), days)
        >>> model = ContinualGPForecaster(seasons=("7D",)).fit(y[:56])
        >>> forecast = model.update(y[56:63]).predict(fh=[1, 2, 3, 4, 5, 6, 7])
        >>> bool(np.max(np.abs(forecast - y[63:])) < 0.1)
        True
    """

    _tags: ClassVar[dict[str, Any]] = {
        "authors": ["The streamgp developers"],
        "maintainers": ["The streamgp developers"],
        "python_dependencies": ["skpro"],
        "y_inner_mtype": "pd.DataFrame",
        "X_inner_mtype": "pd.DataFrame",
        "capability:multivariate": True,
        "capability:exogenous": True,
        "capability:categorical_in_X": False,
        "capability:insample": True,
        "capability:pred_int": True,
        "capability:pred_int:insample": True,
        "capability:missing_values": True,
        "capability:non_contiguous_X": True,
        "capability:update": True,
        "requires-fh-in-fit": False,
    }
    # The posterior holds what the rows said, so that the rows need not be kept.
    _config: ClassVar[dict[str, Any]] = {"remember_data": False}

    model_: ContinualGP
    learned_until_: dict[str, Any]

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        likelihood: tables.Likelihoods = "Gaussian",
        mean: Means = "level",
        seasons: Any = (),
        sp: float | Sequence[float] | None = None,
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
        self.seasons = seasons
        self.sp = sp
        self.latents = latents
        self.inducing = inducing
        self.tolerance = tolerance
        self.budget = budget
        self.learning = learning
        self.forgetting = forgetting
        self.seed = seed
        super().__init__()
        self._y = self._X = None  # filled by sktime if the user asks it to remember data

    def _fit(self, y: pd.DataFrame, X: pd.DataFrame | None, fh: Any) -> Self:
        self._exogenous: list[Any] = [] if X is None else list(X.columns)
        self.model_ = self._build(tables.channel_names(y.columns), y.index)
        self.learned_until_ = {}
        self._learn(y, X, learn=True)
        return self

    def _update(
        self, y: pd.DataFrame, X: pd.DataFrame | None = None, update_params: bool = True
    ) -> Self:
        tables.check_columns(y.columns, self.model_.channels, "columns")
        if self._y_metadata["mtype"] == "np.ndarray":
            raise DataError(
                problem(
                    "a series or a frame with an index, in `update`",
                    "an array",
                    "Say when the values were: `pd.Series(values, index)`.",
                )
            )
        self._learn(y, X, learn=update_params)
        return self

    def _learn(self, y: pd.DataFrame, X: pd.DataFrame | None, *, learn: bool) -> None:
        """Fold in the rows that are new to each column."""
        values = y.to_numpy(float, copy=True)
        for d, name in enumerate(self.model_.channels):
            if name in self.learned_until_:
                values[y.index <= self.learned_until_[name], d] = np.nan
        wanted = ~np.isnan(values).all(axis=1)
        if X is not None:
            wanted &= X.reindex(y.index).notna().all(axis=1).to_numpy()
        if not wanted.any():
            return
        new, times = values[wanted], y.index[wanted]
        self.model_.update(
            tables.observed(self.model_.channels, self._inputs(times, X), new), learn=learn
        )
        for name, column in zip(self.model_.channels, new.T, strict=True):
            if not np.isnan(column).all():
                self.learned_until_[name] = times[~np.isnan(column)].max()

    def _predict(self, fh: Any, X: pd.DataFrame | None) -> pd.DataFrame:
        index, predictions = self._predictions(fh, X)
        return pd.DataFrame(tables.means(predictions), index, self._get_varnames())

    def _predict_quantiles(
        self, fh: Any, X: pd.DataFrame | None, alpha: Sequence[float]
    ) -> pd.DataFrame:
        index, predictions = self._predictions(fh, X)
        columns = self._get_columns(method="predict_quantiles", alpha=alpha)
        return pd.DataFrame(tables.quantiles(predictions, alpha), index, columns)

    def _predict_var(
        self, fh: Any = None, X: pd.DataFrame | None = None, cov: bool = False
    ) -> pd.DataFrame:
        if cov:
            raise ConfigurationError(
                problem(
                    "variances of each time by itself",
                    "cov=True",
                    "For draws of whole paths use `model_.predict(…).sample(…, joint=True)`.",
                )
            )
        index, predictions = self._predictions(fh, X)
        return pd.DataFrame(tables.variances(predictions), index, self._get_varnames())

    def _predict_proba(self, fh: Any, X: pd.DataFrame | None, marginal: bool = True) -> Any:
        index, predictions = self._predictions(fh, X)
        return distribution(predictions, index, self._get_varnames(), self.seed)

    def _predictions(self, fh: Any, X: pd.DataFrame | None) -> tuple[pd.Index, list[Prediction]]:
        """The times of a forecasting horizon, and what each channel will show then."""
        index = fh.to_absolute_index(self.cutoff)
        x = self._inputs(index, X)
        return index, [self.model_.predict(x, name) for name in self.model_.channels]

    def _inputs(self, index: pd.Index, X: pd.DataFrame | None) -> pd.DataFrame:
        given = [] if X is None else list(X.columns)
        if set(given) != set(self._exogenous):
            raise DataError(
                problem(
                    f"exogenous variables {self._exogenous}, as in `fit`",
                    str(given),
                    "Give every update and every forecast the same columns of `X`.",
                )
            )
        return inputs(index, X)

    def _build(self, names: Sequence[str], index: pd.Index) -> ContinualGP:
        kernel = Matern32() if self._exogenous else over_time()
        seasons = all_seasons(self.seasons, self.sp, index)
        return build_for(self, names, default_kernel=kernel, seasons=seasons)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Settings for the checks of sktime. They are cheap.

        Args:
            parameter_set: Ignored; sktime passes it.

        Returns:
            Arguments of the constructor, one dictionary per check.
        """
        return [
            {"sp": 4, "learning": None},
            {"kernel": RBF(), "likelihood": "StudentT", "budget": 16, "learning": None},
        ]
