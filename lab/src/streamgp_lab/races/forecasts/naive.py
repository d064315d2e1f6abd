"""Methods without a model of what is uncertain: the last value, the last season, SNARIMAX."""

import abc
from collections import deque

import numpy as np
from jaxtyping import Float

from streamgp_lab.races.forecasts.rolling import Forecast, Forecaster

_FEW = 5  # errors at a horizon, below which its spread follows from that of one step


class Tracked(Forecaster):
    """A method that gives means. Standard deviations are the past errors of the same horizon.

    The first values are learned one by one from half of them on, so that there are errors.
    """

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._squares, self._counts = np.zeros(steps), np.zeros(steps)
        self._open: deque[Float[np.ndarray, " H"]] = deque(maxlen=steps)  # forecasts, latest first

    @abc.abstractmethod
    def take(self, y: Float[np.ndarray, " N"]) -> None:
        """Learn the next values."""

    @abc.abstractmethod
    def means(self, steps: int) -> Float[np.ndarray, " H"]:
        """The expected next values."""

    def learn(self, y: Float[np.ndarray, " N"]) -> None:
        if len(y) == 1:
            self._score(y[0])
            self.take(y)
            return
        half = len(y) // 2
        self.take(y[:half])
        for value in y[half:]:
            self._open.appendleft(self.means(self._steps))
            self._score(value)
            self.take(np.array([value]))

    def forecast(self, steps: int) -> Forecast:
        mean = self.means(steps)
        self._open.appendleft(mean)
        return Forecast(mean, self._spreads()[:steps])

    def _score(self, value: float) -> None:
        if np.isfinite(value):
            for k, forecast in enumerate(self._open):
                self._squares[k] += (value - forecast[k]) ** 2
                self._counts[k] += 1

    def _spreads(self) -> Float[np.ndarray, " H"]:
        """Of horizons with few errors, those of a random walk."""
        own = np.sqrt(self._squares / np.maximum(self._counts, 1))
        walk = own[0] * np.sqrt(np.arange(1, self._steps + 1))
        return np.maximum(np.where(self._counts >= _FEW, own, walk), 1e-9)


class LastValue(Tracked):
    """The last value, for ever."""

    def __init__(self, steps: int) -> None:
        super().__init__(steps)
        self._last = np.nan

    def take(self, y: Float[np.ndarray, " N"]) -> None:
        seen = y[np.isfinite(y)]
        self._last = seen[-1] if len(seen) else self._last

    def means(self, steps: int) -> Float[np.ndarray, " H"]:
        return np.full(steps, self._last)


class SeasonalNaive(Tracked):
    """The value a season before, plus how much seasons have risen on average so far."""

    def __init__(self, steps: int, season: float | None) -> None:
        super().__init__(steps)
        self._season = round(season) if season else 1
        self._y = np.zeros(0)

    def take(self, y: Float[np.ndarray, " N"]) -> None:
        self._y = filled(np.append(self._y, y))

    def means(self, steps: int) -> Float[np.ndarray, " H"]:
        y, season = self._y, self._season
        rise = np.mean(y[season:] - y[:-season]) if len(y) > season else 0.0
        ahead = np.arange(steps)
        return y[-season:][ahead % season] + rise * (1 + ahead // season)


class Snarimax(Tracked):
    """River's SNARIMAX, with the settings of its example of airline passengers."""

    def __init__(self, steps: int, season: float | None) -> None:
        from river import time_series

        super().__init__(steps)
        period = round(season) if season else 1
        lags = min(period, 12) if season else 2
        self._model = time_series.SNARIMAX(p=lags, d=1, q=lags, m=period, sd=1 if season else 0)
        self._last = 0.0

    def take(self, y: Float[np.ndarray, " N"]) -> None:
        for value in y:
            self._last = value if np.isfinite(value) else self.means(1)[0]
            self._model.learn_one(self._last)

    def means(self, steps: int) -> Float[np.ndarray, " H"]:
        return np.array(self._model.forecast(horizon=steps), float)


def filled(y: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """Gaps filled in by straight lines; behind the last value, by that value."""
    seen = np.flatnonzero(np.isfinite(y))
    return np.interp(np.arange(len(y)), seen, y[seen])
