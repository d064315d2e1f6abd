"""Forecasts that are scored when their time comes, and bands calibrated by horizon."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

import streamgp as sgp
from streamgp import persistence
from streamgp.likelihoods import Gaussian
from streamgp.numerics.quantile_tracker import QuantileTracker
from streamgp.online.horizons import HORIZONS, Horizons

STANDARD = QuantileTracker


def predict_line(x):
    """A parabola, of variance one."""
    return 0.1 * x**2, np.ones((len(x), 1, 1))


def noiseless():
    return Gaussian(1e-9)


def begun():
    """Rows at 0 and 1, in two updates."""
    first = Horizons().seen(np.zeros(1), np.zeros(1), noiseless(), STANDARD)
    return first.seen(np.ones(1), np.zeros(1), noiseless(), STANDARD)


def horizons_of(model, name="y"):
    return model._version.progress.horizons[name]


def test_the_step_is_the_usual_distance_of_the_first_rows():
    x = np.array([0.0, 2.0, 4.0, 4.0, 6.0, 30.0])
    first = Horizons().seen(x, x, noiseless(), STANDARD)
    assert first.step == 2.0
    alone = Horizons().seen(x[:1], x[:1], noiseless(), STANDARD)
    assert alone.step == 0
    assert alone.issued(0.0, predict_line) is alone
    assert first.issued(30.0, predict_line) is first  # there may be no second update
    assert alone.seen(np.array([3.0]), x[:1], noiseless(), STANDARD).step == 3.0


def test_forecasts_are_made_at_powers_of_two_and_their_number_is_bounded():
    known = begun().issued(1.0, predict_line)
    np.testing.assert_array_equal(known.pending[:, 0], 1 + 2.0 ** np.arange(1, HORIZONS + 1))
    most = 0
    for now in np.arange(2.0, 6000.0):
        known = known.seen(np.array([now]), np.zeros(1), noiseless(), STANDARD)
        known = known.issued(now, predict_line)
        most = max(most, len(known.pending))
    assert most <= 10 * HORIZONS
    assert len(known.counts) == HORIZONS
    assert min(known.counts) > 10
    assert known.is_sound(1)


def test_a_score_is_where_the_row_fell_in_the_forecast_of_its_own_time():
    """Rows come a little early or late: what was predicted then is read between the nodes."""
    for late in (-0.4, 0.0, 0.3):
        known = begun().issued(1.0, predict_line)
        x = 5.0 + late
        z = 1.7
        seen = known.seen(np.array([x]), np.array([0.1 * x**2 + z]), noiseless(), STANDARD)
        assert seen.counts == (0, 1)  # the forecast four steps ahead
        fresh = QuantileTracker().seen([[z]])
        np.testing.assert_allclose(seen.trackers[1].places, fresh.places)
        assert 5.0 not in seen.pending[:, 0]


def test_a_forecast_whose_time_has_passed_is_gone_without_a_score():
    known = begun().issued(1.0, predict_line)
    later = known.seen(np.array([5.6]), np.zeros(1), noiseless(), STANDARD)
    assert later.counts == ()
    assert later.pending[:, 0].min() == 9.0


def test_scores_are_in_units_of_what_is_usual_just_before():
    wide = QuantileTracker(low=-5.0, high=7.0)
    known = begun().issued(1.0, predict_line)
    seen = known.seen(np.array([5.0]), np.array([2.5 + 1.0]), noiseless(), lambda: wide)
    assert seen.trackers[1] == QuantileTracker(places=wide.places).seen([[0.0]])
    found = Horizons().scores([0.025, 0.5], np.array([-3.0, 0.0, 9.0]), wide)
    np.testing.assert_allclose(found, [[wide.quantile(0.025)] * 3, [wide.quantile(0.5)] * 3])


def test_between_horizons_scores_are_interpolated_and_beyond_the_last_they_stay():
    double = QuantileTracker(-2.5631, 2.5631)
    known = begun()._replace(
        trackers=(QuantileTracker(), double, QuantileTracker()), counts=(50, 50, 7)
    )
    steps = np.array([1.0, 2.0, 2 * np.sqrt(2), 4.0, 500.0])
    (found,) = known.scores([0.975], steps, QuantileTracker())
    np.testing.assert_allclose(found / 1.96, [1, 1, 1.5, 2, 2], rtol=1e-3)


def test_as_far_as_updates_reach_scores_are_those_of_rows_just_ahead():
    double = QuantileTracker(-2.5631, 2.5631)
    known = begun()._replace(trackers=(double,) * HORIZONS, counts=(50,) * HORIZONS, reach=8.0)
    (found,) = known.scores([0.975], np.array([1.0, 8.0, 16.0, 64.0]), QuantileTracker())
    np.testing.assert_allclose(found / 1.96, [1, 1, 2, 2], rtol=1e-3)
    x = np.arange(50.0)
    after = known
    for part in np.split(x[2:], 12):  # four rows per update
        after = after.seen(part, part, noiseless(), STANDARD)
    assert 4.0 < after.reach < 6.0
    alone = known.seen(x[2:], x[2:], noiseless(), STANDARD, one_by_one=True)
    np.testing.assert_allclose(alone.reach, 8 + 0.1 * (1 - 8))


def feed(model, n=900, horizon=32, seed=0):
    """A level that wanders far, seen one step at a time by a model that thinks it hardly does.

    Returns:
        The share of later rows in 90% bands that far ahead, plain and calibrated.
    """
    rng = np.random.default_rng(seed)
    level, kept = np.zeros(n), np.exp(-1 / 40)
    for i in range(1, n):
        level[i] = kept * level[i - 1] + rng.normal() * np.sqrt(2 * (1 - kept**2))
    y = level + 0.2 * rng.normal(size=n)
    x = np.arange(float(n))
    model.update(x[:20], y[:20])
    inside = []
    for i in range(20, n - horizon):
        if i >= n // 2 and i % 4 == 0:
            later = slice(i + horizon - 4, i + horizon)
            prediction = model.predict(x[later])
            ends = [prediction.interval(0.9, calibrated=c) for c in (False, True)]
            inside.append([np.mean((a <= y[later]) & (y[later] <= b)) for a, b in ends])
        model.update(x[i : i + 1], y[i : i + 1])
    return np.mean(inside, axis=0)


def settings():
    """A kernel that is right one step ahead, and far too sure of what is far away."""
    kernel = sgp.Matern12(sgp.fixed(6.0), sgp.fixed(0.3))
    return {
        "latents": kernel, "learning": None, "engine": "chain", "mean": None, "scale": False,
    }  # fmt: skip


def test_bands_far_ahead_hold_what_they_promise():
    shares = []
    for seed in range(4):
        model = sgp.ContinualGP(sgp.Gaussian(sgp.fixed(0.2)), **settings())
        shares.append(feed(model, seed=seed))
    plain, calibrated = np.mean(shares, axis=0)
    assert plain < 0.6
    assert 0.85 < calibrated < 0.95
    near, far = (model.forecast(k, every=1.0) for k in (1, 32))
    widths = [
        [np.diff(p.interval(0.9, calibrated=c), axis=0)[0, -1] for c in (False, True)]
        for p in (near, far)
    ]
    # Far ahead they are widened much more than just ahead.
    assert widths[1][1] / widths[1][0] > 1.5 * widths[0][1] / widths[0][0]


@pytest.mark.filterwarnings("ignore::streamgp.BudgetWarning")
@pytest.mark.parametrize("past", [{"engine": "dense"}, {"inducing": sgp.Adaptive(budget=24)}])
def test_other_engines_and_counts_are_scored_too(past):
    rng = np.random.default_rng(0)
    x = np.arange(120.0)
    rate = np.exp(1 + 0.5 * np.sin(x / 9))
    model = sgp.ContinualGP(
        {"a": sgp.Gaussian(), "b": sgp.Poisson(), "c": sgp.Categorical(3)},
        learning=None, latents=2, **past,
    )  # fmt: skip
    for i in range(0, 120, 4):
        rows = slice(i, i + 4)
        model.update(
            {
                "a": (x[rows], np.sin(x[rows])),
                "b": (x[rows], rng.poisson(rate[rows])),
                "c": (x[rows], rng.integers(0, 3, 4)),
            }
        )
    assert min(horizons_of(model, "a").counts[1:4]) > 8
    assert min(horizons_of(model, "b").counts[1:4]) > 8
    assert "c" not in model._version.progress.horizons  # classes without an order
    lower, upper = model.forecast(20, every=1.0)["b"].interval(0.9, calibrated=True)
    assert np.all(lower <= upper)


def test_several_inputs_have_no_horizons():
    model = sgp.ContinualGP(sgp.Gaussian(), learning=None)
    model.update(np.random.default_rng(0).normal(size=(9, 2)), np.arange(9.0))
    assert not model._version.progress.horizons
    model.predict(np.zeros((2, 2))).interval(0.9, calibrated=True)


def test_samples_one_at_a_time_make_forecasts_too():
    x = np.arange(2000.0)
    y = np.sin(x / 5) + 0.1 * np.random.default_rng(0).normal(size=2000)
    model = sgp.ContinualGP(sgp.Gaussian(0.1), latents=sgp.Matern32(5.0, 1.0), learning=None)
    for part in np.array_split(np.arange(2000), 20):
        model.update_many(x[part], y[part])
    assert min(horizons_of(model).counts[1:5]) >= 5


def test_scores_of_a_right_model_are_standard_normal():
    rng = np.random.default_rng(1)
    x = np.arange(400.0)
    truth = stats.multivariate_normal(cov=np.exp(-np.abs(x[:, None] - x) / 20)).rvs(
        random_state=rng
    )
    model = sgp.ContinualGP(
        sgp.Gaussian(sgp.fixed(0.3)), latents=sgp.Matern12(sgp.fixed(20.0), sgp.fixed(1.0)),
        learning=None, mean=None, scale=False,
    )  # fmt: skip
    y = truth + 0.3 * rng.normal(size=400)
    for i in range(0, 400, 2):
        model.update(x[i : i + 2], y[i : i + 2])
    for tracker in horizons_of(model).trackers[1:4]:
        assert 0.6 < tracker.spread < 1.5
        assert abs(tracker.centre) < 0.6


@pytest.mark.parametrize("channel", [0, 1])
def test_what_lies_ahead_follows_from_the_end_of_the_filter_and_the_open_rows(channel):
    x = np.arange(60.0)
    model = sgp.ContinualGP(
        {"a": sgp.Gaussian(), "b": sgp.Categorical(3)}, seasons=[7], engine="chain", learning=None
    )
    model.update({"a": (x, np.sin(x)), "b": (x, x % 3)})
    state, learner = model.state, model.learner
    assert 0 < state.closed < state.size
    again = state.replace(closed=0, end=None)  # then all rows are filtered anew
    new = np.array([[60.0], [65.0], [140.0]])
    for one, other in zip(
        learner.predict(state, new, channel), learner.predict(again, new, channel), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_they_are_saved_and_go_on_as_they_were():
    model = sgp.ContinualGP(sgp.Gaussian(0.2), **settings())
    x = np.arange(60.0)
    for i in range(0, 40, 2):
        model.update(x[i : i + 2], np.sin(x[i : i + 2]))
    again = sgp.from_bytes(model.to_bytes())
    for each in (model, again):
        for i in range(40, 60, 2):
            each.update(x[i : i + 2], np.sin(x[i : i + 2]))
    one, other = horizons_of(model), horizons_of(again)
    assert one.counts == other.counts
    np.testing.assert_allclose(one.pending, other.pending, atol=1e-9)


@pytest.mark.parametrize(
    "wrong",
    [
        {"counts": (1, 2)},
        {"counts": (-1,), "trackers": (QuantileTracker(),)},
        {"counts": (1,), "trackers": (QuantileTracker(low=np.nan),)},
        {"counts": (1,) * 11, "trackers": (QuantileTracker(),) * 11},
        {"pending": np.full((1, 8), np.nan)},
        {"pending": np.zeros((1, 5))},
        {"pending": np.full((1, 8), 99.0)},
    ],
    ids=str,
)
def test_a_file_with_wrong_ones_is_refused(wrong):
    model = sgp.ContinualGP(sgp.Gaussian(0.2), **settings())
    model.update(np.arange(5.0), np.zeros(5))
    updater, progress = model._version
    bad = dataclasses.replace(progress, horizons={"y": Horizons()._replace(**wrong)})
    with pytest.raises(sgp.FileError, match="forecasts"):
        persistence.pack(updater, bad, {}, {})
