"""Observations that are surprising beyond reason, and inputs that are times in disguise."""

import warnings

import numpy as np
import pytest

import streamgp as sgp
from streamgp.data.batch import Rows
from streamgp.inference.scoring import Scored
from streamgp.online.outliers import Verdict, taken

COUNT = 240
X = np.arange(COUNT) / 20
TRUTH = 20 + 5 * np.sin(X)
CLEAN = TRUTH + 0.5 * np.random.default_rng(0).normal(size=COUNT)
ODD = {110: 1e12, 150: 90.0, 151: -60.0, 200: 1e12}
DIRTY = CLEAN.copy()
DIRTY[list(ODD)] = list(ODD.values())


def model_of(rule, likelihood=None):
    settings = {"inducing": sgp.Adaptive(budget=32), "outliers": rule}
    return sgp.ContinualGP(sgp.Gaussian() if likelihood is None else likelihood, **settings)


def learned(model, how, y=DIRTY):
    """Reports of all data, in batches, as samples, or one by one."""
    if how == "samples":
        return [model.update_many(X, y)]
    size = {"batches": 40, "one by one": 1}[how]
    return [model.update(X[i : i + size], y[i : i + size]) for i in range(0, COUNT, size)]


def error(model):
    return np.max(np.abs(model.predict(X).mean - TRUTH))


@pytest.mark.parametrize("how", ["batches", "samples", "one by one"])
@pytest.mark.parametrize("rule", ["skip", "downweight"])
def test_outliers_do_not_bend_the_model(rule, how):
    model = model_of(rule)
    reports = learned(model, how)
    assert sum(report.outliers["y"] for report in reports) == len(ODD)
    assert error(model) < 1.0
    assert model.observations == {"y": COUNT}
    assert sum(report.observations["y"] for report in reports) == COUNT
    assert reports[-1].nlpd["y"] < 3.0


def test_outliers_are_kept_by_default_and_said():
    model = sgp.ContinualGP(sgp.Gaussian(), inducing=sgp.Adaptive(budget=32))
    model.update(X[:100], CLEAN[:100])
    report = model.update(X[100:120], DIRTY[100:120])
    assert report.outliers == {"y": 1}
    assert "outliers: y 1" in str(report)
    assert error(model) > 100.0
    calm = sgp.ContinualGP(sgp.Gaussian(), inducing=sgp.Adaptive(budget=32))
    calm.update(X[:100], CLEAN[:100])
    report = calm.update(X[100:120], CLEAN[100:120])
    assert report.outliers == {"y": 0}
    assert "outliers" not in str(report)


@pytest.mark.parametrize("rule", ["skip", "downweight"])
def test_without_outliers_a_rule_changes_nothing(rule):
    plain, careful = model_of("keep"), model_of(rule)
    for model in (plain, careful):
        learned(model, "batches", CLEAN)
    pairs = zip(plain.state.absorbed.arrays(), careful.state.absorbed.arrays(), strict=True)
    for one, other in pairs:
        np.testing.assert_array_equal(one, other)


def test_the_further_out_the_less_an_outlier_counts():
    def moved(value):
        model = model_of("downweight")
        model.update(X[:100], CLEAN[:100])
        before = model.predict(X[100:101]).mean[0]
        report = model.update(X[100:101], [value], learn=False)
        assert report.outliers == {"y": 1}
        return model.predict(X[100:101]).mean[0] - before

    near, far, farther = moved(50.0), moved(200.0), moved(1e9)
    assert near > 2 * far > 0
    assert farther == pytest.approx(0.0, abs=1e-3)
    assert moved(-10.0) < 0


@pytest.mark.parametrize(
    ("likelihood", "odd"),
    [(sgp.LogNormal(), 1e-9), (sgp.LogNormal(), 1e9), (sgp.Poisson(), 10**9), (sgp.Gamma(), 1e9)],
)
def test_outliers_of_other_families(likelihood, odd):
    y = np.round(CLEAN)
    y[150] = odd
    model = model_of("skip", likelihood)
    reports = learned(model, "batches", y)
    assert sum(report.outliers["y"] for report in reports) == 1
    assert error(model) < 3.0


def test_a_chance_that_rounds_to_one_is_no_error():
    """It leaves no variance in which to measure a distance; warnings of NumPy would be errors."""
    kernel = sgp.RBF(variance=900.0)
    model = sgp.ContinualGP(
        sgp.Binomial(trials=None), latents=kernel, engine="dense", mean=None, learning=None
    )
    model.update(np.zeros(3), np.full((3, 2), 1e15))
    assert model.predict([0.0]).mean == 1.0
    rows = np.zeros(2), [(0, 4), (4, 4)]
    assert model.update(*rows, learn=False).nlpd["y"] > 100
    model.update_many(*rows)
    assert np.isfinite(model.predict([0.0]).latent_mean).all()


def test_heavy_tails_are_no_outliers_of_a_family_that_has_them():
    y = TRUTH + 0.5 * np.random.default_rng(1).standard_t(2.5, size=COUNT)
    model = model_of("skip", sgp.StudentT())
    assert sum(report.outliers["y"] for report in learned(model, "batches", y)) == 0


def test_classes_have_no_outliers():
    y = np.zeros(COUNT)
    y[150] = 1.0
    reports = learned(model_of("skip", sgp.Bernoulli()), "batches", y)
    assert sum(report.outliers["y"] for report in reports) == 0


