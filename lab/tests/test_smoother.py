"""The exact smoother against a dense Gaussian process, which shares nothing with it."""

import numpy as np
from scipy import stats

from streamgp_lab.baselines.smoother import Matern, log_evidence, most_likely, path, smooth

MODEL = Matern(lengthscale=0.7, variance=1.6, noise=0.4)


def covariance(a, b):
    distance = np.sqrt(3) * np.abs(a[:, None] - b[None]) / MODEL.lengthscale
    return MODEL.variance * (1 + distance) * np.exp(-distance)


def data(count=60):
    generator = np.random.default_rng(0)
    x = np.sort(np.concatenate([generator.uniform(0, 6, count), [2.0, 2.0, 2.0 + 1e-6]]))
    return x, np.sin(2 * x) + MODEL.noise * generator.normal(size=len(x))


def test_it_is_the_exact_gp():
    x, y = data()
    at = np.concatenate([[-1.0, 3.3, 9.0, 0.5], x[:3]])
    total = covariance(x, x) + MODEL.noise**2 * np.eye(len(x))
    weights = np.linalg.solve(total, covariance(x, at))
    got = smooth(x, y, at, MODEL)
    np.testing.assert_allclose(got.mean, weights.T @ y, atol=1e-8)
    left = MODEL.variance - np.sum(weights * covariance(x, at), axis=0)
    np.testing.assert_allclose(got.variance, left, atol=1e-8)
    shuffled = np.random.default_rng(1).permutation(len(x))
    np.testing.assert_allclose(smooth(x[shuffled], y[shuffled], at, MODEL).mean, got.mean)
    said = stats.multivariate_normal(np.zeros(len(x)), total).logpdf(y)
    np.testing.assert_allclose(log_evidence(x, y, MODEL), said, atol=1e-8)


def test_paths_have_the_covariance_of_the_kernel():
    times = np.array([0.0, 1e-7, 0.2, 0.9, 3.0])
    generator = np.random.default_rng(0)
    draws = np.array([path(times, MODEL, generator) for _ in range(20000)])
    np.testing.assert_allclose(np.cov(draws.T), covariance(times, times), atol=0.06)


def test_the_most_likely_hyperparameters():
    generator = np.random.default_rng(3)
    x = np.sort(generator.uniform(0, 300, 1500))
    y = path(x, MODEL, generator) + MODEL.noise * generator.normal(size=len(x))
    found = most_likely(x, y, Matern(1.0, 1.0, 0.3))
    np.testing.assert_allclose(found, MODEL, rtol=0.25)
    best = log_evidence(x, y, found)
    for field in Matern._fields:
        for factor in (0.97, 1.03):
            moved = found._replace(**{field: factor * getattr(found, field)})
            assert log_evidence(x, y, moved) < best
