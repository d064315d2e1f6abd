"""Streams of Spark: the models of all keys are those of a loop over them."""

import numpy as np
import pandas as pd
import pytest

import streamgp as sgp
from streamgp.errors import ConfigurationError, DataError
from streamgp.spark import learn, models, predict
from tests.spark.conftest import begun, read_stream, readings, result, run, write

SCHEMA = "sensor STRING, time TIMESTAMP, y DOUBLE"
BATCHES = 3


def start():
    return sgp.ContinualGP(sgp.Gaussian())


def alone(batches, key="s1"):
    """The model of one key, updated without Spark, and its reports."""
    model, reports = start(), []
    for batch in batches:
        own = batch[batch["sensor"] == key].drop(columns="sensor")
        reports.append(model.update(own, inputs="time"))
    return model, reports


@pytest.fixture(scope="module")
def stream(spark, tmp_path_factory):
    """A stream that has been learned: its folder, checkpoint, batches and scores."""
    folder = tmp_path_factory.mktemp("stream")
    batches = [readings(number) for number in range(BATCHES)]
    for number, batch in enumerate(batches):
        write(batch, folder / "in", number)
    frame = read_stream(spark, folder / "in", SCHEMA)
    scores = run(learn(frame, start(), key="sensor", inputs="time"), folder)
    return folder, batches, scores


def test_scores_are_those_of_one_model_per_key(stream):
    _, batches, scores = stream
    _, reports = alone(batches)
    expected = np.concatenate([report.log_predictive_rows["y"] for report in reports])
    own = scores[scores["sensor"] == "s1"].sort_values("time")
    np.testing.assert_allclose(own["log_density"], expected, rtol=1e-8, atol=1e-8)
    assert len(scores) == sum(map(len, batches))
    assert scores["problem"].isna().all()


def test_checkpoint_has_the_models(spark, stream):
    folder, batches, _ = stream
    found = {r.sensor: bytes(r.model) for r in models(spark, folder / "checkpoint").collect()}
    assert sorted(found) == ["s0", "s1", "s2", "s3"]
    model, _ = alone(batches)
    loaded = sgp.from_bytes(found["s1"])
    times = batches[1]["time"].iloc[:6]
    np.testing.assert_allclose(loaded.predict(times).mean, model.predict(times).mean, atol=1e-8)
    assert loaded.axes[0].zone == "UTC"
    assert loaded.observations == model.observations


def test_predictions_of_many_keys(spark, stream):
    folder, batches, _ = stream
    table = spark.createDataFrame(batches[2])
    found = predict(table, models(spark, folder / "checkpoint"), key="sensor", inputs="time")
    own = found.filter("sensor = 's1'").orderBy("time").toPandas()
    model, _ = alone(batches)
    expected = model.predict(batches[2]["time"].iloc[:6])
    np.testing.assert_allclose(own["mean"], expected.mean, atol=1e-8)
    np.testing.assert_allclose(own["upper"], expected.interval(0.95)[1], atol=1e-7)


def test_restart_counts_every_row_once(spark, stream):
    folder, batches, _ = stream
    later = [readings(number) for number in range(BATCHES, BATCHES + 2)]
    for number, batch in enumerate(later):
        write(batch, folder / "in", BATCHES + number)
    frame = read_stream(spark, folder / "in", SCHEMA)
    again = run(learn(frame, start(), key="sensor", inputs="time"), folder)
    assert len(again) == sum(map(len, [*batches, *later]))
    _, reports = alone([*batches, *later])
    expected = np.concatenate([report.log_predictive_rows["y"] for report in reports])
    own = again[again["sensor"] == "s1"].sort_values("time")
    np.testing.assert_allclose(own["log_density"], expected, rtol=1e-7, atol=1e-7)


