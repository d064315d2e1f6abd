"""Forecasts: series, rolling origins, methods at small sizes, and what the reports say of them."""

import dataclasses
import json

import numpy as np
import pytest
from scipy import integrate, stats

from streamgp_lab.cli import bench as command
from streamgp_lab.races.forecasts import bench, claims, methods, naive, rolling, tables
from streamgp_lab.races.forecasts.refitted import ARIMA, ETS, WindowGP
from streamgp_lab.races.forecasts.rolling import Forecast, Forecaster, Run, Scores
from streamgp_lab.races.forecasts.series import SERIES, Series

RNG = np.random.default_rng(0)
MONTHS = 10 + 0.05 * np.arange(72) + np.tile(3 * np.sin(np.arange(12) / 2), 6)
MONTHS = MONTHS + 0.1 * RNG.normal(size=72)


def short(name, load=lambda: MONTHS, season=12):
    return Series(name, load, season, 12, 36)


class Told(Forecaster):
    """It is told the future, and says how unsure it is."""

    def __init__(self, y, sd=1.0, shift=0.0):
        self.y, self.sd, self.shift, self.learned = y, sd, shift, []

    def learn(self, y):
        self.learned.append(len(y))

    def forecast(self, steps):
        begin = sum(self.learned)
        mean = np.resize(self.y[begin : begin + steps], steps) + self.shift
        interval = np.stack([mean - 1e-3, mean + 1e-3])
        return Forecast(mean, np.full(steps, self.sd), interval)


def test_series_are_at_equal_steps_and_begin_with_a_value():
    assert len({series.name for series in SERIES}) == len(SERIES) >= 15
    assert sum(not series.is_later for series in SERIES) >= 10
    for series in SERIES:
        y = series.values(400)
        assert np.isfinite(y[0])
        assert series.first + 2 * series.ahead < len(y) <= 400
        assert np.isfinite(y).mean() > 0.7
        assert np.nanstd(y) > 0


def test_months_are_means_of_weeks():
    weekly, monthly = (next(s for s in SERIES if s.name == f"CO₂, {n}").values() for n in
                       ("weekly", "monthly"))  # fmt: skip
    assert len(monthly) == 12 * (2001 - 1958) + 10  # March 1958 to December 2001
    assert monthly[0] == weekly[0]  # one week of March
    np.testing.assert_allclose(monthly[1], np.mean(weekly[1:5]))


def test_the_crps_is_the_integral_of_squared_differences():
    y, mean, sd = 0.7, 0.2, 1.3
    squared = lambda t: (stats.norm.cdf(t, mean, sd) - (t >= y)) ** 2  # noqa: E731
    wanted = integrate.quad(squared, -12, y)[0] + integrate.quad(squared, y, 12)[0]
    np.testing.assert_allclose(rolling.crps(*map(np.atleast_1d, (y, mean, sd))), wanted, rtol=1e-6)


def test_each_forecast_meets_its_own_value():
    y = RNG.normal(size=60)
    y[[40, 55]] = np.nan
    series = Series("noise", lambda: y, None, 5, 20)
    told = Told(y, sd=0.5, shift=0.25)
    run = rolling.run(told, series, y)
    assert told.learned == [20] + [1] * 40
    for scores, steps in zip(run.scores, (1, 5), strict=True):
        assert scores.steps == steps
        assert scores.count == 18  # half of those that came one by one; two are missing
        assert scores.error == pytest.approx(0.25)
        assert (scores.plain, scores.calibrated) == (1.0, 0.0)
        wanted = rolling.crps(np.zeros(1), np.array([0.25]), np.array([0.5]))[0]
        assert scores.crps == pytest.approx(wanted)
    assert run.length == 60


def test_naive_methods():
    last = naive.LastValue(3)
    last.learn(np.array([1.0, 2.0, 4.0, np.nan]))
    np.testing.assert_array_equal(last.forecast(3).mean, [4, 4, 4])
    seasonal = naive.SeasonalNaive(5, 2.0)
    seasonal.learn(np.array([1.0, 5.0, 2.0, 6.0]))
    np.testing.assert_array_equal(seasonal.forecast(5).mean, [3, 7, 4, 8, 5])


