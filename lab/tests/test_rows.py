"""The race of rows over several inputs: every topic on few rows, its streams, and its reference."""

import math
from importlib import import_module

import numpy as np
import pytest
from scipy.optimize import check_grad

import streamgp as sgp
from streamgp_lab.baselines.exact_rbf import ExactRBF, evidence
from streamgp_lab.races.figures import mean_and_worst, over_seeds
from streamgp_lab.races.rows import bench, drift, outages, shuffled, small, streams, traps, wide

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.mark.parametrize("name", [topic.name for topic in bench.TOPICS.topics])
def test_every_topic_measures_what_has_bars(name, monkeypatch):
    monkeypatch.setattr(shuffled, "TABLES", shuffled.TABLES[:1])
    monkeypatch.setattr(small, "TABLES", small.TABLES[1:2])
    monkeypatch.setattr(traps, "TRAPS", [traps.TRAPS[4], traps.TRAPS[-1]])
    monkeypatch.setattr(wide, "_MOST", {50: 5.0})
    module = import_module(f"{bench.TOPICS.package}.{name}")
    found = module.measure(0.04 if name == "shuffled" else 0.01, 0)
    assert (
        {bar.figure for bar in module.BARS}
        >= mean_and_worst([found]).keys() & {bar.figure for bar in module.BARS}
        != set()
    )
    if name != "kept" or hasattr(sgp.ContinualGP, "compact"):
        assert all(math.isfinite(value) for value in found.values())


def test_means_and_worst_of_seeds():
    found = mean_and_worst([{"nats": 1.0}, {"nats": 3.0}])
    mean, worst = over_seeds("nats", 2.5, 2.5)
    assert (found[mean.figure], found[worst.figure]) == (2.0, 3.0)
    assert mean.claim(found, {}).holds
    assert not worst.claim(found, {}).holds


def test_tables_are_split_and_ordered():
    rows = streams.table("airfoil", 1.0, 0)
    assert (len(rows.y), len(rows.y_new)) == (1353, 150)
    assert len(streams.table("airfoil", 1.0, 0, 300).y) == 300
    x = np.column_stack([[1.0, 2, 1, 2], [4.0, 2, 3, 1], np.zeros(4)])
    ordered = streams.Rows(x, np.array([0.0, 2, 1, 3]), x, x[:, 0]).ordered
    assert ordered.x[:, 1].tolist() == [1, 2, 3, 4]
    assert ordered.y.tolist() == [3, 2, 1, 0]


def test_still_sensors_are_still_as_long_as_they_say():
    rows = traps.still(2, 30)(1.0, 0)
    assert np.abs(rows.y[:30]).max() < 0.01 < np.abs(rows.y[30:60]).max()
    assert rows.x_new[:, 0].min() > rows.x[29, 0]
    first = traps.growing(constant=True)(1.0, 0)
    assert not first.x[:40, -1].any()
    assert first.x[40:, -1].all()
    assert np.abs(first.y[:100]).mean() * 50 < np.abs(first.y[-100:]).mean()


def test_a_model_that_learns_all_at_once_loses_nothing():
    rows = traps.still(2, 0)(0.2, 0)
    streamed, offline = traps.scores(rows, len(rows.y))
    assert streamed == pytest.approx(offline, abs=0.1)


def test_one_channel_is_silent_at_a_time():
    silent = outages.silences(360)
    assert silent.sum(axis=0).max() == 1
    assert silent.sum(axis=1).tolist() == [90, 90, 90]


def test_regions_drift():
    rows, f = drift.stream(1000, 0)
    assert rows.x[:200, 0].mean() < 2 < 8 < rows.x[-200:, 0].mean()
    assert np.std(rows.y - f(rows.x)) == pytest.approx(drift.NOISE, rel=0.1)
    values = streams.Waves(np.random.default_rng(0), 500, 1.0)(10 * np.eye(500))
    assert np.std(values) == pytest.approx(1, rel=0.1)


def test_the_exact_gp_climbs_and_predicts():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    y = np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=60)
    vector = np.array([0.1, 0.5, -0.2, -2.0])
    slope = evidence(vector, x, y)[1]
    wrong = check_grad(lambda v: evidence(v, x, y)[0], lambda v: evidence(v, x, y)[1], vector)
    assert wrong < 1e-4 * np.linalg.norm(slope)
    gp = ExactRBF().fit(x[:50], y[:50])
    mean, variance = gp.predict(x[50:])
    covariance = gp._own.kernel(x, x) + 10.0 + gp._own.noise * np.eye(60)
    gain = np.linalg.solve(covariance[:50, :50], covariance[:50, 50:])
    np.testing.assert_allclose(mean, gain.T @ y[:50], atol=1e-6)
    expected = np.diag(covariance)[50:] - np.sum(gain * covariance[:50, 50:], axis=0)
    np.testing.assert_allclose(variance, expected, atol=1e-5)
    assert np.sqrt(np.mean((mean - np.sin(2 * x[50:, 0])) ** 2)) < 0.3
