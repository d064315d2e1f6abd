"""Compare updates of the sktime forecaster with fitting again.

A series of 2,000 hours has a day and a random walk. The last 48 hours come one by one, or a day at
a time. Each model then forecasts the next day.
"""

import statistics
import time

import numpy as np
import pandas as pd

from streamgp import RBF
from streamgp.kernels import Kernel
from streamgp.sktime import ContinualGPForecaster
from streamgp_lab.checks import command
from streamgp_lab.progress import bar
from streamgp_lab.reporting.tables import Table

_HOURS, _LATE, _AHEAD = 2000, 48, 24


def series() -> pd.Series:
    rng = np.random.default_rng(0)
    count = _HOURS + _AHEAD
    walk = 0.1 * np.cumsum(rng.normal(size=count))
    day = 2 * np.sin(2 * np.pi * np.arange(count) / 24)
    index = pd.date_range("2025-01-01", periods=count, freq="h")
    return pd.Series(10 + day + walk + 0.3 * rng.normal(size=count), index)


def forecaster(kernel: Kernel | None) -> ContinualGPForecaster:
    return ContinualGPForecaster(kernel, seasons=("1D",))


def updated(kernel: Kernel | None, y: pd.Series, rows: int) -> tuple[float, float]:
    """The CPU seconds of the median update with so many rows, and the error of the forecast."""
    model, seconds = forecaster(kernel).fit(y[: _HOURS - _LATE]), []
    for begin in range(_HOURS - _LATE, _HOURS, rows):
        start = time.process_time()
        model.update(y[begin : begin + rows])
        seconds.append(time.process_time() - start)
    return statistics.median(seconds), _error(model, y)


def fitted(kernel: Kernel | None, y: pd.Series) -> tuple[float, float]:
    """The CPU seconds of the median of three fits, and the error of the forecast."""
    seconds = []
    for _ in range(3):
        start = time.process_time()
        model = forecaster(kernel).fit(y[:_HOURS])
        seconds.append(time.process_time() - start)
    return statistics.median(seconds), _error(model, y)


def _error(model: ContinualGPForecaster, y: pd.Series) -> float:
    forecast = model.predict(np.arange(1, _AHEAD + 1))
    return float(np.sqrt(np.mean((forecast - y[_HOURS:]) ** 2)))


def main() -> None:
    y, rows = series(), []
    kernels = {"Matern32, a chain": None, "RBF, dense": RBF()}
    with bar("sktime_updates", len(kernels)) as line:
        for name, kernel in kernels.items():
            line.show(name)
            for what, (seconds, error) in (
                ("update with 1 row", updated(kernel, y, 1)),
                ("update with 24 rows", updated(kernel, y, 24)),
                ("fit of 2,000 rows", fitted(kernel, y)),
            ):
                rows.append([name, what, f"{1e3 * seconds:.1f}", f"{error:.3f}"])
            line.advance()
    heading = ["kernel", "what", "CPU ms, median", "RMSE of the next day"]
    print(Table("sktime_updates", heading, rows).markdown())


if __name__ == "__main__":
    command("sktime_updates")
