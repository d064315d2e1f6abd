"""The object people hold: calls, reports, channels that come later, atomicity."""

import warnings

import numpy as np
import pytest

import streamgp as sgp
from streamgp.online.batch_update import Updater
from streamgp.online.folding import Folding

X = np.linspace(0, 6, 40)


@pytest.fixture(scope="module")
def two_channels():
    model = sgp.ContinualGP({"a": sgp.Gaussian(), "b": sgp.Gaussian()}, latents=1, seed=3)
    model.update({"a": (X, np.sin(X)), "b": (X[::2], 5 - 2 * np.sin(X[::2]))})
    return model


def test_channels_share_what_they_have_in_common(two_channels):
    prediction = two_channels.predict(X, "b")
    assert np.max(np.abs(prediction.mean - (5 - 2 * np.sin(X)))) < 0.4
    assert set(two_channels.predict(X)) == {"a", "b"}


def test_the_report_says_what_happened():
    model = sgp.ContinualGP(sgp.Gaussian())
    report = model.update(X, np.sin(X))
    assert report.update == 1
    assert report.observations == {"y": 40}
    assert report.inducing_before == (0,)
    assert report.inducing_after == (len(model.inducing_points[0]),)
    assert np.isfinite(report.bound)
    assert report.log_predictive_rows["y"].shape == (40,)
    np.testing.assert_allclose(report.log_predictive["y"], report.log_predictive_rows["y"].mean())
    assert report.hyperparameters["channels"]["y"]["noise"] > 0
    assert "40 observations" in str(report)
    again = model.update(X[:10] + 0.01, np.sin(X[:10] + 0.01))
    assert again.log_predictive["y"] > report.log_predictive["y"]
    assert "2 updates, 50 observations" in repr(model)


def test_a_new_channel_predicts_its_prior_and_then_learns(two_channels):
    before = two_channels.predict(X, "a").mean
    two_channels.add_channel("late", sgp.Bernoulli())
    np.testing.assert_allclose(two_channels.predict(X, "a").mean, before, atol=1e-10)
    assert np.all(np.abs(two_channels.predict(X + 100.0, "late").mean - 0.5) < 0.1)
    two_channels.update({"late": (X, (np.sin(X) > 0).astype(float))})
    probabilities = two_channels.predict(X, "late").probabilities
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert np.mean((probabilities[:, 1] > 0.5) == (np.sin(X) > 0)) > 0.9


