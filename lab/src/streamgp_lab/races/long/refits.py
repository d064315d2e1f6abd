"""Refits: regressions on a trend and seasons, fitted anew to all data before every week.

They are what Prophet fits to a series, without changes of the trend: a line and waves of the day,
the week and the year, with a penalty. Each channel has a regression of its own kind. A real channel
is normal around it with the spread of what is left.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from jaxtyping import Float
from scipy import stats
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge

from streamgp_lab.problem import Data, merged

_WAVES = {1.0: 8, 7.0: 10, 365.25: 3}  # days, and how many waves of each; 24·7 hours make a week
_PENALTY = 1.0  # of a squared coefficient, as against a row's squared error in units of the spread
_LEAST = 1e-6  # of a rate, a probability or a spread
_SOLVER = "newton-cholesky"  # for the fits that have no closed form
Scores = list[dict[str, float]]  # negative log predictive densities, by week and channel


class Fitted(Protocol):
    """A fit of one channel."""

    def log_density(self, t: np.ndarray, y: np.ndarray) -> Float[np.ndarray, " N"]: ...


def refitted(batches: Sequence[Data], asked: Sequence[Data]) -> tuple[Scores, Scores]:
    """Scores of each week before it is learned, and of what is asked once all are.

    Args:
        batches: What is learned of each week.
        asked: What is held out of it.
    """
    ahead: Scores = [{}]
    for week in range(1, len(batches)):
        ahead.append(_scores(_fits(batches[:week]), batches[week]))
    last = _fits(batches)
    return ahead, [_scores(last, each) for each in asked]


def _scores(fits: dict[str, Fitted], data: Data) -> dict[str, float]:
    return {
        name: -float(np.mean(fits[name].log_density(t, y)))
        for name, (t, y) in data.items()
        if name in fits
    }


def _fits(batches: Sequence[Data]) -> dict[str, Fitted]:
    kinds: dict[str, type] = {"departures": Counts, "rain": Yes}
    return {name: kinds.get(name, Real)(t, y) for name, (t, y) in merged(batches).items()}


class Real:
    """Normal around the regression."""

    def __init__(self, t: np.ndarray, y: np.ndarray) -> None:
        self.at, self.by = float(np.mean(y)), float(np.std(y)) or 1.0
        self.fit = Ridge(_PENALTY).fit(_columns(t), (y - self.at) / self.by)
        self.spread = max(float(np.std(y - self._mean(t))), _LEAST)

    def _mean(self, t: np.ndarray) -> np.ndarray:
        return self.at + self.by * self.fit.predict(_columns(t))

    def log_density(self, t: np.ndarray, y: np.ndarray) -> Float[np.ndarray, " N"]:
        return stats.norm.logpdf(y, self._mean(t), self.spread)


class Counts:
    """Poisson counts with the regression as the logarithm of their rate."""

    def __init__(self, t: np.ndarray, y: np.ndarray) -> None:
        self.fit = PoissonRegressor(alpha=_PENALTY / len(y), solver=_SOLVER).fit(_columns(t), y)

    def log_density(self, t: np.ndarray, y: np.ndarray) -> Float[np.ndarray, " N"]:
        rate = np.maximum(self.fit.predict(_columns(t)), _LEAST)
        return stats.poisson.logpmf(y, rate)


class Yes:
    """Zeros and ones with the regression as the logit of their probability."""

    def __init__(self, t: np.ndarray, y: np.ndarray) -> None:
        self.share = float(np.mean(y))
        self.fit = None
        if 0 < self.share < 1:  # both have come
            self.fit = LogisticRegression(C=1 / _PENALTY, solver=_SOLVER).fit(_columns(t), y)

    def log_density(self, t: np.ndarray, y: np.ndarray) -> Float[np.ndarray, " N"]:
        if self.fit is None:
            chance = np.full(len(t), self.share)
        else:
            chance = self.fit.predict_proba(_columns(t))[:, 1]
        return stats.bernoulli.logpmf(y, np.clip(chance, _LEAST, 1 - _LEAST))


def _columns(t: np.ndarray) -> Float[np.ndarray, "N k"]:
    """The trend and the waves."""
    waves = [
        wave(2 * np.pi * k * t / period)
        for period, count in _WAVES.items()
        for k in range(1, count + 1)
        for wave in (np.sin, np.cos)
    ]
    return np.stack([t / 365.25, *waves], axis=1)
