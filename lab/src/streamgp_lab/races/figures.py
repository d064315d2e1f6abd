"""Figures of one version, the bars that they have to meet, and what they are measured with."""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamgp_lab.reporting.claims import Claim
from streamgp_lab.reporting.tables import number

Figures = dict[str, float]
_STEPS, _RUNS = 500, 20  # of the filter


class Bar(NamedTuple):
    """What a figure must be.

    Attributes:
        figure: Its name, with its unit.
        most: The largest value that will do; None if there is no bar.
        is_ratio: Whether that is a multiple of the other revision's value.
    """

    figure: str
    most: float | None
    is_ratio: bool = False

    def __str__(self) -> str:
        if self.most is None:
            return ""
        return f"at most {_multiple(self.most) if self.is_ratio else number(self.most)}"

    def claim(self, ours: Figures, theirs: Figures) -> Claim:
        """Whether the figure of this version is below the bar."""
        value = ours[self.figure]
        most, measured = self.most, number(value)
        if self.is_ratio:
            value /= theirs.get(self.figure, np.nan)
            measured = _multiple(value)
        assert most is not None
        return Claim(f"{self.figure}: {self}", measured, None if np.isnan(value) else value <= most)


def _multiple(value: float) -> str:
    """Of the other revision's figure."""
    return f"1/{number(1 / value)}" if value < 1 else f"{number(value)} times"


def usual(runs: Sequence[Figures]) -> Figures:
    """The median of each figure."""
    return {name: float(np.median([run[name] for run in runs])) for name in runs[0]}


def mean_and_worst(runs: Sequence[Figures]) -> Figures:
    """The mean of each figure over seeds, and the largest."""
    found: Figures = {}
    for name in runs[0]:
        values = [run[name] for run in runs]
        found[_mean(name)], found[_worst(name)] = float(np.mean(values)), float(np.max(values))
    return found


def over_seeds(
    figure: str, mean: float | None = None, worst: float | None = None, *, is_ratio: bool = False
) -> tuple[Bar, Bar]:
    """Bars of the mean of a figure over seeds, and of the largest."""
    return Bar(_mean(figure), mean, is_ratio), Bar(_worst(figure), worst)


def _mean(figure: str) -> str:
    return f"{figure}, mean"


def _worst(figure: str) -> str:
    return f"{figure}, worst"


def scaled(count: int, share: float) -> int:
    """A share of a number of rows, not fewer than ten."""
    return max(round(count * share), min(count, 10))


def cpu_seconds(work: Callable[[], Any]) -> float:
    """CPU seconds of this process."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def usual_seconds(work: Callable[[], Any], times: int) -> float:
    """The median CPU time of work that is done several times."""
    return float(np.median([cpu_seconds(work) for _ in range(times)]))


def kalman_step_seconds() -> float:
    """CPU seconds of a step of a Kalman filter of seven states in NumPy."""
    size = 7
    move, grow, see = 0.9 * np.eye(size), 0.1 * np.eye(size), np.ones(size)

    def steps() -> None:
        mean, covariance = np.zeros(size), np.eye(size)
        for _ in range(_STEPS):
            mean, covariance = move @ mean, move @ covariance @ move.T + grow
            toward = covariance @ see
            gain = toward / (see @ toward + 0.1)
            mean = mean + gain * (1.0 - see @ mean)
            covariance = covariance - np.outer(gain, toward)

    return usual_seconds(steps, _RUNS) / _STEPS


def nlpd(model: Any, x: np.ndarray, y: np.ndarray) -> float:
    """The mean negative log predictive density of what a model of one channel did not see."""
    return -float(np.mean(model.predict(x).log_density(y)))


def nlpd_of_f(model: Any, x: np.ndarray, f: np.ndarray) -> float:
    """The same of the latent function."""
    said = model.predict(x)
    mean, variance = np.ravel(said.latent_mean), np.ravel(said.latent_variance)
    return float(np.mean(0.5 * np.log(2 * np.pi * variance) + 0.5 * (f - mean) ** 2 / variance))
