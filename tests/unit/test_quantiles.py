"""Counts of any size: distribution functions against SciPy's, and the quantiles made of them."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

import streamgp as sgp
from streamgp.likelihoods.incomplete import lower_beta, upper_gamma
from streamgp.prediction.prediction import Prediction


@pytest.mark.parametrize("a", [0.5, 3.0, 999.0, 1001.0, 1e5, 1e7])
def test_upper_gamma(a):
    x = np.maximum(a + np.linspace(-4, 4, 33) * np.sqrt(a), 0)
    x = np.concatenate([x, [0.0, 0.3 * a, 3 * a, 1e6 * a]])
    got = np.asarray(upper_gamma(jnp.full(x.shape, a), jnp.asarray(x)))
    np.testing.assert_allclose(got, special.gammaincc(a, x), rtol=0, atol=5e-8)


@pytest.mark.parametrize("a", [0.5, 10.0, 100.0])
@pytest.mark.parametrize("mean", [1.0, 1e5, 1e7, 1e12, 1e20])
def test_lower_beta(a, mean):
    b = 1 + np.floor(mean * np.geomspace(1e-4, 20, 40))
    shape = b.shape
    got = lower_beta(jnp.full(shape, a), jnp.asarray(b), jnp.full(shape, a / mean))
    np.testing.assert_allclose(got, special.betainc(a, b, a / (a + mean)), rtol=0, atol=1e-6)


def at(likelihood, log_mean, variance):
    return Prediction(likelihood, np.full((2, 1), log_mean), np.full((2, 1, 1), variance))


def test_quantiles_of_large_counts():
    level = 0.05
    exact = stats.poisson(np.exp(14.0)).ppf(level)
    assert at(sgp.Poisson(), 14.0, 1e-18).quantile(level)[0] == pytest.approx(exact, abs=2)
    wide = at(sgp.NegativeBinomial(10.0), 8.0, 30.0)  # some of it beyond what JAX can do
    low, high = wide.interval(0.9)
    assert np.all(low <= 10)
    assert np.all((high > 1e7) & (high < 1e8))


def test_quantiles_lie_in_the_support():
    assert np.all(at(sgp.Beta(10.0), 14.0, 1.0).quantile(0.95) <= 1.0)


def test_quantiles_far_below_the_spread():
    """log y is near normal here; the variance of y is 1e135, its lower quantile 1e-7."""
    low, high = at(sgp.Exponential(), 16.0, 345.0).interval(0.9)
    np.testing.assert_allclose(np.log(low), 15.42 - 1.645 * 18.6, atol=0.2)
    np.testing.assert_allclose(np.log(high), 15.42 + 1.645 * 18.6, atol=0.2)
