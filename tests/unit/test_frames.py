"""Data as people have it: frames, series, times, labels; and what comes back."""

import datetime as dt
import subprocess
import sys
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.leaves import leaves

import streamgp as sgp
from streamgp.data import columns

BERLIN = "Europe/Berlin"
DATES = pd.date_range("2024-03-30", periods=8, freq="6h")  # over a change of the clock in Berlin
X = np.linspace(0, 6, 8)
Y = np.sin(X)
SKY = ["sun", "rain", "sun", "snow", "rain", "sun", "sun", "snow"]
GRID = sgp.Fixed(X)


def single(likelihood=None, **settings):
    return sgp.ContinualGP(likelihood or sgp.Gaussian(), learning=None, **settings)


def several(**settings):
    channels = {"wind": sgp.Gaussian(), "sky": sgp.Categorical(3), "alarm": sgp.Bernoulli()}
    return sgp.ContinualGP(channels, learning=None, inducing=GRID, **settings)


def bits(model):
    """Every number of what the model knows."""
    return list(leaves(model.state))


def assert_same(one, other):
    for a, b in zip(bits(one), bits(other), strict=True):
        np.testing.assert_array_equal(a, b)
    assert one.observations == other.observations


@pytest.fixture(scope="module")
def plain():
    """What all the ways to say the same have to end as."""
    model = single(inducing=GRID)
    model.update(X, Y)
    return model


NAMED = pd.DataFrame({"y": Y}, index=DATES.rename("date"))
UNNAMED = NAMED.rename_axis(None)


@pytest.mark.parametrize(
    ("first", "later"),
    [
        (NAMED, UNNAMED),
        (UNNAMED, NAMED),
        (NAMED, UNNAMED["y"]),
        (NAMED["y"], UNNAMED),
        (NAMED.reset_index(), UNNAMED),
        (NAMED, NAMED.reset_index()),
        (NAMED, UNNAMED.set_axis(DATES.to_period("6h"))),
    ],
)
def test_an_index_of_times_needs_no_name(first, later):
    inputs = None if isinstance(first, pd.Series) or "date" not in first else "date"
    frame = later.to_frame() if isinstance(later, pd.Series) else later
    models = [single(inducing=sgp.Adaptive()) for _ in range(3)]
    for model in models:
        model.update(first[:4], inputs=inputs)
    models[0].update(DATES[4:], Y[4:])
    models[1].update(later[4:])
    models[2].update_many(later[4:])
    assert_same(models[0], models[1])
    assert models[2].observations == {"y": 8}
    expected = models[0].predict(DATES).mean
    np.testing.assert_array_equal(models[0].predict(frame).mean, expected)


def test_an_index_stands_for_times_that_no_column_has():
    both = UNNAMED.assign(height=X)
    model = sgp.ContinualGP(sgp.Gaussian(), learning=None)
    model.update(both.rename_axis("date").reset_index(), inputs=["date", "height"])
    model.update(both)
    assert model.observations == {"y": 16}
    with pytest.raises(sgp.DataError, match="'date' of the first frame"):
        model.predict(UNNAMED)  # which has no heights either


@pytest.mark.parametrize(
    ("later", "message"),
    [
        (UNNAMED.rename_axis("day"), "an index named 'day'.*rename_axis"),
        (UNNAMED.set_axis(X), "an index without a name"),  # numbers may be those of rows
        (UNNAMED.reset_index(drop=True), "an index that only counts the rows"),
        (pl.DataFrame({"day": DATES.to_numpy(), "y": Y}), "'day'"),
    ],
)
def test_an_index_or_column_of_another_name(later, message):
    model = single()
    model.update(NAMED)
    for call in (model.update, model.update_many, model.predict):
        with pytest.raises(sgp.DataError, match=f"'date'.*{message}"):
            call(later)
    assert model.observations == {"y": 8}


def test_periods_are_times():
    months = pd.period_range("2024-01", periods=8, freq="M")
    expected, *others = (single(inducing=sgp.Adaptive()) for _ in range(4))
    expected.update(months.to_timestamp(), Y)
    others[0].update(months, Y)
    others[1].update(pd.Series(Y, months))
    others[2].update(pd.DataFrame({"month": months, "y": Y}), inputs="month")
    for model in others:
        assert_same(expected, model)
    np.testing.assert_array_equal(
        others[0].predict(months).x, expected.predict(months.to_timestamp()).x
    )


@pytest.fixture(scope="module")
def weather():
    model = several()
    model.update({"wind": (X[:6], Y[:6]), "sky": (X, SKY), "alarm": (X[2:], ["no", "yes"] * 3)})
    return model


