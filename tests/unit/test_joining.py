"""keep: beyond so many rows over time, neighbours are joined, and little is lost."""

import numpy as np
import pytest
from tests._reference import build

import streamgp as sgp
from streamgp.inference.over_time.learner import evidence_of
from streamgp.parameters import free_vector

RNG = np.random.default_rng(0)
X = np.sort(RNG.uniform(0, 40, 400))
Y = np.sin(X / 4) + 0.2 * RNG.normal(size=400)
TEST = np.linspace(-3, 44, 48)


def fed(keep, likelihood=None, y=Y, parts=8, **options):
    asked = {"latents": sgp.Matern52(6.0, 1.0), "learning": None, "scale": False} | options
    model = sgp.ContinualGP(likelihood or sgp.Gaussian(noise=0.2), keep=keep, **asked)
    for rows in np.array_split(np.arange(len(X)), parts):
        model.update(X[rows], y[rows])
    return model


def moments(model):
    found = model.predict(TEST)
    return found.latent_mean.ravel(), found.latent_variance.ravel()


@pytest.mark.parametrize("parts", [1, 8, 100])
@pytest.mark.parametrize("keep", [40, 100, 333])
def test_there_are_hardly_more_rows_than_asked_for_and_they_stand_for_all(keep, parts):
    model = fed(keep, parts=parts)
    assert keep / 2 < model.state.size <= 1.25 * keep
    assert model.observations == {"y": 400}
    assert model.state.kept.count.sum() == pytest.approx(400)
    assert model.state.count == 400
    assert np.all(np.diff(model.state.kept.time) >= 0)


@pytest.mark.parametrize("keep", [400, 1000, None])
def test_as_long_as_there_is_room_nothing_is_joined(keep):
    model = fed(keep)
    assert model.state.size == 400
    np.testing.assert_array_equal(model.state.kept.count, 1.0)


@pytest.mark.parametrize("keep", [10, 60])
def test_nothing_is_lost_of_what_is_straight(keep):
    """Predictions and evidence under any hyperparameters are those of all rows."""
    line = {"latents": sgp.Linear(1.0, 2.0) + sgp.kernels.Constant(1.0), "engine": "chain"}
    joined, whole = fed(keep, **line), fed(None, **line)
    assert joined.state.size <= 1.25 * keep
    for got, wanted in zip(moments(joined), moments(whole), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-8, atol=1e-8)
    theta = free_vector(whole.state.model)
    told = []
    for shift in RNG.normal(size=(4, len(theta))):
        at = theta + 0.4 * shift
        told.append([evidence_of(m.state).evidence(at)[0] for m in (joined, whole)])
    differences = np.diff(told, axis=0)
    np.testing.assert_allclose(differences[:, 0], differences[:, 1], rtol=1e-8, atol=1e-8)


def test_little_is_lost_of_what_is_smooth():
    mean, variance = moments(fed(None))
    got, spread = moments(fed(100))
    assert np.max(np.abs(got - mean) / np.sqrt(variance)) < 0.2
    np.testing.assert_allclose(spread, variance, rtol=0.1)


def test_the_same_is_learned_from_joined_rows():
    joined, whole = (fed(keep, sgp.Gaussian(), learning=sgp.VEM()) for keep in (100, None))
    noises = [float(m.state.plain.channels[0].likelihood.noise) for m in (joined, whole)]
    assert noises[0] == pytest.approx(noises[1], rel=0.05)
    (mean, variance), (got, _) = moments(whole), moments(joined)
    assert np.max(np.abs(got - mean) / np.sqrt(variance)) < 0.5


def test_the_gradient_of_joined_rows_is_that_by_differences():
    model = fed(60, sgp.Gaussian())
    objective, theta = evidence_of(model.state), free_vector(model.state.model) + 0.1
    _, gradient = objective.evidence(theta)
    wanted = build.slopes(lambda at: objective.evidence(at)[0], theta, 1e-4)
    np.testing.assert_allclose(gradient, wanted, rtol=1e-6, atol=1e-6 * np.abs(wanted).max())


def test_what_a_rough_function_does_between_rows_is_hardly_taken_for_noise():
    """Nor do residuals about a posterior mean, which went along with noise, make it too small."""
    x = np.sort(RNG.uniform(0, 80, 1000))
    prior = np.exp(-np.abs(x[:, None] - x) / 3) + 1e-10 * np.eye(1000)
    y = np.linalg.cholesky(prior) @ RNG.normal(size=1000) + 0.3 * RNG.normal(size=1000)
    noises = []
    for keep in (150, None):
        model = sgp.ContinualGP(
            sgp.Gaussian(), latents=sgp.Matern12(3.0, 1.0), scale=False, keep=keep
        )
        for rows in np.array_split(np.arange(1000), 10):
            model.update(x[rows], y[rows], learn=False)
        model.refine()
        noises.append(float(model.state.plain.channels[0].likelihood.noise))
    assert 0.95 < noises[0] / noises[1] < 1.25


OTHERS = {
    "poisson": (sgp.Poisson(), np.floor(2 + 2 * np.sin(X / 4))),
    "lognormal": (sgp.LogNormal(), np.exp(Y)),
    "weighted": (sgp.Weighted(sgp.Gaussian()), np.column_stack([Y, 1 + X % 2])),
    "with errors": (sgp.Gaussian(error=True), np.column_stack([Y, 0.1 + X % 1])),
}


@pytest.mark.parametrize("name", OTHERS)
def test_rows_of_other_families_are_joined_too(name):
    """As sites, but for log-normal values, which add up as their logarithms do."""
    likelihood, y = OTHERS[name]
    joined, whole = (fed(keep, likelihood, y) for keep in (100, None))
    assert joined.state.size <= 125
    kept = joined.state.kept
    assert kept.count.sum() == pytest.approx(400)
    assert np.isnan(kept.y[:, 0]).any() == (name != "lognormal")
    (mean, variance), (got, spread) = moments(whole), moments(joined)
    assert np.max(np.abs(got - mean) / np.sqrt(variance)) < 0.5
    np.testing.assert_allclose(spread, variance, rtol=0.2)
    again = sgp.from_bytes(joined.to_bytes())
    np.testing.assert_allclose(moments(again)[0], got, rtol=1e-12)


def test_rows_of_one_time_and_late_ones_may_be_joined_too():
    model = sgp.ContinualGP(
        sgp.Gaussian(noise=0.2), latents=sgp.Matern52(6.0, 1.0), learning=None, scale=False, keep=20
    )
    order = RNG.permutation(400)
    times = np.round(X)
    for rows in np.array_split(order, 10):
        report = model.update(times[rows], Y[rows])
        assert np.isfinite(report.bound)
    assert model.state.kept.count.sum() == pytest.approx(400)
    again = sgp.from_bytes(model.to_bytes())
    for got, wanted in zip(moments(again), moments(model), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)


def test_without_rows_inducing_points_keep_the_past():
    model = fed(0)
    assert (model.engine, model.kept_rows) == ("sparse", 0)
    with pytest.raises(sgp.ConfigurationError, match="keep=0"):
        fed(0, engine="chain")


@pytest.mark.parametrize("wrong", [-1, 2.5, "all", True])
def test_other_numbers_of_rows_are_refused(wrong):
    with pytest.raises(sgp.ConfigurationError, match="keep"):
        sgp.ContinualGP(sgp.Gaussian(), keep=wrong)