def test_bad_batch_of_one_key_leaves_the_others(spark, tmp_path):
    good, bad = readings(0), readings(1)
    bad.loc[bad["sensor"] == "s2", "y"] = np.inf
    write(good, tmp_path / "in", 0)
    write(bad, tmp_path / "in", 1)
    frame = read_stream(spark, tmp_path / "in", SCHEMA)
    reports = learn(frame, start(), key="sensor", inputs="time", output="reports")
    found = run(reports, tmp_path)
    problems = found[found["problem"].notna()]
    assert problems["sensor"].tolist() == ["s2"]
    assert "finite" in problems["problem"].iloc[0]
    counts = {
        r.sensor: sgp.from_bytes(bytes(r.model)).observations["y"]
        for r in models(spark, tmp_path / "checkpoint").collect()
    }
    assert counts == {"s0": 12, "s1": 12, "s2": 6, "s3": 12}


def test_long_frames_forecasts_and_two_channels(spark, tmp_path):
    hours = np.arange(40.0)
    wide = pd.DataFrame({"h": hours, "load": np.sin(hours / 4), "jobs": np.arange(40.0) % 3})
    long = wide.melt("h", var_name="what", value_name="reading").assign(plant=7)
    write(long, tmp_path / "in", 0)
    frame = read_stream(spark, tmp_path / "in", "h DOUBLE, what STRING, reading DOUBLE, plant LONG")
    model = sgp.ContinualGP({"load": sgp.Gaussian(), "jobs": sgp.Poisson()})
    forecasts = learn(
        frame,
        model,
        key="plant",
        inputs="h",
        channel="what",
        value="reading",
        output="forecasts",
        ahead=3,
        every=2,
    )
    found = run(forecasts, tmp_path).sort_values(["channel", "h"])
    assert found["h"].tolist() == [41.0, 43.0, 45.0] * 2
    model.update(long.drop(columns="plant"), inputs="h", channel="what", value="reading")
    expected = model.forecast(3, 2, "jobs")
    own = found[found["channel"] == "jobs"]
    np.testing.assert_allclose(own["mean"], expected.mean, rtol=1e-6)
    np.testing.assert_allclose(own["upper"], expected.interval(0.95)[1])


def test_anomalies_are_rare_and_true(spark, tmp_path):
    for number in range(12):
        batch = readings(number, keys=2)
        if number == 11:
            batch.loc[batch["sensor"] == "s1", "y"] += 500.0
        write(batch, tmp_path / "in", number)
    frame = read_stream(spark, tmp_path / "in", SCHEMA)
    anomalies = learn(frame, start(), key="sensor", inputs="time", output="anomalies")
    found = run(anomalies, tmp_path)
    last = found[found["time"] == found["time"].max()]
    assert last["sensor"].tolist() == ["s1"]
    assert last["surprise"].iloc[0] > 3
    assert len(found) < 6


def test_silence_is_told_once(spark, tmp_path):
    write(readings(0, keys=2), tmp_path / "in", 0)
    frame = read_stream(spark, tmp_path / "in", SCHEMA)
    rows = learn(frame, start(), key="sensor", inputs="time", output="reports", silence="100ms")
    query = begun(rows, tmp_path).trigger(processingTime="1 second").start()
    try:
        for _ in range(60):
            query.awaitTermination(2)
            found = result(spark, tmp_path) if query.lastProgress else pd.DataFrame({"problem": []})
            silent = found[found["problem"].notna()]
            if len(silent) >= 2:
                break
    finally:
        query.stop()
    assert sorted(silent["sensor"]) == ["s0", "s1"]
    assert set(silent["problem"]) == {"no observation for 0.1 seconds"}


def test_wrong_calls_say_what_was_expected(spark):
    frame = spark.createDataFrame([("a", 1.0, 2.0)], "key STRING, x DOUBLE, y DOUBLE")
    with pytest.raises(DataError, match="columns"):
        learn(frame, start(), key="sensor", inputs="x")
    with pytest.raises(DataError, match="numbers or times"):
        learn(frame, start(), key="x", inputs="key")
    with pytest.raises(ConfigurationError, match="output"):
        learn(frame, start(), key="key", inputs="x", output="tables")
    with pytest.raises(ConfigurationError, match="ahead"):
        learn(frame, start(), key="key", inputs="x", output="forecasts")
