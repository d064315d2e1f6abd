"""Tables of Spark: training and predicting by key, and one model for all rows."""

import numpy as np
import pytest

import streamgp as sgp
from streamgp.errors import DataError
from streamgp.spark import predict, predictor, train
from streamgp.spark.layout import Layout
from tests.spark.conftest import readings


def test_training_is_that_of_one_model_per_key(spark):
    table = readings(0, keys=3, rows=30)
    shuffled = table.sample(frac=1, random_state=0)
    model = sgp.ContinualGP(sgp.Gaussian())
    found = train(spark.createDataFrame(shuffled), model, key="sensor", inputs="time").collect()
    assert sorted(row.sensor for row in found) == ["s0", "s1", "s2"]
    assert [row.observations for row in found] == [30] * 3
    own = table[table["sensor"] == "s2"].drop(columns="sensor")
    model.update(own, inputs="time")
    loaded = sgp.from_bytes(bytes(next(row.model for row in found if row.sensor == "s2")))
    np.testing.assert_allclose(
        loaded.predict(own["time"]).mean, model.predict(own["time"]).mean, atol=1e-6
    )


def test_a_key_that_cannot_be_learned_is_reported(spark):
    table = readings(0, keys=2)
    table.loc[table["sensor"] == "s0", "y"] = np.inf
    model = sgp.ContinualGP(sgp.Gaussian())
    frame = spark.createDataFrame(table)
    found = train(frame, model, key="sensor", inputs="time")
    rows = {row.sensor: row for row in found.collect()}
    assert "finite" in rows["s0"].problem
    assert rows["s0"].model is None
    assert rows["s1"].problem is None
    predicted = predict(frame, found, key="sensor", inputs="time").toPandas()
    assert set(predicted["sensor"]) == {"s1"}


def test_one_model_as_a_function_of_columns(spark):
    x = np.linspace(0, 6, 50)
    model = sgp.ContinualGP(sgp.Gaussian())
    model.update(np.stack([x, x[::-1]], axis=1), np.sin(x) + 0.1 * np.cos(40 * x))
    frame = spark.createDataFrame([(float(a), float(6 - a)) for a in x[:7]], "a DOUBLE, b DOUBLE")
    found = frame.select(predictor(model)("a", "b").alias("y")).select("y.*").toPandas()
    expected = model.predict(np.stack([x[:7], 6 - x[:7]], axis=1))
    np.testing.assert_allclose(found["mean"], expected.mean, atol=1e-9)
    np.testing.assert_allclose(found["std"], expected.std, atol=1e-9)


def test_one_model_as_a_function_of_a_single_column(spark):
    x = np.linspace(0, 6, 50)
    model = sgp.ContinualGP(sgp.Gaussian())
    model.update(x, np.sin(x))
    frame = spark.createDataFrame([(1.5,), (4.0,)], "x DOUBLE")
    found = frame.select(predictor(model)("x").alias("y")).select("y.*").toPandas()
    np.testing.assert_allclose(found["mean"], model.predict([1.5, 4.0]).mean, atol=1e-9)


def test_models_over_times_are_predicted_by_key(spark):
    model = sgp.ContinualGP(sgp.Gaussian())
    model.update(readings(0, keys=1).drop(columns="sensor"), inputs="time")
    with pytest.raises(DataError, match="over times"):
        predictor(model)


@pytest.mark.parametrize(("zone", "kind"), [("UTC", "instant"), (None, "clock")])
def test_times_of_forecasts_are_microseconds(zone, kind):
    model = sgp.ContinualGP(sgp.Gaussian())
    table = readings(0, keys=1).drop(columns="sensor")
    table["time"] = table["time"].dt.tz_convert(zone)
    model.update(table, inputs="time")
    ahead = model.forecast(3, "1min")
    first = table["time"].max().value // 1000 + 60_000_000
    packed = Layout(("sensor",), ("time",), (kind,)).repacked(ahead.x)
    assert packed == [first, first + 60_000_000, first + 120_000_000]
