"""Fleets: the same as one model per key, whatever the mix of keys."""

import pickle
import threading

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import streamgp as sgp


def _model(**settings):
    return sgp.ContinualGP(sgp.Gaussian(), **{"learning": None, **settings})


def _table(rng, keys, rows, start=0.0, span=10.0):
    """Rows of all keys in random order."""
    key = rng.permutation(np.repeat(keys, rows))
    time = rng.uniform(start, start + span, len(key))
    level = np.array([sum(map(ord, str(k))) % 7 for k in key])
    return pd.DataFrame(
        {"key": key, "time": time, "y": level + np.sin(time) + 0.1 * rng.normal(size=len(key))}
    )


def _alone(tables, template, **options):
    """One model per key, updated in a loop."""
    models = {}
    for frame in tables:
        for key, rows in frame.groupby("key"):
            models.setdefault(key, template()).update(rows[["time", "y"]], inputs="time", **options)
    return models


def _assert_same(fleet, models, x, tolerance=1e-9):
    assert set(fleet) == set(models)
    for key, model in models.items():
        one, other = fleet[key].predict(x), model.predict(x)
        assert np.allclose(one.mean, other.mean, rtol=0, atol=tolerance)
        assert np.allclose(one.variance, other.variance, rtol=0, atol=tolerance)
        assert fleet[key].observations == model.observations


@pytest.mark.parametrize("learning", [None, sgp.VEM(evaluations=2)])
@pytest.mark.parametrize("engine", ["auto", "dense"])
def test_a_fleet_ends_as_one_model_per_key(engine, learning):
    rng = np.random.default_rng(1)
    keys = ["A", "B", "C"]
    tables = [_table(rng, keys, 6, 4.0 * i, 4.0) for i in range(3)]
    fleet = sgp.Fleet(_model(engine=engine, learning=learning))
    for frame in tables:
        fleet.update(frame, key="key", inputs="time")
    models = _alone(tables, lambda: _model(engine=engine, learning=learning))
    _assert_same(fleet, models, np.linspace(-1, 14, 9))


@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas])
def test_tables_of_any_library_are_taken(convert):
    frame = _table(np.random.default_rng(2), [1, 2], 8)
    fleet, other = sgp.Fleet(_model()), sgp.Fleet(_model())
    fleet.update(frame, key="key", inputs="time")
    other.update(convert(frame), key="key", inputs="time")
    _assert_same(other, dict(fleet), np.linspace(0, 10, 5), 0.0)


def test_long_tables_dictionaries_and_an_index_of_keys_are_taken():
    rng = np.random.default_rng(3)
    channels = {"a": sgp.Gaussian(), "b": sgp.Poisson()}
    count = 40
    frame = pd.DataFrame(
        {
            "key": rng.choice(["p", "q"], count),
            "time": rng.uniform(0, 5, count),
            "what": rng.choice(["a", "b"], count),
            "value": rng.poisson(2, count).astype(float),
        }
    )
    template = sgp.ContinualGP(channels, learning=None)
    fleet, indexed, by_key = (sgp.Fleet(template) for _ in range(3))
    layout = {"inputs": "time", "channel": "what", "value": "value"}
    fleet.update(frame, key="key", **layout)
    indexed.update(frame.set_index("key"), key="key", **layout)
    by_key.update({k: rows.drop(columns="key") for k, rows in frame.groupby("key")}, **layout)
    x = np.linspace(0, 5, 4)
    for key in ("p", "q"):
        for name in channels:
            wanted = fleet[key].predict(x, name).mean
            assert np.array_equal(indexed[key].predict(x, name).mean, wanted)
            assert np.array_equal(by_key[key].predict(x, name).mean, wanted)
    pairs = sgp.Fleet(_model())
    pairs.update({"p": (np.arange(4.0), np.ones(4)), "q": (np.arange(3.0), np.ones(3))})
    assert {key: model.observations["y"] for key, model in pairs.items()} == {"p": 4, "q": 3}