def test_spreads_are_past_errors():
    walk = np.cumsum(RNG.normal(size=4000))
    method = naive.LastValue(4)
    method.learn(walk)
    np.testing.assert_allclose(method.forecast(4).sd, np.sqrt([1, 2, 3, 4]), rtol=0.1)


@pytest.mark.parametrize("kind", [ETS, ARIMA, WindowGP])
def test_methods_that_are_refitted(kind):
    """All of them know the season, filter between fits, and bridge gaps."""
    method = kind(12.0)
    y = MONTHS.copy()
    y[40] = np.nan
    method.learn(y[:48])
    method.learn(y[48:49])
    found = method.forecast(12)
    assert np.sqrt(np.mean((found.mean - y[49:61]) ** 2)) < 0.6
    assert np.all((found.sd > 0.02) & (found.sd < 3))


def outcomes(**changes):
    """Two series; ours is best, and calibrated, unless it is changed."""
    found = {}
    for name, length in (("long", 200), ("short", 50)):
        runs = {}
        for k, method in enumerate(methods.METHODS):
            value = 1.0 + k if method not in methods.OURS else 0.5
            scores = tuple(Scores(h, value, value, 0.9, 0.95, 40) for h in (1, 12))
            runs[method] = Run(scores, 1e-3, 1e-3, 0.5, length)
        found[name] = runs
    for name, run in changes.items():
        method = {"plain": methods.PLAIN, "seasons": methods.SEASONS}[name]
        found["long"][method] = run
    return found


def test_claims_hold_or_not():
    assert {claim.holds for claim in claims.of(outcomes())} == {True}
    bad = Run(tuple(Scores(h, 9.0, 1.04, 0.5, 0.85, 40) for h in (1, 12)), 1e-3, 0.4, 0.0, 200)
    found = claims.of(outcomes(plain=bad))
    beats, best, rank, coverage, of_seasons = found[:5]
    assert "at worst 1.04" in beats.measured
    assert not beats.holds
    assert best.holds
    assert rank.holds
    assert not coverage.holds
    assert of_seasons.holds
    assert [claim.holds for claim in found[-2:]] == [False, False]  # 0.5 s is not 20 × 0.4 s
    worse = Run(tuple(Scores(h, 9.0, 2.5, 0.5, 0.85, 40) for h in (1, 12)), 1e-3, 0.4, 0.0, 200)
    best, rank = claims.of(outcomes(seasons=worse))[1:3]
    assert "on 1 of 2" in best.measured
    assert not best.holds
    assert not rank.holds


def test_tables_mark_the_best():
    one, _, coverage, cost, _, picture = tables.parts(outcomes())
    row = one.rows[0]
    assert row[:4] == ["long", "1", "1", "1.000"]
    assert row.count("**0.500**") == 2
    assert one.rows[-1][0] == "mean rank"
    assert coverage.rows[0][2:] == ["90 → 95"] * 4
    assert cost.rows[0][:3] == ["long", "200", "1, 500"]
    assert len(picture.figure.axes) == 2


def test_the_report_of_one_series(tmp_path, monkeypatch):
    quick = {name: methods.METHODS[name] for name in (methods.LAST, *methods.OURS)}
    quick |= {name: lambda series: Told(MONTHS) for name in (methods.ETS, methods.ARIMA)}
    monkeypatch.setattr(bench, "METHODS", quick)
    later = dataclasses.replace(short("later"), is_later=True)
    monkeypatch.setattr(bench, "SERIES", (short("months"), short("plain", season=None), later))
    command.run(["forecasts"], tmp_path, peers=tmp_path)
    measured = json.loads((tmp_path / "forecasts.json").read_text())["measured"]
    assert list(measured) == ["months", "plain"]
    months, plain = measured["months"], measured["plain"]
    assert plain[methods.PLAIN] == plain[methods.SEASONS]
    errors = [months[name]["scores"][1]["error"] for name in (methods.LAST, methods.SEASONS)]
    assert errors[1] < 0.5 * errors[0]
    assert "CRPS relative to the last value" in (tmp_path / "forecasts.md").read_text()
    assert (tmp_path / "forecasts.png").exists()