WAYS = {
    "pandas": lambda m: m.update(pd.DataFrame({"t": X, "y": Y}), inputs="t"),
    "polars": lambda m: m.update(pl.DataFrame({"t": X, "y": Y}), inputs="t"),
    "one column of any name": lambda m: m.update(pd.DataFrame({"t": X, "z": Y}), inputs=["t"]),
    "index": lambda m: m.update(pd.DataFrame({"y": Y}, index=pd.Index(X, name="t"))),
    "series": lambda m: m.update(pd.Series(Y, index=X)),
    "two series": lambda m: m.update(pd.Series(X), pd.Series(Y)),
    "two polars series": lambda m: m.update(pl.Series(X), pl.Series(Y)),
    "frame of inputs": lambda m: m.update(pd.DataFrame({"t": X}), pd.DataFrame({"y": Y})),
    "lists": lambda m: m.update(X.tolist(), Y.tolist()),
    "memory": lambda m: m.update(memoryview(X), memoryview(Y)),
    "long": lambda m: m.update(
        pl.DataFrame({"t": X, "who": ["y"] * 8, "v": Y}), inputs="t", channel="who", value="v"
    ),
    "value alone": lambda m: m.update(
        pd.DataFrame({"t": X, "v": Y, "junk": ["?"] * 8}), inputs="t", value="v"
    ),
    "nullable": lambda m: m.update(
        pd.DataFrame({"t": X, "y": pd.array(Y, "Float64")}).convert_dtypes(dtype_backend="pyarrow"),
        inputs="t",
    ),
    "objects": lambda m: m.update(pd.DataFrame({"t": X, "y": Y}).astype(object), inputs="t"),
}


@pytest.mark.parametrize("way", WAYS)
def test_ways_to_say_the_same(plain, way):
    model = single(inducing=GRID)
    assert WAYS[way](model).dropped == {}
    assert_same(model, plain)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_a_wide_frame_with_gaps(weather, make):
    alarm = [None, None, "no", "yes", "no", "yes", "no", "yes"]
    columns = {"t": X, "sky": SKY, "wind": [*Y[:6], None, None], "alarm": alarm}
    model = several()
    report = model.update(make(columns), inputs="t")
    assert_same(model, weather)
    assert report.dropped == {"wind": "2 missing values", "alarm": "2 missing values"}
    assert report.observations == {"wind": 6, "sky": 8, "alarm": 6}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_a_long_frame(weather, make):
    rows = [(t, "wind", str(v)) for t, v in zip(X[:6], Y[:6], strict=True)]
    model = several()
    with pytest.raises(sgp.DataError, match=r"observations of channel 'wind' as numbers"):
        model.update(  # numbers as text are not guessed at
            make({k: [r[i] for r in rows] for i, k in enumerate("twv")}),
            inputs="t", channel="w", value="v",
        )  # fmt: skip
    if make is pd.DataFrame:  # where a column may hold values of several kinds
        rows = [(t, "sky", v) for t, v in zip(X, SKY, strict=True)]
        rows += [(t, "wind", v) for t, v in zip(X[:6], Y[:6], strict=True)]
        rows += [(t, "alarm", v) for t, v in zip(X[2:], ["no", "yes"] * 3, strict=True)]
        frame = pd.DataFrame(rows, columns=["t", "who", "v"])
        model.update(frame, inputs="t", channel="who", value="v")
        assert_same(model, weather)


def test_samples_in_order():
    """Row by row, channels in order within a row; a long frame as it is."""
    channels = {"a": sgp.Gaussian(), "b": sgp.Gaussian()}
    wide = pd.DataFrame({"b": [10.0, None, 30.0], "t": [0.0, 1.0, 2.0], "a": [1.0, 2.0, 3.0]})
    who, t, y = ["a", "b", "a", "a", "b"], [0.0, 0.0, 1.0, 2.0, 2.0], [1.0, 10.0, 2.0, 3.0, 30.0]
    long = pl.DataFrame({"t": t, "who": who, "y": y})
    calls = [
        lambda m: m.update_many(t, y, who),
        lambda m: m.update_many(wide, inputs="t"),
        lambda m: m.update_many(long, inputs="t", channel="who", value="y"),
    ]
    models = [
        sgp.ContinualGP(channels, latents=[sgp.RBF(2.0)], learning=None, inducing=GRID)
        for _ in calls
    ]
    reports = [call(model) for call, model in zip(calls, models, strict=True)]
    assert_same(models[0], models[1])
    assert_same(models[0], models[2])
    assert reports[1].dropped == {"b": "1 missing value"}
    one_by_one = sgp.ContinualGP(channels, latents=[sgp.RBF(2.0)], learning=None, inducing=GRID)
    expected = {"a": [], "b": []}
    for name, *sample in zip(who, t, y, strict=True):
        score = one_by_one.update({name: ([sample[0]], [sample[1]])}).log_predictive[name]
        expected[name].append(score)
    for report in reports:
        for name, scores in report.log_predictive_rows.items():
            np.testing.assert_allclose(scores, expected[name], rtol=1e-6)


def test_channels_with_numbers_for_names():
    """A frame holds them as numbers, the model as text."""
    channels = {"1": sgp.Gaussian(), "2": sgp.Gaussian()}
    frame = pd.DataFrame({"t": X, "sensor": [1, 2] * 4, "v": Y})
    text = frame.assign(sensor=["1", "2"] * 4)
    models = [sgp.ContinualGP(channels, learning=None, inducing=GRID) for _ in range(2)]
    for model, data in zip(models, (frame, text), strict=True):
        model.update(data, inputs="t", channel="sensor", value="v")
    assert_same(*models)


# -- times ---------------------------------------------------------------------------------------