def test_a_bad_batch_of_one_key_is_that_keys_alone():
    rng = np.random.default_rng(4)
    first, second = (_table(rng, ["A", "B", "C"], 6, 5.0 * i, 5.0) for i in range(2))
    fleet = sgp.Fleet(_model())
    fleet.update(first, key="key", inputs="time")
    before = fleet["B"].to_bytes()
    second.loc[second["key"] == "B", "y"] = np.inf
    second.loc[len(second)] = ["new", np.nan, 1.0]
    report = fleet.update(second, key="key", inputs="time")
    assert set(report.errors) == {"B", "new"}
    assert set(report.keys) == {"A", "C"}
    assert fleet["B"].to_bytes() == before
    assert "new" not in fleet
    assert fleet["A"].observations == {"y": 12}
    table = report.to_frame()
    assert "finite" in table.set_index("key").loc["B", "error"]
    assert list(table[table["error"] == ""]["observations"]) == [6, 6]


def test_a_table_that_makes_no_sense_is_refused_as_a_whole():
    frame = _table(np.random.default_rng(5), ["A"], 4)
    fleet = sgp.Fleet(_model())
    with pytest.raises(sgp.DataError, match="'hour'"):
        fleet.update(frame, key="key", inputs="hour")
    with pytest.raises(sgp.DataError, match="'bed'"):
        fleet.update(frame, key="bed", inputs="time")
    with pytest.raises(sgp.DataError, match="column of keys"):
        fleet.update(frame, inputs="time")
    with pytest.raises(sgp.DataError, match="a dictionary of batches by key"):
        fleet.update([1.0, 2.0])
    with pytest.raises(sgp.DataError, match="none in row 2"):
        fleet.update(frame.assign(key=["A", "A", None, "A"]), key="key", inputs="time")
    assert len(fleet) == 0


def test_missing_values_are_left_out_and_counted():
    frame = pd.DataFrame(
        {"key": ["A", "A", "B", "B"], "time": [0.0, 1.0, 0.0, 1.0], "y": [1.0, np.nan] * 2}
    )
    fleet = sgp.Fleet(_model())
    report = fleet.update(frame, key="key", inputs="time")
    assert report.dropped == {"A": {"y": "1 missing value"}, "B": {"y": "1 missing value"}}
    later = pd.DataFrame({"key": ["A", "B"], "time": [2.0, 2.0], "y": [np.nan, 3.0]})
    report = fleet.update(later, key="key", inputs="time")
    assert {key: model.observations["y"] for key, model in fleet.items()} == {"A": 1, "B": 2}
    assert not report.errors


def test_labels_are_numbered_by_each_key():
    frame = pd.DataFrame(
        {
            "key": ["A"] * 3 + ["B"] * 3,
            "time": [0.0, 1, 2] * 2,
            "y": ["no", "yes", "no", "yes", "no", "yes"],
        }
    )
    fleet = sgp.Fleet(sgp.ContinualGP(sgp.Bernoulli(), learning=None))
    fleet.update(frame, key="key", inputs="time")
    for key, rows in frame.groupby("key"):
        model = sgp.ContinualGP(sgp.Bernoulli(), learning=None)
        model.update(rows[["time", "y"]], inputs="time")
        assert np.array_equal(fleet[key].predict([0.5]).mean, model.predict([0.5]).mean)
        assert fleet[key].predict([0.5]).classes == model.predict([0.5]).classes


def test_silence_is_the_time_since_the_last_observation_of_a_channel():
    channels = {"a": sgp.Gaussian(), "b": sgp.Gaussian()}
    fleet = sgp.Fleet(sgp.ContinualGP(channels, learning=None))
    time = pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-04", "2024-01-05"])
    frame = pd.DataFrame({"key": ["A", "A", "B", "B"], "time": time})
    frame["a"], frame["b"] = [1.0, 2.0, 3.0, np.nan], [1.0, np.nan, 3.0, 4.0]
    report = fleet.update(frame, key="key", inputs="time").to_frame()
    now = fleet.to_frame().set_index(["key", "channel"])["silence"]
    assert now.to_dict() == {("A", "a"): 3.0, ("A", "b"): 4.0, ("B", "a"): 1.0, ("B", "b"): 0.0}
    assert report.set_index(["key", "channel"])["silence"].to_dict() == now.to_dict()