@pytest.mark.parametrize("how", ["batches", "samples", "one by one"])
@pytest.mark.parametrize("rule", ["skip", "downweight"])
def test_a_change_of_level_is_learned(rule, how):
    noise = 0.5 * np.random.default_rng(1).normal(size=COUNT)
    y = TRUTH + noise + np.where(np.arange(COUNT) < 120, 0.0, 40.0)
    model = model_of(rule)
    reports = learned(model, how, y)
    assert any(report.changed for report in reports)
    assert sum(report.outliers["y"] for report in reports) <= 20
    late = model.predict(X[160:]).mean - (TRUTH[160:] + 40)
    assert np.sqrt(np.mean(late**2)) < 3.0


def test_rows_of_a_change_are_refused_at_first_and_then_taken():
    model = model_of("skip")
    model.update(X[:100], CLEAN[:100])
    reports = [model.update(X[i : i + 1], CLEAN[i : i + 1] + 500.0) for i in range(100, 106)]
    assert [report.outliers["y"] for report in reports[:5]] == [1, 1, 1, 1, 0]
    assert reports[0].result is sgp.Result.SKIPPED
    assert "outlier" in str(reports[0].result)
    assert reports[4].changed == ("y",)
    assert reports[4].result is not sgp.Result.SKIPPED


def test_a_change_is_taken_up_again_after_a_file():
    model = model_of("skip")
    model.update(X[:100], CLEAN[:100])
    for i in range(100, 104):
        model.update(X[i : i + 1], CLEAN[i : i + 1] + 500.0)
    again = sgp.from_bytes(model.to_bytes())
    assert again.update(X[104:105], CLEAN[104:105] + 500.0).changed == ("y",)


def test_a_state_that_refuses_all_rows_is_as_it_was():
    model = model_of("skip")
    model.update(X[:100], CLEAN[:100])
    state = model.state
    report = model.update(X[100:102], [1e9, -1e9])
    assert model.state is state
    assert report.outliers == {"y": 2}
    assert report.log_predictive["y"] < -1e6
    assert model.observations == {"y": 102}


def test_channels_are_judged_apart():
    model = sgp.ContinualGP({"a": sgp.Gaussian(), "b": sgp.Gaussian()}, outliers="skip")
    model.update({"a": (X[:100], CLEAN[:100]), "b": (X[:100], -CLEAN[:100])})
    rows = slice(100, 120)
    report = model.update({"a": (X[rows], DIRTY[rows]), "b": (X[rows], -CLEAN[rows])})
    assert report.outliers == {"a": 1, "b": 0}


@pytest.mark.parametrize("rule", ["keep", "skip", "downweight"])
def test_an_outlier_among_the_first_rows_does_not_set_the_scale(rule):
    y = CLEAN[:60].copy()
    y[7] = 1e12
    model = model_of(rule)
    assert model.update(X[:60], y).outliers == {"y": 1}
    found = np.max(np.abs(model.predict(X[:60]).mean - TRUTH[:60]))
    assert found > 1e6 if rule == "keep" else found < 1.0


def test_nothing_is_an_outlier_while_little_is_known():
    model = model_of("skip")
    model.update(X[:5], CLEAN[:5])
    report = model.update(X[5:6], [400.0])
    assert report.outliers == {"y": 0}


def test_a_stream_without_noise_is_not_refused():
    """A model that is too sure of itself calls many rows impossible: those are not skipped."""
    model = model_of("skip")
    y = np.abs(np.sin(X + 0.5))  # a stream that begins at the kink learns by chance: by rounding
    report = model.update_many(X, y)
    assert report.outliers["y"] < 0.04 * COUNT
    assert np.mean(np.abs(model.predict(X).mean - y)) < 0.03


def test_an_unknown_rule():
    with pytest.raises(sgp.ConfigurationError, match='"keep", "skip" or "downweight"'):
        sgp.ContinualGP(sgp.Gaussian(), outliers="drop")


# -- epochs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_epochs_are_named_once(unit):
    times = np.datetime64("2017-07-14T02:40:00", unit) + np.arange(20).astype(f"m8[{unit}]")
    numbers = times.astype(np.int64)
    model = sgp.ContinualGP(sgp.Gaussian(), learning=None)
    with pytest.warns(sgp.EpochWarning, match=rf"2017-07-14T02:40:00.*M8\[{unit}\]"):
        model.update(numbers, np.sin(np.arange(20)))
    model.update(numbers, np.sin(np.arange(20)))  # a second warning would be an error
    with pytest.warns(sgp.EpochWarning):
        sgp.ContinualGP(sgp.Gaussian(), learning=None).update_many(numbers[:3], np.zeros(3))
    followed = sgp.ContinualGP(sgp.Gaussian(), learning=None)
    followed.update(np.asarray(numbers).astype(f"M8[{unit}]"), np.sin(np.arange(20)))
    assert followed.axes[0].is_time


def test_other_numbers_are_not_taken_for_epochs():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for first in (0.0, 2013.0, 20_000.0, 8e8, 5e9):
            x = first + np.arange(5.0)
            sgp.ContinualGP(sgp.Gaussian(), learning=None).update(x, np.zeros(5))


def test_a_moderate_value_beyond_all_numbers_is_left_out():
    """Of a log-normal channel that is predicted enormous, with a value that is not."""
    rows = Rows(np.zeros((1, 1)), np.ones((1, 1)), np.zeros(1, int), ("y",))
    scored = Scored(np.array([[-1e9, np.nan, np.nan, -1e6, np.inf, np.inf]]))
    assert taken("downweight", rows, scored, Verdict(np.ones(1, bool), {}, ())).size == 0