TIMES = {
    "datetime64": (DATES.to_numpy(), None),
    "seconds": (DATES.to_numpy().astype("M8[s]"), None),
    "datetimes": (DATES.to_pydatetime().tolist(), None),
    "index": (DATES, None),
    "series": (pd.Series(DATES), None),
    "polars": (pl.Series(DATES.to_numpy()), None),
    "index in Berlin": (DATES.tz_localize("UTC").tz_convert(BERLIN), BERLIN),
    "polars in Berlin": (
        pl.Series(DATES.to_numpy()).dt.replace_time_zone("UTC").dt.convert_time_zone(BERLIN),
        BERLIN,
    ),
    "datetimes in Berlin": (
        [d.replace(tzinfo=dt.UTC).astimezone(ZoneInfo(BERLIN)) for d in DATES.to_pydatetime()],
        BERLIN,
    ),
    "arrow in Berlin": (
        pd.Series(DATES.tz_localize("UTC").tz_convert(BERLIN)).convert_dtypes(
            dtype_backend="pyarrow"
        ),
        BERLIN,
    ),
    "offset": (
        [
            d.replace(tzinfo=dt.UTC).astimezone(dt.timezone(dt.timedelta(hours=5)))
            for d in DATES.to_pydatetime()
        ],
        "UTC",
    ),
}


@pytest.mark.parametrize("kind", TIMES)
def test_times(kind):
    times, zone = TIMES[kind]
    model, numbers = single(), single()
    report = model.update(times, Y)
    days = (DATES - DATES[0]) / pd.Timedelta(days=1)
    numbers.update(days.to_numpy(), Y)
    assert_same(model, numbers)
    unit = "days since 2024-03-30" + (f" ({zone})" if zone else "")
    assert report.hyperparameters["inputs"] == {"x": unit}
    prediction = model.predict(times)
    instants = pd.DatetimeIndex(DATES) if zone is None else DATES.tz_localize("UTC")
    for backend in ("pandas", "polars"):
        back = prediction.to_frame(backend=backend)["x"]
        assert (pd.DatetimeIndex(list(back)) == instants).all()
        assert (
            zone in str(back.dtype)
            if zone
            else back.dtype in (pl.Datetime, "M8[ns]", "M8[us]", "M8[s]")
        )
    assert all(pd.Timestamp(a) == b for a, b in zip(prediction.x, instants, strict=True))
    if zone:
        assert prediction.x[0].utcoffset() == instants.tz_convert(zone)[0].utcoffset()


def test_microseconds_survive():
    """At their own scale, half a century from any epoch."""
    times = np.datetime64("2024-06-01T12:34:56.789012") + np.arange(8).astype("m8[us]")
    model = single()
    model.update(times, Y)
    between = model.predict(times).mean
    plain = single()
    plain.update(np.arange(8.0), Y)
    np.testing.assert_allclose(between, plain.predict(np.arange(8.0)).mean, atol=1e-4)
    axis = model.axes[0]
    np.testing.assert_array_equal(axis.values((times - np.datetime64("2024-06-01")) / DAY), times)


DAY = np.timedelta64(1, "D")

