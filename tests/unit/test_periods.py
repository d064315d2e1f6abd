"""Periods that are suggested from data."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import streamgp as sgp


def noise(count, seed=0):
    return np.random.default_rng(seed).normal(size=count)


def periods(x, y, **options):
    return [found.period for found in sgp.suggest_periods(x, y, **options)]


@pytest.mark.parametrize("strong", [1, 2])
def test_harmonics_belong_to_their_period_whichever_is_stronger(strong):
    month = np.arange(144.0)
    waves = [np.sin(2 * np.pi * month / 12), np.cos(2 * np.pi * month / 6)]
    y = 0.2 * month + 5 * waves[strong - 1] + 2 * waves[2 - strong] + noise(144)
    (found,) = sgp.suggest_periods(month, y)
    assert found.period == 12.0
    rest = np.sum(noise(144) ** 2) / np.sum((y - np.polyval(np.polyfit(month, y, 1), month)) ** 2)
    assert found.strength == pytest.approx(1 - rest, abs=0.03)


def test_days_and_weeks_in_hours_come_strongest_first():
    times = pd.date_range("2024-01-01", periods=24 * 56, freq="h")
    day = np.arange(len(times)) / 24
    y = 3 * np.maximum(0, np.sin(2 * np.pi * day)) + (day % 7 < 5) + 0.5 * noise(len(day))
    found = sgp.suggest_periods(times, y)
    assert [each.period for each in found] == ["1D", "7D"]
    assert found[0].strength > found[1].strength > 0.01
    model = sgp.ContinualGP(sgp.Gaussian(), seasons=[each.period for each in found])
    assert [season.period for season in model._specification.seasons] == ["1D", "7D"]


def test_the_day_stands_out_in_a_stronger_week():
    hour = np.arange(24 * 7 * 8.0)
    y = 3.0 * (hour % 168 < 120) + 0.8 * np.sin(2 * np.pi * hour / 24) + 0.3 * noise(len(hour))
    assert periods(hour, y) == [168.0, 24.0]


def test_a_sharp_pattern_is_one_season_and_its_strength_counts_all_of_it():
    """A wave has the highest peak, and the pattern, whose power is spread, explains more."""
    x = np.arange(300.0)
    found = sgp.suggest_periods(x, 4.0 * (x % 20 < 2) + np.sin(2 * np.pi * x / 33))
    assert [each.period for each in found] == [20.0, 33.0]
    assert found[0].strength > 0.5 > found[1].strength


def test_gaps_times_with_a_zone_and_missing_values_do_no_harm():
    times = pd.date_range("2020-01-01", periods=3 * 365, freq="D", tz="Europe/Berlin")
    day, generator = np.arange(len(times)), np.random.default_rng(1)
    y = 3 * np.cos(2 * np.pi * day / 365.25) + 2 * (day % 7 < 5) + noise(len(day))
    y[::10] = np.nan
    kept = generator.random(len(day)) < 0.4
    assert periods(times[kept], y[kept]) == ["365.25D", "7D"]


def test_many_rows_are_averaged_in_cells():
    times = np.datetime64("2024-01-01") + 60 * np.arange(40 * 1440).astype("m8[s]")
    day = np.arange(len(times)) / 1440
    assert periods(times, np.sin(2 * np.pi * day) + 3 * noise(len(day))) == ["1D"]


def test_a_period_of_no_round_number():
    x = np.sort(np.random.default_rng(2).uniform(1e6, 1e6 + 500, 300))
    (found,) = periods(x, np.sin(2 * np.pi * x / 17.3) + 0.2 * noise(300))
    assert found == pytest.approx(17.3, rel=2e-3)


@pytest.mark.parametrize("seed", range(5))
def test_noise_has_no_period(seed):
    assert sgp.suggest_periods(np.arange(300.0), noise(300, seed)) == ()


@pytest.mark.parametrize(
    "y", [np.full(50, 7.0), 1e6 + 3 * np.arange(50.0), np.r_[np.ones(3), [np.nan] * 47]]
)
def test_nothing_to_be_found(y):
    assert sgp.suggest_periods(np.arange(50.0), y) == ()


def test_two_cycles_have_to_be_seen():
    x = np.arange(100.0)
    assert periods(x, np.sin(2 * np.pi * x / 45) + 0.1 * noise(100)) == [45.0]
    assert all(p <= 50 for p in periods(x, np.sin(2 * np.pi * x / 80)))


def test_a_start_does_not_wait_for_what_only_periods_need():
    look = "import sys, streamgp; sys.exit('scipy.signal' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", look], check=False).returncode == 0


def test_no_more_than_asked_for():
    x = np.arange(400.0)
    y = sum(np.sin(2 * np.pi * x / p) / k for k, p in enumerate((37, 11, 5.3), 1))
    assert periods(x, y, most=2) == [37.0, 11.0]
    assert len(periods(x, y)) == 3


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (np.arange(5.0), np.arange(4.0)),
        (np.arange(5.0), list("abcde")),
        (np.ones((5, 2)), np.arange(5.0)),
        (np.arange(3.0), [0.0, np.inf, 1.0]),
    ],
    ids=["lengths", "labels", "columns", "infinite"],
)
def test_data_that_cannot_be_used(x, y):
    with pytest.raises(sgp.DataError, match=r"(?s)^expected .+; got .+\. .+"):
        sgp.suggest_periods(x, y)
