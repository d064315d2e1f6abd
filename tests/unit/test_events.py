"""Events: windows from tables of all kinds, and effects that are learned."""

import datetime
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pytest

import streamgp as sgp
from streamgp.data.axes import Axis

BERLIN = ZoneInfo("Europe/Berlin")


def happening(events, times):
    """Which events each time belongs to, as a model reads both."""
    model = sgp.ContinualGP(sgp.Gaussian(), mean=events, learning=None)
    model.update(times, np.zeros(len(times)))
    axis, mean = model.axes[0], model.state.model.channels[0].mean
    numbers = axis.numbers(sgp.data.columns.read_input(times, "times"), "times")
    return mean(numbers[:, None]) == 1


def hours(begin, count, zone=None):
    return pd.date_range(begin, periods=count, freq="h", tz=zone)


def test_numbers_belong_to_windows_with_their_ends():
    events = sgp.Events({"a": [(1, 3), 7], "b": [(2.5, np.inf)]})
    assert events.names == ("a", "b")
    found = events.started(np.zeros((1, 1)), (Axis(),))(np.arange(9.0)[:, None])
    np.testing.assert_array_equal(found[:, 0], [0, 1, 1, 1, 0, 0, 0, 1, 0])
    np.testing.assert_array_equal(found[:, 1], [0, 0, 0, 1, 1, 1, 1, 1, 1])


@pytest.mark.parametrize(
    "day",
    [
        "2024-12-25",
        datetime.date(2024, 12, 25),
        datetime.datetime(2024, 12, 25),
        np.datetime64("2024-12-25"),
        np.datetime64("2024-12-25T00:00:00"),
        pd.Timestamp("2024-12-25"),
    ],
    ids=lambda day: type(day).__name__,
)
def test_a_date_is_its_whole_day_and_no_more(day):
    times = hours("2024-12-24T00:00", 72)
    found = happening(sgp.Events({"Christmas": [day]}), times)
    np.testing.assert_array_equal(found[:, 0], times.day == 25)


def test_days_to_days_include_the_last_one():
    times = hours("2024-12-23T00:00", 24 * 6)
    found = happening(sgp.Events({"Christmas": ("2024-12-24", "2024-12-26")}), times)
    np.testing.assert_array_equal(found[:, 0], (times.day >= 24) & (times.day <= 26))


def test_times_of_day_are_taken_to_the_instant():
    times = hours("2024-12-24T00:00", 48)
    events = sgp.Events(
        {
            "closed": ("2024-12-24T18:00", "2024-12-25T06:00"),
            "until the end": ("2024-12-24T20:00", "2024-12-25"),
            "bell": "2024-12-25T05:00",
        }
    )
    found = happening(events, times)
    np.testing.assert_array_equal(np.flatnonzero(found[:, 0]), np.arange(18, 31))
    np.testing.assert_array_equal(np.flatnonzero(found[:, 1]), np.arange(20, 48))
    np.testing.assert_array_equal(np.flatnonzero(found[:, 2]), [29])


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_instants_are_found_whatever_unit_times_have(unit):
    times = (np.datetime64("2001-01-01T00:00:01", unit)) + np.arange(5) * np.timedelta64(777, "s")
    far = np.concatenate([times, times + np.timedelta64(20 * 365, "D")])
    found = happening(
        sgp.Events({"a": [far[3].item(), far[7]] if unit != "ns" else far[[3, 7]]}), far
    )
    np.testing.assert_array_equal(np.flatnonzero(found), [3, 7])


def test_instants_are_found_in_spite_of_rounding():
    """The same times in days differ in the last digit if they come in other units."""
    microseconds = np.random.default_rng(0).integers(0, 20 * 365 * 86400 * 10**6, 50)
    times = np.datetime64("2001-01-01") + microseconds.astype("m8[us]")
    numbers = microseconds / (86400 * 10**6), (1000 * microseconds) / (86400 * 10**9)
    assert np.any(numbers[0] != numbers[1])
    assert happening(sgp.Events({"a": list(times)}), times.astype("M8[ns]")).all()


def test_days_are_those_of_the_clocks_of_the_inputs():
    """On the day when clocks go forward there are 23 hours."""
    times = hours("2024-03-30T00:00", 72, "Europe/Berlin")
    found = happening(sgp.Events({"a": ["2024-03-31"], "b": "2024-03-30T12:00"}), times)
    np.testing.assert_array_equal(found[:, 0], times.day == 31)
    assert found[:, 0].sum() == 23
    np.testing.assert_array_equal(found[:, 1], (times.day == 30) & (times.hour == 12))