REFUSED = {
    "numbers for times": (lambda m: m.update(X, Y), "as times"),
    "a zone that was not": (
        lambda m: m.update(DATES.tz_localize("UTC").tz_convert(BERLIN), Y),
        r"as times without a time zone, as in the first batch; "
        r"got times in Europe/Berlin, such as 2024-03-30 01:00:00\+01:00\. "
        r"Take the zone away: `times\.tz_localize\(None\)`",
    ),
    "text with a zone that was not": (
        lambda m: m.update(["2024-03-30T00:00Z"], [1.0]),
        "as times without a time zone, as in the first batch; got times in UTC",
    ),
    "NaT": (lambda m: m.update([DATES[0], pd.NaT], [1.0, 2.0]), "finite inputs"),
    "zones and none": (
        lambda m: m.update([DATES[0], DATES[1].tz_localize("UTC")], [1.0, 2.0]),
        r"as times that all have a time zone, or that all have none; got 2024-03-30 00:00:00 "
        r"without a time zone, and 2024-03-30 06:00:00\+00:00 with one\. Say the zone",
    ),
    "text with zones and without": (
        lambda m: m.predict(["2024-03-30T00:00", "2024-03-30T00:00+02:00"]),
        "as times that all have a time zone, or that all have none",
    ),
    "words": (lambda m: m.update(["noon"], [1.0]), "as numbers or times; got 'noon' in row 0"),
    "a word among times": (
        lambda m: m.update(["2024-03-30", "noon"], [1.0, 2.0]),
        r"as numbers or times; got 'noon' in row 1\. .*ISO 8601",
    ),
    "no such day": (lambda m: m.predict(["2024-02-30"]), "as numbers or times; got '2024-02-30'"),
    "numbers as text": (lambda m: m.update(["20240330"], [1.0]), "as numbers or times"),
    "text beside datetimes": (
        lambda m: m.update(["2024-03-30", dt.datetime(2024, 3, 30)], [1.0, 2.0]),
        "as numbers or times; got .*text among other values",
    ),
    "missing text": (
        lambda m: m.update(["2024-03-30", None], [1.0, 2.0]),
        "1 NaN or missing value, in row 1",
    ),
    "spans": (lambda m: m.update(DATES - DATES[0], Y), "as numbers"),
    "numbers to predict at": (lambda m: m.predict(X), "as times"),
    "times to observe": (lambda m: m.update(DATES, DATES), "as numbers"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_times_that_cannot_be(kind):
    model = single(inducing=GRID)
    model.update(DATES, Y)
    before = bits(model)
    call, message = REFUSED[kind]
    with pytest.raises(sgp.DataError, match=message):
        call(model)
    for a, b in zip(bits(model), before, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("zone", ["UTC", BERLIN])
def test_times_that_lost_their_zone(zone):
    model = single(inducing=GRID)
    model.update(DATES.tz_localize("UTC").tz_convert(zone), Y)
    message = (
        rf"as times with a time zone \(in {zone} or any other\), as in the first batch; "
        rf'got times without a time zone, such as 2024-03-30 00:00:00\. .*tz_localize\("{zone}"\)'
    )
    for times in (DATES, DATES.astype(str), pl.Series(DATES.to_numpy())):
        with pytest.raises(sgp.DataError, match=message):
            model.update(times, Y)
        with pytest.raises(sgp.DataError, match=message):
            model.predict(times)


def test_any_zone_is_the_same_instants():
    """In one column and from batch to batch, whichever zone came first."""
    zones = [dt.UTC, ZoneInfo(BERLIN), ZoneInfo("Asia/Tokyo"), dt.timezone(dt.timedelta(hours=-3))]
    utc = DATES.tz_localize("UTC")
    mixed = [time.tz_convert(zone) for time, zone in zip(utc, zones * 2, strict=True)]
    expected = single(inducing=GRID)
    expected.update(utc, Y)
    for times in (mixed, pd.Series(mixed, dtype=object), [str(time) for time in mixed]):
        model = single(inducing=GRID)
        report = model.update(times, Y)
        assert_same(model, expected)
        assert report.hyperparameters["inputs"] == {"x": "days since 2024-03-30 (UTC)"}
    after = single(inducing=GRID)
    after.update(utc.tz_convert("Asia/Tokyo"), Y)
    for model in (expected, after):
        model.update(utc.tz_convert(BERLIN) + pd.Timedelta(hours=1), Y)
    assert_same(after, expected)
    assert str(after.axes[0]) == "days since 2024-03-30 (Asia/Tokyo)"
    prediction = after.predict(mixed)
    assert list(prediction.x) == list(utc)
    np.testing.assert_array_equal(prediction.mean, expected.predict(utc).mean)


TEXT = [f"{time:%Y-%m-%dT%H:%M}" for time in DATES]
WRITTEN = {
    "list": lambda text: (text, Y),
    "array": lambda text: (np.array(text), Y),
    "objects": lambda text: (np.array(text, object), Y),
    "series": lambda text: (pd.Series(text), Y),
    "pandas text": lambda text: (pd.Series(text, dtype="string"), Y),
    "categories": lambda text: (pd.Categorical(text), Y),
    "polars": lambda text: (pl.Series(text), Y),
    "index": lambda text: (pd.Series(Y, index=text),),
    "frame with an index": lambda text: (pd.DataFrame({"y": Y}, index=pd.Index(text, name="t")),),
    "pandas column": lambda text: (pd.DataFrame({"t": text, "y": Y}),),
    "polars column": lambda text: (pl.DataFrame({"t": text, "y": Y}),),
}


@pytest.mark.parametrize("offset", ["", "Z", "+02:00"])
@pytest.mark.parametrize("way", WRITTEN)
def test_times_as_text(way, offset):
    """ISO 8601 is read as times, by `update`, `update_many` and `predict`."""
    times = DATES.tz_localize(None if not offset else "UTC")
    times = times - pd.Timedelta(hours=2) if offset == "+02:00" else times
    expected = single(inducing=GRID)
    expected.update(times, Y)
    data = WRITTEN[way]([time + offset for time in TEXT])
    inputs = {"inputs": "t"} if way.endswith("column") else {}
    model = single(inducing=GRID)
    model.update(*data, **inputs)
    assert_same(model, expected)
    at = data[0].index if way == "index" else data[0]
    prediction = model.predict(at)
    np.testing.assert_array_equal(prediction.mean, expected.predict(times).mean)
    assert [pd.Timestamp(x) for x in prediction.x] == list(times)


def test_samples_with_times_as_text():
    models = [single(latents=[sgp.RBF(1.0)], inducing=GRID) for _ in range(2)]
    for model, times in zip(models, (DATES, TEXT), strict=True):
        model.update_many(times, Y)
    assert_same(*models)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2013-06-01", "2013-06-01"),
        ("2013-06-01T12:00", "2013-06-01T12:00"),
        ("2013-06-01 12:00:30", "2013-06-01T12:00:30"),
        ("2013-06-01T12:00:30.25", "2013-06-01T12:00:30.25"),
        ("2013-06-01T12:00:00.123456789", "2013-06-01T12:00:00.123456"),
        ("2013-06-01T12:00Z", "2013-06-01T12:00"),
        ("2013-06-01T12:00:00+0530", "2013-06-01T06:30"),
        ("2013-06-01T12:00:00.5-03:00", "2013-06-01T15:00:00.5"),
    ],
)
def test_what_text_says(text, time):
    column = columns.read_input([text], "inputs")
    assert column.values == [np.datetime64(time, "us")]
    assert (column.zone == "UTC") == any(mark in text[10:] for mark in "Z+-")


def test_one_time_as_text():
    model = single(inducing=GRID)
    model.update(DATES, Y)
    np.testing.assert_array_equal(model.predict(TEXT[3]).mean, model.predict(DATES[3:4]).mean)


def test_text_beside_numbers():
    """Rows of a list may hold both; text that is observed is a label, not a time."""
    model, expected = single(), single()
    model.update([[time, depth] for time, depth in zip(TEXT, X, strict=True)], Y)
    days = (DATES - DATES[0]) / pd.Timedelta(days=1)
    expected.update(np.stack([days, X], axis=-1), Y)
    assert_same(model, expected)
    labels = single(sgp.Bernoulli(), inducing=GRID)
    labels.update(X, [TEXT[0], TEXT[1]] * 4)
    assert labels.predict(X).classes == (TEXT[0], TEXT[1])


def test_times_where_numbers_came_first(plain):
    with pytest.raises(sgp.DataError, match="as numbers, as in the first batch; got times"):
        plain.update(DATES, Y)


def test_times_beside_numbers():
    frame = pd.DataFrame({"when": DATES, "depth": X, "y": Y})
    model = single()
    model.update(frame, inputs=["when", "depth"])
    assert list(model.hyperparameters["inputs"]) == ["when", "depth"]
    swapped = model.predict(frame[["y", "depth", "when"]])  # by name, not by place
    np.testing.assert_array_equal(swapped.mean, model.predict(frame).mean)
    assert list(swapped.to_frame().columns) == ["when", "depth", "mean", "std", "lower", "upper"]
    assert swapped.x.shape == (8, 2)
    model.update(frame)  # inputs are known by now
    with pytest.raises(sgp.DataError, match=r"'when', 'depth'.*; got"):
        model.update(frame.rename(columns={"when": "then"}), inputs=["then", "depth"])
    with pytest.raises(sgp.DataError, match="'depth'"):
        model.predict(frame[["when"]])


# -- labels --------------------------------------------------------------------------------------


def test_labels_come_back(weather):
    prediction = weather.predict(X, "sky")
    assert prediction.classes == ("rain", "snow", "sun")
    assert set(prediction.label) <= set(SKY)
    frame = prediction.to_frame()
    assert list(frame.columns) == ["x", "rain", "snow", "sun", "label"]
    np.testing.assert_allclose(frame[["rain", "snow", "sun"]], prediction.probabilities)
    assert set(np.unique(prediction.sample(20))) <= set(SKY)
    own = [prediction.classes.index(label) for label in SKY]
    expected = np.log(prediction.probabilities[np.arange(8), own])
    np.testing.assert_allclose(prediction.log_density(SKY), expected, atol=0.02)
    with pytest.raises(sgp.DataError, match="hail"):
        prediction.log_density("hail")
    alarm = weather.predict(X, "alarm")
    assert alarm.classes == ("no", "yes")
    np.testing.assert_allclose(alarm.probabilities[:, 1], alarm.mean)
    with pytest.raises(sgp.DataError, match="classes"):
        _ = weather.predict(X, "wind").label


def test_joint_draws_have_labels(weather):
    """Also beside channels with fewer latent parameters."""
    draws = weather.predict(X).sample(7)
    assert {name: values.shape for name, values in draws.items()} == dict.fromkeys(
        ("wind", "sky", "alarm"), (7, 8)
    )
    assert set(np.unique(draws["sky"])) <= set(SKY)
    assert set(np.unique(draws["alarm"])) <= {"no", "yes"}


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        (pd.Categorical(["b", "a"], ["c", "b", "a"]), ("c", "b", "a")),
        (pl.Series(["b", "a"], dtype=pl.Enum(["c", "b", "a"])), ("c", "b", "a")),
        (pl.Series(["b", "a"], dtype=pl.Categorical), ("a", "b", 2)),
        (pd.Series(["b", "a"], dtype="string"), ("a", "b", 2)),
        (np.array(["b", "a"]), ("a", "b", 2)),
        (pd.Categorical([7, 5]), (5, 7, 2)),
        (pd.cut(pd.Series([1.0, 3.0]), [0, 2, 4]), ("(0, 2]", "(2, 4]", 2)),
        (pd.Categorical(["b", "a"], list("gfedcba")), ("b", "a", 2)),
        ([1, 2], (0, 1, 2)),
    ],
)
def test_the_order_of_labels(values, classes):
    model = single(sgp.Categorical(3), inducing=GRID)
    model.update([0.0, 1.0], values)
    assert model.predict([0.0]).classes == classes


