"""Rolling origins: learn a value, forecast, and score each forecast when its time has come."""

import abc
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy import stats

from streamgp_lab.races.forecasts.series import Series

LEVEL = 0.95
_SCORED = 0.5  # of the values that come one by one, the latest: those before are a rehearsal
_TAIL = 0.1  # of the updates, whose cost is that of the end


class Forecast(NamedTuple):
    """The next values: means and standard deviations, the first of the next step.

    `calibrated` has 95% intervals that a method has corrected by its own record, if it does so.
    """

    mean: Float[np.ndarray, " H"]
    sd: Float[np.ndarray, " H"]
    calibrated: Float[np.ndarray, "2 H"] | None = None


class Forecaster(abc.ABC):
    """A method that learns a series step by step. Times are numbers of steps."""

    @abc.abstractmethod
    def learn(self, y: Float[np.ndarray, " N"]) -> None:
        """Learn the next values; NaN where there is none."""

    @abc.abstractmethod
    def forecast(self, steps: int) -> Forecast:
        """What the next values may be."""

    def refit(self) -> None:  # noqa: B027 (most methods have nothing to do)
        """Find parameters anew from all values so far, if the method does so now and then."""


@dataclass(frozen=True)
class Scores:
    """Forecasts of one horizon.

    Attributes:
        steps: How far ahead.
        error: The root mean square error.
        crps: The mean continuous ranked probability score of normal distributions.
        plain: The share of values in 95% intervals.
        calibrated: The same of intervals that were corrected; NaN if there are none.
        count: How many forecasts were scored.
    """

    steps: int
    error: float
    crps: float
    plain: float
    calibrated: float
    count: int


@dataclass(frozen=True)
class Run:
    """What one method did with one series.

    Attributes:
        scores: One step ahead, and as far ahead as the series asks.
        update: CPU seconds per value that was learned, forecasts apart: the mean.
        late: The same over the last tenth of the values.
        refit: CPU seconds of finding parameters anew from all values at the end.
        length: How many values there were.
        reason: Why there are no scores.
    """

    scores: tuple[Scores, ...] = ()
    update: float = float("nan")
    late: float = float("nan")
    refit: float = float("nan")
    length: int = 0
    reason: str = ""


def run(method: Forecaster, series: Series, y: Float[np.ndarray, " N"]) -> Run:
    """The first values at once, the others one by one, each after a forecast."""
    first, ahead = series.first, series.ahead
    method.learn(y[:first])
    made, seconds = [], []
    for k in range(first, len(y)):
        made.append(method.forecast(ahead))
        seconds.append(_seconds(lambda k=k: method.learn(y[k : k + 1])))
    rehearsed = round(_SCORED * len(made))
    scores = tuple(_scores(made, y[first:], steps, rehearsed) for steps in (1, ahead))
    late = seconds[-max(round(_TAIL * len(seconds)), 1) :]
    refit = _seconds(method.refit)
    return Run(scores, float(np.mean(seconds)), float(np.mean(late)), refit, len(y))


def _seconds(work: Callable[[], None]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def _scores(made: list[Forecast], y: Float[np.ndarray, " N"], steps: int, rehearsed: int) -> Scores:
    """Forecasts that far ahead of the values after the rehearsal."""
    targets = [k for k in range(max(rehearsed, steps - 1), len(y)) if np.isfinite(y[k])]
    origins = [made[k - steps + 1] for k in targets]
    values = y[targets]
    mean = np.array([forecast.mean[steps - 1] for forecast in origins])
    sd = np.array([forecast.sd[steps - 1] for forecast in origins])
    half = stats.norm.ppf(0.5 + LEVEL / 2) * sd
    plain = np.stack([mean - half, mean + half], axis=1)
    corrected = [f.calibrated[:, steps - 1] for f in origins if f.calibrated is not None]
    held = np.mean(_inside(values, np.array(corrected))) if corrected else np.nan
    return Scores(
        steps,
        float(np.sqrt(np.mean((values - mean) ** 2))),
        float(np.mean(crps(values, mean, sd))),
        float(np.mean(_inside(values, plain))),
        float(held),
        len(values),
    )


def crps(
    y: Float[np.ndarray, " N"], mean: Float[np.ndarray, " N"], sd: Float[np.ndarray, " N"]
) -> Float[np.ndarray, " N"]:
    """The continuous ranked probability score of normal distributions (Gneiting et al., 2005)."""
    z = (y - mean) / sd
    return sd * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))


def _inside(
    y: Float[np.ndarray, " N"], interval: Float[np.ndarray, "N 2"]
) -> Bool[np.ndarray, " N"]:
    return (interval[:, 0] <= y) & (y <= interval[:, 1])