def test_an_update_that_breaks_off_leaves_the_model_as_it_was(two_channels, monkeypatch):
    state, seen = two_channels.state, two_channels.observations

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(Folding, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        two_channels.update({"a": (X, np.cos(X))})
    assert two_channels.state is state
    assert two_channels.observations == seen


def test_numbers_that_are_not_finite_are_refused(two_channels, monkeypatch):
    state = two_channels.state
    broken = two_channels.learner.tempered(state, np.nan)
    monkeypatch.setattr(Updater, "_ready", lambda *_: broken)
    with pytest.raises(sgp.NumericalError, match="as it was"):
        two_channels.update({"a": (X, np.cos(X))})
    assert two_channels.state is state


def test_frozen_hyperparameters_stay_where_they_start():
    model = sgp.ContinualGP(
        sgp.Gaussian(noise=0.2), latents=[sgp.RBF(1.1, 0.9)], learning=None, inducing=sgp.Fixed(X)
    )
    report = model.update(X, np.sin(X))
    assert report.hyperparameters["latents"][0]["lengthscale"] == pytest.approx(1.1)
    assert report.hyperparameters["channels"]["y"]["noise"] == pytest.approx(0.2)


def test_some_can_be_fixed_while_others_are_learned():
    model = sgp.ContinualGP(sgp.Gaussian(noise=sgp.fixed(0.2)), latents=[sgp.RBF(sgp.fixed(1.1))])
    report = model.update(X, 3 * np.sin(X))
    latent = report.hyperparameters["latents"][0]
    assert latent["lengthscale"] == pytest.approx(1.1)
    assert report.hyperparameters["channels"]["y"]["noise"] == pytest.approx(0.2)
    assert latent["variance"] != pytest.approx(np.var(3 * np.sin(X)))


def test_several_draws_share_one_kernel():
    model = sgp.ContinualGP(
        {"a": sgp.Gaussian(), "b": sgp.Gaussian()}, latents=[(sgp.RBF(), 2)], learning=None
    )
    model.update({"a": (X, np.sin(X)), "b": (X, np.cos(X))})
    assert len(model.inducing_points) == 2
    assert len(model.hyperparameters["latents"]) == 1
    assert np.max(np.abs(model.predict(X, "b").mean - np.cos(X))) < 0.3


def test_a_silent_channel_keeps_the_prior():
    x = np.linspace(0, 6, 50)
    model = sgp.ContinualGP({"a": sgp.Gaussian(), "b": sgp.Poisson()}, latents=2)
    model.update({"a": (x, np.sin(x))})
    weights = model.hyperparameters["channels"]["b"]["weights"]
    for _ in range(3):
        model.update({"a": (x, np.sin(x))})
    np.testing.assert_array_equal(model.hyperparameters["channels"]["b"]["weights"], weights)
    assert np.sum(weights**2) > 0.3


def test_a_lone_kernel_is_one_latent_function():
    one = sgp.ContinualGP(sgp.Gaussian(), latents=sgp.Matern32())
    listed = sgp.ContinualGP(sgp.Gaussian(), latents=[sgp.Matern32()])
    for model in (one, listed):
        model.update(X, np.sin(X))
    assert one.hyperparameters["latents"][0]["kind"] == "Matern32"
    np.testing.assert_array_equal(one.predict(X).mean, listed.predict(X).mean)


def test_results_are_told_apart_and_read_as_sentences():
    model = sgp.ContinualGP(sgp.Gaussian())
    assert model.update(X, np.sin(X)).result is sgp.Result.LEARNED
    assert model.update(X, np.sin(X), learn=False).result is sgp.Result.KEPT_HYPERPARAMETERS
    refined = model.refine()
    assert refined.result is sgp.Result.REFINED
    assert str(refined.result).endswith("without data.")


def test_a_spent_budget_is_said_once_and_reported_always():
    model = sgp.ContinualGP(sgp.Gaussian(), inducing=sgp.Adaptive(budget=6))
    with pytest.warns(sgp.BudgetWarning, match="budget"):
        reports = [model.update(X + 10 * t, np.sin(3 * X)) for t in range(3)]
    assert reports[-1].budget_spent
    assert "budget spent" in str(reports[-1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.update(X + 40, np.sin(3 * X)).budget_spent
    roomy = sgp.ContinualGP(sgp.Gaussian(), inducing=sgp.Adaptive(budget=200))
    assert not roomy.update(X, np.sin(X)).budget_spent


def test_a_notebook_shows_a_table():
    shown = sgp.ContinualGP({"<a>": sgp.Gaussian(), "b": sgp.Poisson()})._repr_html_()
    assert "<table>" in shown
    assert "&lt;a&gt;" in shown
    assert "Poisson" in shown


def test_a_first_batch_may_have_one_row_of_each_channel():
    model = sgp.ContinualGP({"a": sgp.Gaussian(), "b": sgp.Gaussian()})
    model.update({"a": ([[0.0, 1.0]], [3.0]), "b": ([[1.0, 0.0]], [2.0])})
    assert model.predict([[0.0, 1.0]])["a"].mean == pytest.approx(3.0, abs=0.5)


def test_refining_leaves_inducing_points_where_they_are():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 6, (200, 2))
    model = sgp.ContinualGP(sgp.Gaussian(), inducing=sgp.Adaptive(budget=48))
    model.update(x, np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=200))
    (before,) = model.inducing_points
    assert model.refine().bound >= 0.0  # of the past, at other hyperparameters
    (after,) = model.inducing_points
    np.testing.assert_array_equal(before, after)