def test_labels_are_learned_as_they_appear():
    model = single(sgp.Categorical(3), inducing=GRID)
    model.update(X[:2], ["sun", "rain"])
    model.update(X[:2], ["sun", "fog"])
    assert model.predict(X).classes == ("rain", "sun", "fog")
    for wrong in (["snow", "sun"], [0, 1], [DATES[0]] * 2, [1.5, "sun"]):
        with pytest.raises(sgp.DataError):
            model.update(X[:2], wrong)
    assert model.predict(X).classes == ("rain", "sun", "fog")
    with pytest.raises(sgp.DataError, match=r"3 labels at most.*4.*'snow'"):
        model.update(X[:2], ["snow", "sun"])
    numbers = single(sgp.Categorical(3), inducing=GRID)
    numbers.update(X[:2], [0, 2])
    with pytest.raises(sgp.DataError, match="as numbers from 0 to 2"):
        numbers.update(X[:2], ["sun", "rain"])


def test_yes_and_no():
    model = single(sgp.Bernoulli(), inducing=GRID)
    model.update(X, X > 3)
    assert model.predict(X).classes == (False, True)
    assert model.predict(X).label.dtype == bool
    model.update(X, (X > 3).astype(int))  # the same in numbers
    gaps = pd.DataFrame({"t": X, "y": pd.array([True, None] * 4, "boolean")})
    assert model.update(gaps, inputs="t").dropped == {"y": "4 missing values"}


