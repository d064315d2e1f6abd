"""Forecasts: predictions at equal steps after the latest input."""

import datetime

import numpy as np
import pandas as pd
import pytest

import streamgp as sgp


def numbers():
    model = sgp.ContinualGP(sgp.Gaussian(), learning=None)
    model.update([0.0, 3.0, 2.5], [1.0, 2.0, 3.0])
    return model


def hours(zone=None):
    index = pd.date_range("2026-03-01", periods=48, freq="h", tz=zone)
    model = sgp.ContinualGP({"a": sgp.Gaussian(), "b": sgp.Poisson()}, learning=None)
    model.update(pd.DataFrame({"a": np.arange(48.0), "b": np.arange(48) % 5}, index=index))
    return model, index


@pytest.mark.parametrize(("ahead", "count"), [(4, 4), (2.0, 4), (0.5, 1), (1.99, 3)])
def test_it_begins_one_step_after_the_latest_input(ahead, count):
    model = numbers()
    forecast = model.forecast(ahead, every=0.5)
    np.testing.assert_array_equal(forecast.x, 3.0 + 0.5 * np.arange(1, count + 1))
    np.testing.assert_array_equal(forecast.mean, model.predict(forecast.x).mean)


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize("every", ["1h", datetime.timedelta(hours=1), 1 / 24])
def test_times_and_durations(zone, every):
    model, index = hours(zone)
    forecast = model.forecast("6h", every=every)
    frame = forecast.to_frame()
    assert list(forecast) == ["a", "b"]
    later = pd.DatetimeIndex(frame.iloc[:, 0])
    assert list(later) == list(pd.date_range(index[-1], periods=7, freq="h")[1:])
    assert len(model.forecast("6h", every=every, channel="a")) == 6


@pytest.mark.parametrize(
    ("ahead", "every", "message"),
    [
        ("2D", 0.5, "as a number, since inputs are numbers"),
        (3, "1h", "as a number, since inputs are numbers"),
        (0, 1.0, "between 1 and"),
        (0.5, 1.0, "between 1 and"),
        (10**9, 1.0, "between 1 and"),
        (3, -1.0, "positive number"),
        (3, True, "positive number"),
        (np.nan, 1.0, "positive number"),
    ],
)
def test_what_makes_no_sense_is_refused(ahead, every, message):
    with pytest.raises(sgp.ConfigurationError, match=message):
        numbers().forecast(ahead, every=every)


def test_it_needs_data_and_one_input():
    with pytest.raises(sgp.DataError, match="before `forecast`"):
        sgp.ContinualGP(sgp.Gaussian()).forecast(3, every=1.0)
    model = sgp.ContinualGP(sgp.Gaussian(), learning=None)
    model.update(np.zeros((3, 2)), np.arange(3.0))
    with pytest.raises(sgp.ConfigurationError, match="one input column"):
        model.forecast(3, every=1.0)
