"""Batches too large to hold at once, folded in by random parts."""

import numpy as np
import pytest

import streamgp as sgp

GENERATOR = np.random.default_rng(0)
X = GENERATOR.uniform(0, 6, 1000)
F = 2 * np.sin(2 * X)
POINTS = sgp.Fixed(np.linspace(0, 6, 14))


def pair(likelihood, y, **settings):
    whole = sgp.ContinualGP(likelihood, batch_rows=4096, **settings)
    parts = sgp.ContinualGP(likelihood, batch_rows=128, **settings)
    return (whole, whole.update(X[:900], y[:900])), (parts, parts.update(X[:900], y[:900]))


def test_gaussian_channels_lose_nothing():
    y = F + 0.3 * GENERATOR.normal(size=1000)
    kernel = [sgp.RBF(1.0, 2.0)]
    (whole, one), (parts, many) = pair(
        sgp.Gaussian(0.3), y, inducing=POINTS, learning=None, latents=kernel
    )
    np.testing.assert_allclose(many.bound, one.bound, rtol=1e-9)
    np.testing.assert_allclose(
        many.log_predictive_rows["y"], one.log_predictive_rows["y"], atol=1e-9
    )
    for name in ("latent_mean", "latent_variance"):
        got, wanted = (getattr(m.predict(X[900:]), name) for m in (parts, whole))
        np.testing.assert_allclose(got, wanted, atol=1e-8)
    assert parts.observations == {"y": 900}


@pytest.mark.parametrize("kind", ["gaussian", "bernoulli"])
def test_learning_in_parts_is_as_good(kind):
    y = F + 0.3 * GENERATOR.normal(size=1000)
    y, likelihood = (y, sgp.Gaussian()) if kind == "gaussian" else (y > 0, sgp.Bernoulli())
    (whole, _), (parts, _) = pair(likelihood, y.astype(float))
    nlpd = [-np.mean(m.predict(X[900:]).log_density(y[900:])) for m in (whole, parts)]
    assert nlpd[1] - nlpd[0] < 0.01