FLAGS = [True, False, True, True, False, True, False, False]
FLAGS_OR_NONE = [True, None, True, True, False, True, False, False]
AS_BOOLEANS = {
    "bool": pd.Series(FLAGS),
    "nullable": pd.array(FLAGS_OR_NONE, "boolean"),
    "objects": pd.Series(FLAGS, dtype=object),
    "objects and none": pd.Series(FLAGS_OR_NONE, dtype=object),
    "categories": pd.Categorical(FLAGS),
    "categories and none": pd.Categorical(FLAGS_OR_NONE),
    "polars": pl.Series(FLAGS_OR_NONE),
}
AS_NUMBERS = {
    "integers": pd.Series(FLAGS).astype(int),
    "nullable integers": pd.array(FLAGS_OR_NONE, "boolean").astype("Int64"),
    "floats": np.array(FLAGS_OR_NONE, float),
}
AS_TEXT = {
    "text": pd.Series(np.where(FLAGS, "yes", "no"), dtype="string"),
    "text in categories": pd.Categorical(np.where(FLAGS, "yes", "no")),
}
WITH_TWO = {"bernoulli": sgp.Bernoulli(), "two": sgp.Categorical(2), "three": sgp.Categorical(3)}


def flagged(values):
    return pd.DataFrame({"t": X, "y": values})


def after(family, *batches):
    model = single(family, inducing=GRID)
    for batch in batches:
        model.update(flagged(batch), inputs="t")
    return model.predict(X)


@pytest.mark.parametrize("family", [*WITH_TWO.values(), sgp.Ordinal(3)], ids=[*WITH_TWO, "grades"])
@pytest.mark.parametrize("first", AS_BOOLEANS.values(), ids=AS_BOOLEANS)
def test_booleans_are_labels(first, family):
    found = after(family, first)
    assert found.classes[:2] == (False, True)
    assert all(type(label) is bool for label in found.classes[:2])
    assert set(found.label) <= set(found.classes)
    assert set(np.ravel(found.sample(5))) <= set(found.classes)
    np.testing.assert_allclose(
        found.log_density(FLAGS), np.log(found.probabilities[range(8), np.array(FLAGS, int)])
    )


@pytest.mark.parametrize("family", WITH_TWO.values(), ids=WITH_TWO)
@pytest.mark.parametrize("number", AS_NUMBERS.values(), ids=AS_NUMBERS)
@pytest.mark.parametrize("boolean", AS_BOOLEANS.values(), ids=AS_BOOLEANS)
def test_booleans_equal_zero_and_one(boolean, number, family):
    """Either may come first, and names the classes."""
    named, numbered = after(family, boolean, number), after(family, number, boolean)
    assert named.classes[:2] == (False, True)
    assert [type(label) for label in numbered.classes[:2]] == [int, int]
    in_numbers = after(family, number, np.asarray(pd.array(boolean, "boolean").astype("Float64")))
    np.testing.assert_array_equal(numbered.probabilities, in_numbers.probabilities)
    turned = after(family, np.asarray(pd.array(boolean, "boolean").astype("Float64")), number)
    np.testing.assert_array_equal(named.probabilities, turned.probabilities)


@pytest.mark.parametrize("family", WITH_TWO.values(), ids=WITH_TWO)
@pytest.mark.parametrize("text", AS_TEXT.values(), ids=AS_TEXT)
@pytest.mark.parametrize("other", [*AS_BOOLEANS.values(), *AS_NUMBERS.values()])
def test_text_does_not_mix_with_booleans_or_numbers(other, text, family):
    assert after(family, text, text).classes[:2] == ("no", "yes")
    for pair in ((text, other), (other, text)):
        with pytest.raises(sgp.DataError, match=r"as in the first batch|labels at most"):
            after(family, *pair)


def test_a_boolean_that_is_refused_is_called_one():
    with pytest.raises(sgp.DataError, match=r"\['no', 'yes'\].*booleans, such as True"):
        after(sgp.Bernoulli(), AS_TEXT["text"], AS_BOOLEANS["bool"])
    with pytest.raises(sgp.DataError, match="as booleans, as in the first batch"):
        after(sgp.Categorical(3), AS_BOOLEANS["bool"], np.arange(8) % 3)


def test_grades_need_an_order():
    model = single(sgp.Ordinal(3), inducing=GRID)
    with pytest.raises(sgp.DataError, match="in an order"):
        model.update(X[:2], ["low", "high"])
    order = ["low", "middle", "high"]
    model.update(X[:2], pd.Categorical(["low", "high"], order))
    assert model.predict(X).classes == tuple(order)
    model.update(X[:2], ["high", "middle"])  # known by now


# -- frames without a value ---------------------------------------------------------------------

NOTHING = {
    "pandas": (pd.DataFrame({"t": X, "wind": np.nan, "alarm": None}), "t"),
    "polars": (pl.DataFrame({"t": X, "wind": [np.nan] * 8, "alarm": [None] * 8}), "t"),
    "times": (pd.DataFrame({"when": TEXT, "wind": np.nan, "alarm": None}), "when"),
}


