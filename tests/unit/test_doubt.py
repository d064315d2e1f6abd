"""Doubt: rows that come as nobody expected have hyperparameters learned at once, and anew."""

import numpy as np
import pytest
from scipy import stats

import streamgp as sgp
from streamgp.online.doubt import Doubt
from streamgp.online.report import Result

RNG = np.random.default_rng(0)


def sums_of(scores):
    """Page's sums from the densities themselves: N(0, 4) and N(0, 1/4) against N(0, 1)."""
    found = np.zeros(2)
    for score in scores:
        ratios = [stats.norm(0, s).logpdf(score) - stats.norm.logpdf(score) for s in (2.0, 0.5)]
        found = np.maximum(found + ratios, 0.0)
    return found


def test_the_sums_are_those_of_log_ratios_of_densities():
    scores = RNG.normal(size=40) * np.linspace(0.2, 2.5, 40)
    doubt = Doubt().seen(scores)
    np.testing.assert_allclose([doubt.wider, doubt.narrower], sums_of(scores), rtol=1e-12)
    assert Doubt().seen(scores[:7]).seen(scores[7:]) == doubt
    assert Doubt().seen(np.insert(scores, 5, np.nan)) == doubt  # it says nothing


@pytest.mark.parametrize("size", [1.7, 0.4])
def test_rows_that_do_not_fit_are_doubted_soon(size):
    doubt, count = Doubt(), 0
    while not doubt.is_strong:
        doubt, count = doubt.seen([size * RNG.normal()]), count + 1
    assert 5 < count < 200


def test_rows_that_fit_are_hardly_ever_doubted():
    rare = sum(Doubt().seen(RNG.normal(size=1000)).is_strong for _ in range(20))
    assert rare <= 1


def test_one_outlier_alone_is_little_more_than_the_limit():
    """However far out it is, a few rows that fit make up for it."""
    far = Doubt().seen([1e9])
    assert far == Doubt().seen([12.0])
    assert np.isfinite(far.wider)


def test_learning_that_gained_little_raises_the_limit_and_any_other_resets_it():
    strong = Doubt(wider=11.0)
    assert strong.settled(3.0) == Doubt(limit=2 * strong.limit)
    assert Doubt(wider=21.0, limit=20.0).settled(19.0) == Doubt(limit=40.0)
    assert Doubt(wider=21.0, limit=20.0).settled(50.0) == Doubt()
    weak = Doubt(wider=3.0, limit=20.0)
    assert weak.settled(0.0) == weak.settled(99.0) == Doubt(limit=20.0)


# -- models ----------------------------------------------------------------------------------------


def quiet_then_wild(**options):
    """A stream whose values are suddenly ten times as far apart, long before learning is due."""
    model = sgp.ContinualGP(sgp.Gaussian(), **options)
    x = np.arange(460.0)
    y = RNG.normal(size=460) * np.where(x < 400, 1.0, 10.0)
    model.update(x[:400], y[:400])
    return model, x[400:], y[400:]


def noise_of(model):
    return float(model.state.plain.channels[0].likelihood.noise)


def spread_of(model):
    """Of a value to come."""
    return float(model.predict([460.5]).std[0])


@pytest.mark.parametrize("singly", [True, False], ids=["updates", "samples"])
def test_a_model_learns_as_soon_as_it_is_in_doubt(singly):
    model, x, y = quiet_then_wild(learning=sgp.VEM(every=100_000))
    before = spread_of(model)
    if singly:
        results = [model.update(x[[k]], y[[k]]).result for k in range(60)]
        assert Result.LEARNED in results[:10]
        assert results.count(Result.LEARNED) < 30  # not at every row
    else:
        model.update_many(x, y)
    assert spread_of(model) > 1.5 * before
    assert not model._version.progress.doubt.is_strong


def test_what_is_not_to_be_learned_is_not():
    for options, learn in (({"learning": None}, True), ({}, False)):
        model, x, y = quiet_then_wild(**options)
        before = noise_of(model)
        for k in range(60):
            report = model.update(x[[k]], y[[k]], learn=learn)
            assert report.result is Result.KEPT_HYPERPARAMETERS
        assert noise_of(model) == before


def test_doubt_is_saved():
    model, x, y = quiet_then_wild(learning=None)
    model.update(x[:3], y[:3])
    doubt = model._version.progress.doubt
    assert doubt.wider > 0
    assert sgp.from_bytes(model.to_bytes())._version.progress.doubt == doubt