def test_reports_have_what_each_models_report_has():
    rng = np.random.default_rng(6)
    tables = [_table(rng, ["A", "B"], 12, 3.0 * i, 3.0) for i in range(4)]
    fleet, alone = sgp.Fleet(_model()), _model()
    for frame in tables:
        line = fleet.update(frame, key="key", inputs="time").to_frame().set_index("key").loc["A"]
        report = alone.update(frame[frame["key"] == "A"][["time", "y"]], inputs="time")
    assert line["log_predictive"] == pytest.approx(report.log_predictive["y"], abs=1e-9)
    assert line["surprise"] == pytest.approx(report.surprise["y"], abs=1e-8)
    assert line["nlpd"] == pytest.approx(report.nlpd["y"], abs=1e-9)
    assert line["coverage_80"] == pytest.approx(report.coverage["y"][0.8], abs=1e-9)
    assert line["observations"] == 12
    polars = fleet.update(tables[0], key="key", inputs="time").to_frame(backend="polars")
    assert isinstance(polars, pl.DataFrame)


def test_a_model_of_a_fleet_is_the_fleets_own():
    frame = _table(np.random.default_rng(7), ["A", "B"], 6)
    fleet = sgp.Fleet(_model())
    fleet.update(frame, key="key", inputs="time")
    fleet["A"].update([20.0], [1.0])
    assert fleet["A"].observations == {"y": 7}
    gone = fleet.remove("A")
    assert "A" not in fleet
    assert len(fleet) == 1
    assert fleet.add("C", gone) is gone
    assert fleet.to_frame().set_index("key").loc["C", "silence"] == 0.0
    with pytest.raises(sgp.ConfigurationError, match="a new key"):
        fleet.add("C")
    with pytest.raises(sgp.ConfigurationError, match="one kind"):
        fleet.add("D", sgp.ContinualGP(sgp.Poisson()))
    with pytest.raises(sgp.ConfigurationError, match="without data"):
        sgp.Fleet(gone)
    assert fleet.add("E").observations == {"y": 0}


def test_predictions_by_key():
    frame = _table(np.random.default_rng(8), ["A", "B"], 6)
    fleet = sgp.Fleet(_model())
    fleet.update(frame, key="key", inputs="time")
    asked = pd.DataFrame({"key": ["B", "A", "B", "Z"], "time": [1.0, 2.0, 3.0, 4.0]})
    found = fleet.predict(asked, key="key")
    assert np.array_equal(found["B"].mean, fleet["B"].predict([1.0, 3.0]).mean)
    assert set(found.errors) == {"Z"}
    table = found.to_frame(key="patient")
    assert list(table["patient"]) == ["B", "B", "A"]
    assert list(fleet.predict([1.0], keys=["A"])) == ["A"]
    arrow = fleet.predict(pa.Table.from_pandas(asked), key="key")
    assert np.array_equal(arrow["B"].mean, found["B"].mean)
    with pytest.raises(sgp.DataError, match="a table to go with"):
        fleet.predict([1.0], key="key")
    assert list(fleet.predict([1.0]).to_frame(backend="polars")["key"]) == list(fleet)


def test_a_fleet_survives_pickling_and_threads():
    rng = np.random.default_rng(9)
    tables = [_table(rng, ["A", "B"], 4, 4.0 * i, 4.0) for i in range(6)]
    fleet = pickle.loads(pickle.dumps(sgp.Fleet(_model())))
    threads = [
        threading.Thread(target=fleet.update, args=(t,), kwargs={"key": "key", "inputs": "time"})
        for t in tables
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {key: model.observations["y"] for key, model in fleet.items()} == {"A": 24, "B": 24}


_TREND = {"mean": sgp.Constant() + sgp.Trend(), "seasons": [7.0]}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"latents": sgp.Matern12() + sgp.kernels.Constant(1.0), "mean": None},
        {"latents": sgp.Matern32() + sgp.Periodic() + sgp.Linear()},
        _TREND,
        {"latents": sgp.Matern32() * sgp.Periodic()},
    ],
    ids=["default", "constant", "harmonics", "trend", "product"],
)
def test_updates_of_a_fleet_are_those_of_each_model(settings):
    rng = np.random.default_rng(10)
    keys = [f"k{i}" for i in range(4)]
    first = _table(rng, keys, 14, 0.0, 10.0)
    fleet = sgp.Fleet(_model(**settings))
    fleet.update(first, key="key", inputs="time")
    models = pickle.loads(pickle.dumps(dict(fleet)))
    now = 10.0
    for step, span in enumerate([0.3, 2.0, 0.01, 30.0, 1.0]):  # little and much new ground
        table = _table(rng, keys, 4 + step % 2, now, span)
        if step == 2:  # at the latest time, twice, and one key not at all
            table.loc[0, "time"] = now
            table = pd.concat([table, table.iloc[:1]])
            table = table[table["key"] != "k3"]
        elif step == 3:  # some rows come late
            table.loc[5, "time"] = 1.0
        report = fleet.update(table, key="key", inputs="time", learn=False)
        lines = report.to_frame().set_index("key")
        for key, rows in table.groupby("key"):
            own = models[key].update(rows[["time", "y"]], inputs="time", learn=False)
            assert lines.loc[key, "log_predictive"] == pytest.approx(own.log_predictive["y"])
        now += span
    _assert_same(fleet, models, np.linspace(-1, now + 5, 12))
    for key, model in models.items():
        one, other = fleet[key].state, model.state
        assert np.array_equal(one.kept.time, other.kept.time)
        assert np.array_equal(one.kept.y, other.kept.y)
        np.testing.assert_allclose(one.end, other.end, rtol=1e-9, atol=1e-9)