def assert_nothing_observed(model, call, dropped):
    before, schema = model.to_bytes(), model._version.progress.schema
    report = call(model)
    assert report.result is sgp.Result.NOTHING_OBSERVED
    assert report.dropped == dropped
    assert report.observations == {}
    assert model.to_bytes() == before
    assert model._version.progress.schema is schema


@pytest.mark.parametrize("call", ["update", "update_many"])
@pytest.mark.parametrize("kind", NOTHING)
def test_a_first_frame_without_a_value(kind, call):
    """It fixes neither the inputs nor the labels: numbers may follow times."""
    frame, inputs = NOTHING[kind]
    model = several()
    gone = {"wind": "8 missing values", "alarm": "8 missing values"}
    assert_nothing_observed(model, lambda m: getattr(m, call)(frame, inputs=inputs), gone)
    assert model.state is None
    assert model.axes == ()


LATER = {
    "pandas": (NOTHING["pandas"][0], {"inputs": "t"}, {"wind": 8, "alarm": 8}),
    "polars": (NOTHING["polars"][0], {"inputs": "t"}, {"wind": 8, "alarm": 8}),
    "series": (pd.Series([None], index=[1.0], name="sky", dtype=object), {}, {"sky": 1}),
    "long": (
        pd.DataFrame({"t": X[:3], "who": ["sky", "wind", "sky"], "v": [None] * 3}),
        {"inputs": "t", "channel": "who", "value": "v"},
        {"wind": 1, "sky": 2},
    ),
}


@pytest.mark.parametrize("call", ["update", "update_many"])
@pytest.mark.parametrize("kind", LATER)
def test_a_later_frame_without_a_value(weather, kind, call):
    frame, layout, gone = LATER[kind]
    counts = {name: f"{n} missing value{'s' * (n > 1)}" for name, n in gone.items()}
    assert_nothing_observed(weather, lambda m: getattr(m, call)(frame, **layout), counts)


def test_a_stream_goes_on_after_nothing(plain):
    """The model ends as if the batches without a value had not come."""
    model = single(inducing=GRID)
    model.update(pd.Series(np.nan, index=DATES))
    model.update(pd.Series(Y, index=X))
    model.update(pd.Series(np.nan, index=X))
    assert_same(model, plain)
    with pytest.raises(sgp.DataError, match="as numbers, as in the first batch; got times"):
        model.update(pd.Series(np.nan, index=DATES))  # inputs are checked all the same
    with pytest.raises(sgp.DataError, match="finite observations"):
        model.update(X, [np.nan] * 8)  # without a frame, a missing value is an error


# -- frames that cannot be used ------------------------------------------------------------------

FRAME = pd.DataFrame({"t": X, "wind": Y, "sky": SKY})
BAD_FRAMES = {
    "unknown column": (lambda m: m.update(FRAME.assign(speed=1.0), inputs="t"), "'speed'.*Drop it"),
    "unknown input": (lambda m: m.update(FRAME, inputs="when"), "'when'"),
    "no inputs": (
        lambda m: m.update(FRAME),
        r"name of the input column.* got none, for a frame with the columns \['t', 'wind', 'sky'\]",
    ),
    "a long frame as a wide one": (
        lambda m: m.update(FRAME.assign(sensor="wind"), inputs="t"),
        "'sensor'.*one observation.*`channel=` and `value=`",
    ),
    "unknown columns": (
        lambda m: m.update(FRAME.assign(speed=1.0, gust=2.0, hail=3.0), inputs="t"),
        "'speed' and 2 more",
    ),
    "no channel": (
        lambda m: m.update(FRAME[["t"]], inputs="t"),
        r"at least one observation, in a column that is not an input; got no other .*'t'",
    ),
    "no rows": (
        lambda m: m.update(FRAME[:0], inputs="t"),
        "at least one observation; got an empty",
    ),
    "channel alone": (lambda m: m.update(FRAME, inputs="t", channel="sky"), "`channel=` alone"),
    "value alone": (lambda m: m.update(FRAME, inputs="t", value="wind"), "`value=` alone"),
    "channels of nobody": (
        lambda m: m.update(FRAME, inputs="t", channel="sky", value="wind"),
        r"8 channel names among .*; got 'sun'",
    ),
    "rows of nobody": (
        lambda m: m.update(
            FRAME.assign(who=[None, *["wind"] * 7]), inputs="t", channel="who", value="wind"
        ),
        "a channel name in every row; got 1 missing name, in row 0",
    ),
    "lazy": (lambda m: m.update(pl.LazyFrame({"t": X}), inputs="t"), "collect"),
    "twice": (
        lambda m: m.update(pd.concat([FRAME, FRAME[["wind"]]], axis=1), inputs="t"),
        "'wind' twice",
    ),
    "infinite": (
        lambda m: m.update(FRAME.assign(wind=[np.nan, np.inf, *Y[2:]]), inputs="t"),
        "row 1",
    ),
    "missing input": (lambda m: m.update(FRAME.assign(t=[None, *X[1:]]), inputs="t"), "row 0"),
    "columns without a frame": (
        lambda m: m.update({"wind": (X, Y)}, inputs="t"),
        "a frame to go with `inputs=`; got dict",
    ),
    "names without a frame": (
        lambda m: m.update({"wind": (X, Y)}, channel=np.array(["wind"] * 8)),
        "a frame to go with `channel=`; got dict",
    ),
    "columns of samples": (
        lambda m: m.update_many(X, Y, "wind", inputs="t", value="v"),
        "a frame to go with `inputs=` and `value=`; got ndarray",
    ),
    "lists in cells": (lambda m: m.update(FRAME.assign(wind=[[1.0]] * 8), inputs="t"), "'wind'"),
    "series of nobody": (
        lambda m: m.update(pd.Series(Y, X, name="speed")),
        r"the name of a channel, among .*; got 'speed'",
    ),
    "series without a name": (lambda m: m.update(pd.Series(Y, X)), "got one without a name"),
}


