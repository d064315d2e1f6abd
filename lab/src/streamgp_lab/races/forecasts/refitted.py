"""Methods of statsmodels. They are refitted on all data whenever these have grown by a tenth."""

import abc
import warnings
from typing import Any

import numpy as np
from jaxtyping import Float

from streamgp_lab.races.forecasts.naive import filled
from streamgp_lab.races.forecasts.rolling import Forecast, Forecaster

_GROWTH = 1.1  # of the data between two fits
_LONG = 24  # steps of a season beyond which its states are too many: Fourier terms stand for it
_HARMONICS = 4  # as many as our seasons have


class Refitted(Forecaster):
    """A method that is fitted now and then, and filters with these parameters in between."""

    def __init__(self, season: float | None) -> None:
        self.season = season
        self.y = np.zeros(0)
        self._fitted_at = 0

    @abc.abstractmethod
    def fit(self) -> None:
        """Find parameters for all values so far."""

    @abc.abstractmethod
    def follow(self, y: Float[np.ndarray, " N"]) -> None:
        """Go on by the last values of `self.y` without changing parameters."""

    @abc.abstractmethod
    def ahead(self, steps: int) -> tuple[Float[np.ndarray, " H"], Float[np.ndarray, " H"]]:
        """Means and variances of the next values."""

    def learn(self, y: Float[np.ndarray, " N"]) -> None:
        self.y = np.append(self.y, y)
        with _quiet():
            if len(self.y) >= _GROWTH * self._fitted_at:
                self.fit()
                self._fitted_at = len(self.y)
            else:
                self.follow(y)

    def refit(self) -> None:
        with _quiet():
            self.fit()

    def forecast(self, steps: int) -> Forecast:
        with _quiet():
            mean, variance = self.ahead(steps)
        return Forecast(np.asarray(mean), np.sqrt(np.maximum(variance, 1e-18)))


class ETS(Refitted):
    """Exponential smoothing with a damped trend and, if there is one, an additive season."""

    _fitted: Any = None
    _parameters: Any = None

    def fit(self) -> None:
        self._parameters = self._model().fit(disp=False, maxiter=200).params
        self.follow(self.y[:0])

    def follow(self, y: Float[np.ndarray, " N"]) -> None:
        self._fitted = self._model().smooth(self._parameters)

    def ahead(self, steps: int) -> tuple[Float[np.ndarray, " H"], Float[np.ndarray, " H"]]:
        end = len(self.y)
        found = self._fitted.get_prediction(start=end, end=end + steps - 1)
        return found.predicted_mean, found.forecast_variance

    def _model(self) -> Any:
        import pandas as pd
        from statsmodels.tsa.exponential_smoothing.ets import ETSModel

        season = round(self.season) if self.season else None
        # States of a long season cannot be estimated one by one in a reasonable time.
        start = "heuristic" if season and season >= _LONG else "estimated"
        return ETSModel(
            pd.Series(filled(self.y)), error="add", trend="add", damped_trend=True,
            seasonal="add" if season else None, seasonal_periods=season,
            initialization_method=start,
        )  # fmt: skip


class ARIMA(Refitted):
    """(0,1,1)(0,1,1) with a short season, (1,1,1) and Fourier terms with a long one.

    Without a season it is (p,1,1), with p from 0 to 2 by the criterion of Akaike.
    """

    _fitted: Any = None

    def fit(self) -> None:
        tried = [self._model(order).fit(disp=False, maxiter=100) for order in self._orders()]
        self._fitted = min(tried, key=lambda each: each.aic)

    def follow(self, y: Float[np.ndarray, " N"]) -> None:
        end = len(self.y)
        self._fitted = self._fitted.extend(y, exog=self._waves(np.arange(end - len(y), end)))

    def ahead(self, steps: int) -> tuple[Float[np.ndarray, " H"], Float[np.ndarray, " H"]]:
        waves = self._waves(len(self.y) + np.arange(steps))
        found = self._fitted.get_forecast(steps, exog=waves)
        return found.predicted_mean, found.var_pred_mean

    def _orders(self) -> list[tuple[int, int, int]]:
        if self.season is None:
            return [(p, 1, 1) for p in range(3)]
        return [(1, 1, 1) if self._is_long else (0, 1, 1)]

    @property
    def _is_long(self) -> bool:
        return self.season is not None and self.season >= _LONG

    def _model(self, order: tuple[int, int, int]) -> Any:
        from statsmodels.tsa.statespace.sarimax import SARIMAX

        short = self.season is not None and not self._is_long
        seasonal = (0, 1, 1, round(self.season)) if short and self.season else (0, 0, 0, 0)
        waves = self._waves(np.arange(len(self.y)))
        return SARIMAX(self.y, exog=waves, order=order, seasonal_order=seasonal)

    def _waves(self, t: Float[np.ndarray, " N"]) -> Float[np.ndarray, "N K"] | None:
        if self.season is None or not self._is_long:
            return None
        angles = 2 * np.pi * t[:, None] / self.season * np.arange(1, _HARMONICS + 1)
        return np.concatenate([np.cos(angles), np.sin(angles)], axis=1)


class WindowGP(Forecaster):
    """scikit-learn's Gaussian process of the latest values, refitted on the same schedule.

    Its kernel is a smooth and a rough function, white noise and, with a season, a periodic one.
    """

    _WINDOW = 150

    def __init__(self, season: float | None) -> None:
        self._season = season
        self._y = np.zeros(0)
        self._kernel: Any = None
        self._fitted: Any = None
        self._fitted_at = 0

    def learn(self, y: Float[np.ndarray, " N"]) -> None:
        from sklearn.gaussian_process import GaussianProcessRegressor

        self._y = np.append(self._y, y)
        window = max(self._WINDOW, round(3 * self._season) if self._season else 0)
        t = np.arange(max(len(self._y) - window, 0), len(self._y))
        t = t[np.isfinite(self._y[t])]
        is_due = len(self._y) >= _GROWTH * self._fitted_at
        if self._kernel is None:
            self._kernel = self._start()
        model = GaussianProcessRegressor(
            self._kernel, normalize_y=True, optimizer="fmin_l_bfgs_b" if is_due else None
        )
        with _quiet():
            self._fitted = model.fit(t[:, None], self._y[t])
        if is_due:
            self._kernel, self._fitted_at = self._fitted.kernel_, len(self._y)

    def forecast(self, steps: int) -> Forecast:
        t = len(self._y) + np.arange(steps)
        with _quiet():
            return Forecast(*self._fitted.predict(t[:, None], return_std=True))

    def _start(self) -> Any:
        from sklearn.gaussian_process import kernels

        kernel = 1.0 * kernels.RBF(40.0, (1, 1e4)) + 0.5 * kernels.Matern(3.0, (0.1, 1e3), nu=1.5)
        kernel += kernels.WhiteKernel(0.1, (1e-6, 10))
        if self._season:
            wave = kernels.ExpSineSquared(1.0, self._season, periodicity_bounds="fixed")
            kernel += 1.0 * wave
        return kernel


def _quiet() -> Any:
    """Peers warn of starting values and of fits that did not converge; the scores show it."""
    return warnings.catch_warnings(action="ignore")