def test_several_channels_and_latent_functions():
    rng = np.random.default_rng(11)
    channels = {"a": sgp.Gaussian(), "b": sgp.Gaussian(), "c": sgp.Gaussian()}
    fleet = sgp.Fleet(sgp.ContinualGP(channels, latents=2, learning=None))

    def table(now, rows):
        time = rng.uniform(now, now + 1, 3 * rows)
        frame = pd.DataFrame({"key": np.tile(["p", "q", "r"], rows), "time": time})
        for i, name in enumerate(channels):
            value = i + np.cos(time + i) + 0.1 * rng.normal(size=len(time))
            frame[name] = np.where(rng.uniform(size=len(time)) < 0.6, value, np.nan)
        return frame

    fleet.update(table(0.0, 20), key="key", inputs="time")
    models = pickle.loads(pickle.dumps(dict(fleet)))
    for now in (1.0, 2.0, 3.0):
        frame = table(now, 5)
        fleet.update(frame, key="key", inputs="time", learn=False)
        for key, rows in frame.groupby("key"):
            models[key].update(rows.drop(columns="key"), inputs="time", learn=False)
    for key, model in models.items():
        for name in channels:
            one, other = (m.predict(np.linspace(-1, 6, 9), name) for m in (fleet[key], model))
            assert np.allclose(one.mean, other.mean, rtol=0, atol=1e-9)
            assert np.allclose(one.variance, other.variance, rtol=0, atol=1e-9)


def test_an_outlier_is_counted_by_its_key():
    rng = np.random.default_rng(13)
    fleet = sgp.Fleet(_model())
    fleet.update(_table(rng, ["A", "B"], 40), key="key", inputs="time")
    table = _table(rng, ["A", "B"], 3, 10.0, 1.0)
    table.loc[table.index[table["key"] == "A"][0], "y"] = 1e6
    models = pickle.loads(pickle.dumps(dict(fleet)))
    lines = fleet.update(table, key="key", inputs="time").to_frame().set_index("key")
    report = models["A"].update(table[table["key"] == "A"][["time", "y"]], inputs="time")
    assert lines["outliers"].to_dict() == {"A": report.outliers["y"], "B": 0}
    assert report.outliers == {"y": 1}
    waiting = fleet["A"]._version.progress.calibrations["y"].waiting
    wanted = models["A"]._version.progress.calibrations["y"].waiting
    assert np.allclose(waiting, wanted, rtol=1e-7, equal_nan=True)


def test_a_model_that_changes_between_updates_learns_on_top_of_that():
    rng = np.random.default_rng(14)
    fleet = sgp.Fleet(_model())
    fleet.update(_table(rng, ["A", "B"], 15), key="key", inputs="time")
    models = pickle.loads(pickle.dumps(dict(fleet)))
    table = _table(rng, ["A", "B"], 3, 11.0, 1.0)
    fleet["A"].update([10.5], [1.0])
    assert not fleet.update(table, key="key", inputs="time").errors
    models["A"].update([10.5], [1.0])
    for key, rows in table.groupby("key"):
        models[key].update(rows[["time", "y"]], inputs="time")
    _assert_same(fleet, models, np.linspace(0, 13, 7))
