"""The infinite-horizon baseline against a dense Gaussian process, far from where it starts."""

import numpy as np
import pytest
from scipy import linalg, stats

import streamgp as sgp
from streamgp_lab.baselines.infinite_horizon import InfiniteHorizon

LENGTHSCALE, VARIANCE, NOISE, OFFSET = 0.7, 1.6, 0.4, 3.0
MODEL = {"lengthscale": LENGTHSCALE, "variance": VARIANCE}


def matern(a, b):
    distance = np.sqrt(3) * np.abs(a[:, None] - b[None]) / LENGTHSCALE
    return VARIANCE * (1 + distance) * np.exp(-distance)


def exact(x, y, at):
    """Mean and variance of f, by the textbook formulas."""
    cross = matern(x, at)
    weights = np.linalg.solve(matern(x, x) + NOISE**2 * np.eye(len(x)), cross)
    return OFFSET + weights.T @ (y - OFFSET), VARIANCE - np.sum(weights * cross, axis=0)


def regression(count=500, step=0.05):
    x = step * np.arange(count) + 7.0
    y = OFFSET + np.sin(x) + NOISE * np.random.default_rng(0).normal(size=count)
    model = InfiniteHorizon(sgp.Gaussian(NOISE), **MODEL, offset=OFFSET)
    return x, y, model, model.update_many(x, y).log_predictive_rows["y"]


def signs(count=600):
    """Inputs, the sign of a sine, and the same signs with noise, as labels."""
    x = 0.01 * np.arange(count)
    sign = np.sin(2 * np.pi * x / 3) > 0
    flips = np.random.default_rng(1).uniform(size=count) < 0.05
    return x, sign, (sign ^ flips).astype(float)


def test_forecasts_are_the_exact_ones():
    x, y, model, _ = regression()
    at = x[-1] + np.array([0.0, 0.02, 0.05, 0.4, 3.0])
    got, (mean, variance) = model.predict(at), exact(x, y, at)
    np.testing.assert_allclose(got.latent_mean, mean, rtol=1e-6)
    np.testing.assert_allclose(got.latent_variance, variance, rtol=1e-6)


def test_scores_are_those_of_exact_one_step_forecasts():
    x, y, _, scores = regression()
    for k in (300, 499):
        mean, variance = exact(x[:k], y[:k], x[k : k + 1])
        wanted = stats.norm(mean[0], np.sqrt(variance[0] + NOISE**2)).logpdf(y[k])
        np.testing.assert_allclose(scores[k], wanted, rtol=1e-6)


def test_smoothing_is_exact_far_from_both_ends():
    x, y, model, _ = regression()
    at = x[200:300:7]
    got, (mean, variance) = model.predict(at[:, None]), exact(x, y, at)
    np.testing.assert_allclose(got.latent_mean, mean, rtol=1e-6)
    np.testing.assert_allclose(got.latent_variance, variance, rtol=1e-6)


def test_elsewhere_is_near_the_exact_process():
    x, y, model, _ = regression()
    at = np.array([x[0] - 20.0, x[250] + 0.02])
    got, (mean, variance) = model.predict(at, "y"), exact(x, y, at)
    np.testing.assert_allclose(got.latent_mean, mean, rtol=1e-3)
    np.testing.assert_allclose(got.latent_variance, variance, rtol=2e-2)


def test_labels_give_the_sign_function_back():
    x, sign, y = signs()
    model = InfiniteHorizon(sgp.Bernoulli("probit"), **MODEL)
    scores = model.update_many(x, y).log_predictive_rows["y"]
    assert scores[0] == pytest.approx(np.log(0.5), abs=1e-6)
    assert np.mean((model.predict(x).mean > 0.5) == sign) > 0.97
    assert np.mean(scores) > -0.35


def test_labels_are_filtered_as_if_every_equation_were_solved():
    x, _, y = signs(150)
    model = InfiniteHorizon(sgp.Bernoulli("probit"), **MODEL)
    scores = model.update_many(x, y).log_predictive_rows["y"]
    np.testing.assert_allclose(scores, settled_probit_scores(x[1] - x[0], 2 * y - 1), atol=2e-4)