@pytest.mark.parametrize("kind", BAD_FRAMES)
def test_frames_that_cannot_be_used(kind):
    model = several()
    call, message = BAD_FRAMES[kind]
    with pytest.raises(sgp.DataError, match=message):
        call(model)
    assert model.state is None
    assert model.observations == {"wind": 0, "sky": 0, "alarm": 0}


# -- anything at all -----------------------------------------------------------------------------


def random_column(rng, rows):
    """Something that people have had in a column."""
    kinds = [
        lambda: rng.normal(size=rows),
        lambda: np.where(rng.uniform(size=rows) < 0.5, np.nan, rng.normal(size=rows)),
        lambda: np.where(rng.uniform(size=rows) < 0.1, np.inf, rng.normal(size=rows)),
        lambda: rng.integers(-2, 5, rows),
        lambda: rng.integers(0, 2, rows).astype(bool),
        lambda: rng.choice(["sun", "rain", "snow", "fog"], rows),
        lambda: rng.choice(["yes", "no"], rows).astype(object),
        lambda: rng.choice(np.array([None, 1.0, "a", True, DATES[0], 1j, b"x"], object), rows),
        lambda: pd.Series(rng.choice(DATES, rows)),
        lambda: pd.Series(rng.choice(DATES, rows)).dt.tz_localize("UTC"),
        lambda: pd.Series(DATES[rng.integers(0, 8, rows)] - DATES[0]),
        lambda: pd.Series(pd.Categorical(rng.choice(["no", "yes"], rows))),
        lambda: pd.Series([None] * rows, dtype=object),
        lambda: rng.normal(size=rows) + 1j,
        lambda: pd.Series([[1, 2]] * rows),
        lambda: pd.Series([10**400] * rows, dtype=object),
        lambda: pd.Series(pd.period_range("2024", periods=max(rows, 1), freq="D")[:rows]),
        lambda: pd.Series([{}] * rows, dtype=object),
        lambda: rng.normal(size=rows).astype(np.float16),
        lambda: pd.array(rng.integers(0, 3, rows), "Int8"),
        lambda: rng.normal(size=rows) * 1e200,
    ]
    return kinds[rng.integers(len(kinds))]()


def random_frame(rng):
    rows = int(rng.choice([0, 1, 5]))
    usual = {
        "t": lambda: rng.normal(size=rows),
        "wind": lambda: np.where(rng.uniform(size=rows) < 0.3, np.nan, rng.normal(size=rows)),
        "sky": lambda: rng.choice(["sun", "rain", None], rows),
        "alarm": lambda: rng.integers(0, 2, rows),
        "junk": lambda: rng.choice(DATES, rows),
        3: lambda: np.zeros(rows),
    }
    chances = dict(zip(usual, [0.9, 0.7, 0.7, 0.7, 0.1, 0.1], strict=True))
    columns = {
        name: pd.Series(column() if rng.uniform() < 0.5 else random_column(rng, rows))
        for name, column in usual.items()
        if rng.uniform() < chances[name]
    }
    frame = pd.DataFrame(columns)
    if rng.uniform() < 0.3:
        try:
            return pl.from_pandas(frame)
        except Exception:  # polars' own limits
            return frame
    is_index = "t" in columns and columns["t"].dtype != np.float16 and rng.uniform() < 0.3
    return frame.set_index("t") if is_index else frame


def test_any_frame_is_learned_or_refused():
    rng = np.random.default_rng(0)
    model = several()
    model.update({"wind": (X, Y), "sky": (X, SKY), "alarm": (X, np.arange(8) % 2)})
    refused = learned = 0
    for _ in range(300):
        frame = random_frame(rng)
        layout = [
            {"inputs": "t"},
            {},
            {"inputs": ["t", "junk"]},
            {"inputs": "t", "channel": "sky", "value": "wind"},
            {"inputs": 3},
        ][rng.choice(5, p=[0.6, 0.1, 0.1, 0.1, 0.1])]
        before = model._version
        try:
            model.update(frame, **layout)
            learned += 1
        except sgp.DataError:
            assert model._version is before
            refused += 1
    assert refused > 200
    assert learned > 10


def test_neither_pandas_nor_polars_is_loaded():
    code = (
        "import sys, numpy as np, streamgp as sgp\n"
        "m = sgp.ContinualGP(sgp.Gaussian())\n"
        "from streamgp.data.reader import gather, Layout\n"
        "from streamgp.data.schema import Schema\n"
        "for x in ([1.0], ['2013-06-01']):\n"
        "    gather(x, [2.0], Layout(), {'y': sgp.Gaussian()}, Schema())\n"
        "assert not {'pandas', 'polars'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
