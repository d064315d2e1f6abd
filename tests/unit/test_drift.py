"""Worlds that change: fading, and telling that they did."""

import numpy as np
import pytest

import streamgp as sgp
from streamgp.online.drift import Watch

GENERATOR = np.random.default_rng(0)
Z = sgp.Fixed(np.linspace(0, 6, 10))


def batch(change=False):
    x = GENERATOR.uniform(0, 6, 40)
    f = -np.sin(x) if change else np.sin(x)
    return x, f + 0.1 * GENERATOR.normal(size=40)


def error(model):
    x = np.linspace(0, 6, 50)
    return np.sqrt(np.mean((model.predict(x).mean + np.sin(x)) ** 2))


def test_a_faded_model_follows_a_function_that_changes():
    faded = sgp.ContinualGP(sgp.Gaussian(), inducing=Z, forgetting=0.5)
    loyal = sgp.ContinualGP(sgp.Gaussian(), inducing=Z)
    for t in range(14):
        data = batch(change=t >= 10)
        for model in (faded, loyal):
            model.update(*data)
    assert error(faded) < 0.2
    assert error(loyal) > 0.4


def test_what_is_left_after_an_update_is_the_factor():
    settings = {"inducing": Z, "learning": None, "latents": [sgp.RBF(1.0, 1.0)]}
    once, faded = (
        sgp.ContinualGP(sgp.Gaussian(noise=sgp.fixed(0.3)), forgetting=f, **settings)
        for f in (1.0, 0.25)
    )
    first = batch()
    faded.update(*first)
    faded.update([0.0], [0.0])
    once.update(*first)
    before = once.state.site.precision
    once.update([0.0], [0.0])
    row = once.state.site.precision - before
    np.testing.assert_allclose(faded.state.site.precision, 0.25 * before + row, atol=1e-9)
    assert faded.state.count == pytest.approx(11.0)


def test_forgetting_by_input_counts_the_advance():
    assert sgp.Forgetting(0.5, per=10.0).left_after(20.0) == pytest.approx(0.25)
    assert sgp.Forgetting(0.5, per=10.0).left_after(-3.0) == 1.0
    model = sgp.ContinualGP(
        sgp.Gaussian(), inducing=Z, learning=None, forgetting=sgp.Forgetting(0.5, per=2.0)
    )
    model.update([0.0, 1.0], [0.0, 1.0])
    model.update([3.0], [1.0])
    assert model.state.count == pytest.approx(2.0)  # two halved by an advance of two, and one
    model.update([2.0], [1.0])
    assert model.state.count == pytest.approx(3.0)
    with pytest.raises(sgp.ConfigurationError, match="factor"):
        sgp.Forgetting(1.5)


def test_nothing_is_forgotten_by_default():
    plain, explicit = (
        sgp.ContinualGP(sgp.Gaussian(), inducing=Z, **more) for more in ({}, {"forgetting": 1.0})
    )
    for _ in range(3):
        data = batch()
        plain.update(*data)
        explicit.update(*data)
    np.testing.assert_array_equal(plain.state.site.precision, explicit.state.site.precision)


def test_a_change_is_called_and_a_calm_stream_is_not():
    model = sgp.ContinualGP(sgp.Gaussian(), inducing=Z, forgetting=0.7)
    calls = [model.update(*batch(change=t >= 30)).changed for t in range(36)]
    assert not any(calls[:30])
    assert ("y",) in calls[30:34]


def test_samples_far_from_the_usual_add_up():
    generator = np.random.default_rng(3)
    watch, calm = Watch(), 0
    for score in -0.5 * generator.normal(size=2000) ** 2:
        watch, _, changed = watch.seen([score])
        calm += changed
    assert calm <= 2
    for _ in range(40):
        watch, _, changed = watch.seen([-0.5 * (2.5 * generator.normal()) ** 2])
        if changed:
            break
    assert changed


def test_scores_may_come_together():
    scores = np.concatenate([np.sin(np.arange(60.0)), np.full(9, -8.0)])
    one, surprises, changes = Watch(), [], []
    for score in scores:
        one, surprise, changed = one.seen([score])
        surprises.append(surprise)
        changes.append(changed)
    assert any(changes)
    assert Watch().seen(scores) == (one, max(surprises), True)


def test_one_outlier_is_not_a_change():
    watch, _, _ = Watch().seen(np.sin(np.arange(50.0)))
    assert watch.seen([-1e6])[1] > 100
    watch, _, changed = watch.seen([-np.inf])
    assert not changed
    assert np.isfinite(watch.mean)