def test_days_with_a_zone_are_of_that_zone():
    times = hours("2024-03-30T00:00", 72, "UTC")
    local = times.tz_convert("Europe/Berlin")
    for day in (
        pd.Timestamp("2024-03-31", tz=BERLIN),
        datetime.datetime(2024, 3, 31, tzinfo=BERLIN),
    ):
        found = happening(sgp.Events({"a": [day]}), times)
        np.testing.assert_array_equal(found[:, 0], local.day == 31)


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_a_frame_of_events(library):
    begin = [datetime.date(2024, 5, 1), datetime.date(2024, 5, 9), datetime.date(2024, 5, 20)]
    end = [datetime.date(2024, 5, 1), datetime.date(2024, 5, 10), datetime.date(2024, 5, 20)]
    frame = library.DataFrame({"event": ["holiday", "fair", "holiday"], "begin": begin, "end": end})
    by_hand = sgp.Events({"holiday": ["2024-05-01", "2024-05-20"], "fair": (begin[1], end[1])})
    times = hours("2024-04-30T00:00", 24 * 24)
    np.testing.assert_array_equal(happening(sgp.Events(frame), times), happening(by_hand, times))
    if library is pd:
        frame = frame.assign(begin=pd.to_datetime(frame["begin"]), end=pd.to_datetime(frame["end"]))
        assert set(sgp.Events(frame).table) == set(by_hand.table)
    alone = frame[["event", "begin"]]
    found = happening(sgp.Events(alone), times)
    np.testing.assert_array_equal(found[:, 1], (times.month == 5) & (times.day == 9))


def test_events_are_kept_as_numbers_and_text():
    events = sgp.Events({"a": [pd.Timestamp("2024-12-25")], "b": [3]})
    assert events.table == (
        ("a", "2024-12-25T00:00:00", "2024-12-25T23:59:59.999000"),
        ("b", 3.0, 3.0),
    )
    assert sgp.Events(events.table) == events


def test_an_effect_is_learned_and_comes_again():
    day = np.arange(0.0, 120)
    sale = (day % 30 >= 20) & (day % 30 < 23)
    events = sgp.Events({"sale": [(30 * k + 20, 30 * k + 22) for k in range(6)]})
    y = 50 + np.sin(day / 5) + 8.0 * sale + 0.1 * np.random.default_rng(0).normal(size=120)
    model = sgp.ContinualGP(sgp.Gaussian(), mean=sgp.Constant() + events)
    for part in np.split(np.arange(120), 4):
        model.update(day[part], y[part])
    during, before = model.predict([141.0, 135.0]).mean
    assert during - before == pytest.approx(8.0, abs=0.5)
    assert model.mean_weights["y"]["weights"][0, 1] == pytest.approx(8.0, abs=0.5)


def test_the_prior_of_an_effect_holds_it():
    day = np.arange(0.0, 40)
    y = 8.0 * (day == 20)

    def effect(spread):
        mean = sgp.Constant() + sgp.Events({"a": [20]}, spread=spread)
        model = sgp.ContinualGP(
            sgp.Gaussian(sgp.fixed(1.0)), latents=sgp.RBF(5.0, sgp.fixed(1e-3)), mean=mean
        )
        model.update(day, y)
        return model.mean_weights["y"]["weights"][0, 1]

    assert effect(100.0) == pytest.approx(8.0, abs=0.1)
    assert 0 < effect(1.0) < 4.5


@pytest.mark.parametrize(
    "table",
    [
        7,
        "2024-12-25",
        ["2024-12-25"],
        {"a": "soon"},
        {"a": [None]},
        {"a": [np.nan]},
        {"a": [pd.NaT]},
        {"a": [("2024-12-25", None)]},
        {"a": [("2024-12-25", 3)]},
        {"a": [("2024-12-26", "2024-12-25")]},
        {"a": [(3, 2)]},
        {"a": [(1, 2, 3)]},
        {"a": [("2024-12-25T00:00Z", "2024-12-26")]},
        pd.DataFrame({"name": ["a"], "begin": [1]}),
        pd.DataFrame({"event": ["a"], "begin": ["2024-12-25"], "end": [None]}),
    ],
    ids=str,
)
def test_tables_that_cannot_be(table):
    with pytest.raises(sgp.ConfigurationError, match=r"(?s)^expected .+; got .+\. .+"):
        sgp.Events(table)


@pytest.mark.parametrize(
    ("table", "times", "words"),
    [
        ({"a": ["2024-12-25"]}, np.arange(5.0), "event 'a' in numbers"),
        ({"a": [3]}, hours("2024-12-24", 5), "event 'a' in times"),
        ({"a": ["2024-12-25T00:00Z"]}, hours("2024-12-24", 5), "without a time zone"),
    ],
    ids=["times for numbers", "numbers for times", "a zone"],
)
def test_tables_of_another_kind_than_the_inputs(table, times, words):
    model = sgp.ContinualGP(sgp.Gaussian(), mean=sgp.Constant() + sgp.Events(table))
    with pytest.raises(sgp.ConfigurationError, match=words):
        model.update(times, np.zeros(5))
    assert model.state is None


def test_events_must_know_their_inputs_before_they_have_values():
    with pytest.raises(sgp.ConfigurationError, match="started"):
        sgp.Events({"a": ["2024-12-25"]})(np.zeros((1, 1)))


def test_no_events_are_no_functions():
    assert sgp.Events({}).started(np.zeros((1, 1)), (Axis(),))(np.zeros((4, 1))).shape == (4, 0)
