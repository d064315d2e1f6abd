"""A season that no rows so far apart can show is an error, as soon as their spacing is known."""

import numpy as np
import pandas as pd
import pytest

import streamgp as sgp

MONTHS = pd.date_range("1949-01", periods=48, freq="MS")
DAYS = pd.date_range("2024-01-01", periods=120, freq="D")
HOURS = pd.date_range("2024-01-01", periods=120, freq="h")
RNG = np.random.default_rng(0)
AT_ANY_HOUR = DAYS + pd.to_timedelta(RNG.uniform(0, 24, len(DAYS)), "h")
A_STRAY_ROW = DAYS.append(pd.DatetimeIndex(["2024-02-03T05:00"]))


def model(season, **settings):
    return sgp.ContinualGP(sgp.Gaussian(), seasons=[season], learning=None, **settings)


def values(x):
    return np.sin(np.arange(len(x)))


@pytest.mark.parametrize(
    ("x", "season", "spacing", "remedy"),
    [
        (MONTHS, 12, "one month", r'12 steps of one month.*seasons=\["365.25D"\]'),
        (MONTHS, 40, "one month", "40 steps"),
        (MONTHS, "7D", "one month", "leave it out"),
        (MONTHS.tz_localize("Europe/Berlin"), 12, "one month", "365.25D"),
        (MONTHS[RNG.permutation(48)[:36]], 12, "one month", "365.25D"),
        (pd.date_range("1949-01", periods=48, freq="ME"), 12, "one month", "365.25D"),
        (pd.date_range("1949-01", periods=48, freq="BMS"), 12, "one month", "365.25D"),
        (pd.period_range("1949-01", periods=48, freq="M"), 12, "one month", "365.25D"),
        (pd.date_range("1949-01", periods=48, freq="QS"), 4, "3 months", "365.25D"),
        (pd.date_range("2024-01", periods=48, freq="W"), 7, "7D", '"49D"'),
        (pd.bdate_range("2024-01-01", periods=60), "1D", "1D", "leave it out"),
        (A_STRAY_ROW, "1D", "1D", "leave it out"),
        (HOURS + pd.to_timedelta(RNG.uniform(0, 5, 120), "s"), "1h", "59|1h", "leave it out"),
        (np.arange(48.0) * 30, 12, "30", r"seasons=\[360\]"),
        (np.arange(48.0), 1, "1", "leave it out"),
    ],
)
def test_a_season_that_no_such_rows_can_show(x, season, spacing, remedy):
    pattern = f"spacing of the rows, which is ({spacing}).*{remedy}"
    begun = model(season)
    with pytest.raises(sgp.ConfigurationError, match=pattern):
        begun.update(x, values(x))
    assert begun.observations == {"y": 0}
    with pytest.raises(sgp.ConfigurationError, match=pattern):
        begun.update_many(x, values(x))
    assert begun.observations == {"y": 0}


@pytest.mark.parametrize(
    ("x", "season"),
    [
        (MONTHS, 365.25),
        (MONTHS, 2 * 365.25 / 12),
        (DAYS, 2),
        (pd.bdate_range("2024-01-01", periods=60), "7D"),
        (HOURS, "1D"),
        (AT_ANY_HOUR, "1D"),
        (AT_ANY_HOUR[::3], "1D"),
        (DAYS[:2], "1D"),  # two rows may be far apart by chance
        (HOURS[:48].append(DAYS[5:]), "1D"),
        (np.sort(RNG.uniform(0, 100, 60)), 0.7),
        (np.arange(96) / 12, 1),
        (np.zeros(9), 12),
    ],
)
@pytest.mark.parametrize("rows", [1, 40])
def test_a_season_that_rows_can_show(x, season, rows):
    begun = model(season)
    for batch in np.split(np.arange(len(x)), range(rows, len(x), rows)):
        if batch[0] < 20 or rows > 1:
            begun.update(x[batch], values(x)[batch])


def test_rows_that_are_close_somewhere_show_it():
    later = HOURS + pd.Timedelta("200D")
    x = DAYS.append(later)
    model("1D").update(x, values(x))


def test_single_rows_tell_their_spacing_after_a_few(tmp_path):
    begun = model(12)
    for row in range(4):
        begun.update(MONTHS[[row]], [1.0 * row])
    begun.save(tmp_path / "model.sgp")
    for own in (begun, sgp.load(tmp_path / "model.sgp")):
        with pytest.raises(sgp.ConfigurationError, match="one month"):
            own.update(MONTHS[[4]], [4.0])
        assert own.observations == {"y": 4}


def test_seasons_of_a_mean_count_too():
    mean = {"y": sgp.Constant() + sgp.Seasonal(12) + sgp.Trend()}
    begun = sgp.ContinualGP(sgp.Gaussian(), mean=mean, learning=None)
    with pytest.raises(sgp.ConfigurationError, match=r"365\.25D"):
        begun.update(MONTHS, values(MONTHS))
    hour = pd.DataFrame({"speed": values(HOURS), "hour": HOURS.hour, "y": values(HOURS)})
    for on, period in (("speed", 1e-3), ("hour", 24)):
        own = sgp.Constant() + sgp.Seasonal(period, on=on)
        sgp.ContinualGP(sgp.Gaussian(), mean=own, learning=None).update(
            hour, inputs=["speed", "hour"]
        )
    own = sgp.Constant() + sgp.Seasonal(1.5, on="hour")
    with pytest.raises(sgp.ConfigurationError, match="which is 1;"):
        sgp.ContinualGP(sgp.Gaussian(), mean=own, learning=None).update(
            hour, inputs=["speed", "hour"]
        )


def test_the_closest_rows_of_all_channels_count():
    channels = {"slow": sgp.Gaussian(), "fast": sgp.Gaussian()}
    begun = sgp.ContinualGP(channels, seasons=["1D"], learning=None)
    begun.update({"slow": (DAYS[:20], values(DAYS[:20])), "fast": (HOURS, values(HOURS))})


def test_keys_of_a_fleet():
    both = MONTHS.append(HOURS[:48])
    table = pd.DataFrame({"key": np.repeat(["a", "b"], 48), "time": both, "y": values(both)})
    fleet = sgp.Fleet(model("1D"))
    report = fleet.update(table, key="key", inputs="time")
    assert list(report.errors) == ["a"]
    assert "one month" in str(report.errors["a"])
