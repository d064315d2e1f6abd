"""Every baseline against dense algebra."""

import numpy as np
import pytest
from scipy.linalg import cho_factor, cho_solve

import streamgp as sgp
from streamgp.model.specification import Specification
from streamgp_lab.baselines.exact import Exact
from streamgp_lab.baselines.independent import Independent
from streamgp_lab.baselines.paper import Paper
from streamgp_lab.baselines.streaming_sparse import StreamingSparse

GENERATOR = np.random.default_rng(0)
X = np.sort(GENERATOR.uniform(0, 6, 40))
Y = 3 + np.sin(X) + 0.2 * GENERATOR.normal(size=40)
AT = np.linspace(0, 6, 15)
KERNEL = sgp.RBF(lengthscale=sgp.fixed(1.3), variance=sgp.fixed(0.8))
LIKELIHOOD = sgp.Gaussian(sgp.fixed(0.25))
FIXED = Specification({"y": LIKELIHOOD}, [KERNEL])


def gram(a, b):
    return 0.8 * np.exp(-0.5 * (a[:, None] - b[None, :]) ** 2 / 1.3**2)


def dense(x, y, offset):
    """Mean and variance of f at AT given data, by the textbook formulas."""
    factor = cho_factor(gram(x, x) + 0.25**2 * np.eye(len(x)))
    cross = gram(x, AT)
    mean = offset + cross.T @ cho_solve(factor, y - offset)
    return mean, 0.8 - np.sum(cross * cho_solve(factor, cross), axis=0)


def assert_is(prediction, wanted, tolerance):
    np.testing.assert_allclose(prediction.latent_mean, wanted[0], atol=tolerance)
    np.testing.assert_allclose(prediction.latent_variance, wanted[1], atol=tolerance)


def test_the_exact_gp_equals_the_textbook_after_one_and_two_batches():
    method = Exact(FIXED)
    method.update({"y": (X[:15], Y[:15])})
    assert_is(method.predict(AT), dense(X[:15], Y[:15], Y[:15].mean()), 1e-8)
    method.update({"y": (X[15:], Y[15:])})
    assert_is(method.predict(AT), dense(X, Y, Y[:15].mean()), 1e-8)


def test_the_exact_gp_scores_samples_by_those_before_them():
    method, other = Exact(FIXED), Exact(FIXED)
    for each in (method, other):
        each.update({"y": (X[:30], Y[:30])})
    scores = method.update_many(X[30:], Y[30:]).log_predictive_rows["y"]
    for i in range(30, 40):
        wanted = other.predict(X[i : i + 1]).log_density(Y[i])
        np.testing.assert_allclose(scores[i - 30], wanted[0], atol=1e-8)
        other.update({"y": (X[i : i + 1], Y[i : i + 1])})


def test_the_exact_gp_finds_more_likely_hyperparameters():
    free = Specification({"y": sgp.Gaussian()}, [sgp.RBF()])
    still, moved = Exact(free, evaluations=0), Exact(free)
    evidence = []
    for method in (still, moved):
        method.update({"y": (X, Y)})
        again = Exact(free, start=method.model, evaluations=0)
        evidence.append(again.update_many(X, Y).log_predictive_rows["y"].sum())
    assert evidence[1] > evidence[0] + 1


def test_two_exact_channels_share_what_they_have_in_common():
    specification = Specification({"a": sgp.Gaussian(), "b": sgp.Gaussian()}, 1)
    method = Exact(specification)
    method.update({"a": (X, Y), "b": (X[::4], 10 * Y[::4])})
    assert np.abs(method.predict(AT, "b").mean - 10 * (3 + np.sin(AT))).max() < 3


def test_the_exact_gp_refuses_what_it_cannot_do():
    with pytest.raises(sgp.ConfigurationError, match="Gaussian channels"):
        Exact(Specification({"y": sgp.Poisson()}))


def test_streaming_sparse_with_one_point_per_input_is_the_exact_gp():
    method = StreamingSparse(LIKELIHOOD, KERNEL, points={1: 15, 2: 40}.get)
    method._learn = False  # points stay at the inputs
    method.update({"y": (X[:15], Y[:15])})
    assert_is(method.predict(AT), dense(X[:15], Y[:15], Y[:15].mean()), 1e-5)
    method.update({"y": (X[15:], Y[15:])})
    assert_is(method.predict(AT), dense(X, Y, Y[:15].mean()), 1e-5)


def test_streaming_sparse_keeps_what_it_learned():
    method = StreamingSparse(sgp.Bernoulli(), points=lambda t: 5 * t)
    labels = (np.sin(2 * X) > 0).astype(float)
    for part in np.array_split(np.arange(40), 2):
        method.update({"y": (X[part], labels[part])})
    assert len(method.inducing_points[0]) == 10
    assert np.mean((method.predict(X).mean > 0.5) == labels) > 0.9


def test_the_papers_bound_has_the_exact_posterior_at_its_top():
    """With fixed hyperparameters and the same points for both batches, q is the exact posterior."""
    method = Paper(FIXED, points=lambda t: 9, rounds=1, iterations=3000)
    method._low, method._high = X.min(), X.max()  # the same grid both times
    method.update({"y": (X[::2], Y[::2])})
    assert_is(method.predict(AT), dense(X[::2], Y[::2], Y[::2].mean()), 2e-2)
    method.update({"y": (X[1::2], Y[1::2])})
    both = (np.concatenate([v[::2], v[1::2]]) for v in (X, Y))
    assert_is(method.predict(AT), dense(*both, Y[::2].mean()), 2e-2)


def test_the_papers_algorithm_takes_several_channels():
    channels = {"a": sgp.Gaussian(sgp.fixed(0.2)), "b": sgp.Poisson()}
    method = Paper(
        Specification(channels, [sgp.RBF()] * 2), points=lambda t: 4 * t, rounds=1, iterations=10
    )
    method.update({"a": (X[:20], Y[:20]), "b": (X[:20], np.round(Y[:20]))})
    method.update({"b": (X[20:], np.round(Y[20:]))})
    assert [len(z) for z in method.inducing_points] == [8, 8]
    assert np.isfinite(method.predict(AT, "a").mean).all()
    scores = method.update_many  # samples belong to the first channel
    assert np.isfinite(scores(X[20:22], Y[20:22]).log_predictive_rows["a"]).all()


def test_independent_channels_do_not_share_data():
    both = Independent({name: sgp.ContinualGP(sgp.Gaussian()) for name in "ab"})
    both.update({"a": (X, Y), "b": (X, -Y)})
    alone = sgp.ContinualGP(sgp.Gaussian())
    alone.update(X, Y)
    np.testing.assert_array_equal(both.predict(AT, "a").mean, alone.predict(AT).mean)
    assert len(both.inducing_points) == 2