def settled_probit_scores(step, signs):
    """Closed-form moments of labels and one Riccati equation per sample, without a table."""
    rate = np.sqrt(3) / LENGTHSCALE
    prior = VARIANCE * np.diag([1.0, rate**2])
    a = linalg.expm(step * np.array([[0.0, 1.0], [-(rate**2), -2 * rate]]))
    mean, covariance, scores = np.zeros(2), prior, []
    for sign in signs:
        mean = a @ mean
        root = np.sqrt(1 + covariance[0, 0])
        z = sign * mean[0] / root
        scores.append(stats.norm.logcdf(z))
        ratio = np.exp(stats.norm.logpdf(z) - scores[-1])
        noise = root**2 / (ratio * (z + ratio)) - covariance[0, 0]
        gain = covariance[:, 0] / (covariance[0, 0] + noise)
        mean = mean + gain * sign * root / (z + ratio)
        covariance = linalg.solve_discrete_are(
            a.T, np.eye(2)[:, :1], prior - a @ prior @ a.T, np.array([[noise]])
        )
    return np.array(scores)


@pytest.mark.parametrize(
    ("likelihood", "known"),
    [(sgp.Poisson(), -0.895471), (sgp.StudentT(0.3), -0.120583), (sgp.Bernoulli(), -0.326772)],
)
def test_other_families(likelihood, known):
    """Their mean scores are those of an implementation with automatic derivatives."""
    x, _, y = signs(200)
    model = InfiniteHorizon(likelihood, **MODEL)
    scores = model.update_many(x, y).log_predictive_rows["y"]
    assert np.mean(scores) == pytest.approx(known, abs=2e-6)
    assert np.all(model.predict(x).latent_variance > 0)


@pytest.mark.parametrize("likelihood", [sgp.Gaussian(NOISE), sgp.Bernoulli("probit")])
def test_two_calls_are_one(likelihood):
    x, _, y = signs(300)
    whole, parts = (InfiniteHorizon(likelihood, **MODEL, name="z") for _ in range(2))
    together = whole.update({"z": (x, y)}).log_predictive_rows["z"]
    apart = [
        parts.update({"z": (x[rows], y[rows])}).log_predictive_rows["z"]
        for rows in (slice(0, 123), slice(123, 124), slice(124, 300))
    ]
    np.testing.assert_allclose(np.concatenate(apart), together, rtol=1e-9)
    at = np.linspace(-1, 5, 40)
    for name in ("latent_mean", "latent_variance"):
        wanted = getattr(whole.predict(at), name)
        np.testing.assert_allclose(getattr(parts.predict(at), name), wanted, rtol=1e-8)


def test_the_next_score_is_that_of_the_forecast():
    x, _, y = signs(300)
    model = InfiniteHorizon(sgp.Bernoulli("probit"), **MODEL)
    model.update_many(x[:250], y[:250])
    wanted = model.predict(x[250:251]).log_density(y[250:251])
    got = model.update_many(x[250:], y[250:]).log_predictive_rows["y"]
    np.testing.assert_allclose(got[:1], wanted, rtol=1e-6)


def test_steps_have_to_be_equal():
    x, y, model, _ = regression(50)
    with pytest.raises(sgp.DataError, match=r"increase by 0.05"):
        model.update_many(x + 50 * 0.05 + 0.01, y)  # a gap between runs
    model.update_many(x + 50 * 0.05, y)  # as if that had not been
    fresh = InfiniteHorizon(sgp.Gaussian(NOISE), **MODEL)
    for uneven in (x**2, x[::-1], np.zeros(50)):
        with pytest.raises(sgp.DataError, match="increase"):
            fresh.update_many(uneven, y)
    with pytest.raises(sgp.DataError, match="two samples"):
        fresh.update_many(x[:1], y[:1])
    with pytest.raises(sgp.DataError, match="one column"):
        fresh.update_many(np.stack([x, x], axis=1), y)


def test_other_mistakes():
    x, _, y = signs(20)
    with pytest.raises(sgp.ConfigurationError, match="one latent"):
        InfiniteHorizon(sgp.Categorical(3), **MODEL)
    with pytest.raises(sgp.ConfigurationError, match="positive"):
        InfiniteHorizon(sgp.Gaussian(), lengthscale=0.0, variance=1.0)
    model = InfiniteHorizon(sgp.Bernoulli("probit"), **MODEL)
    with pytest.raises(sgp.DataError, match="support"):
        model.update_many(x, y + 0.5)
    with pytest.raises(sgp.DataError, match="20 values"):
        model.update_many(x, y[:-1])
    with pytest.raises(sgp.DataError, match="other channel"):
        model.update({"z": (x, y)})
    with pytest.raises(sgp.DataError, match="before predictions"):
        model.predict(x)
