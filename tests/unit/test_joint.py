"""Joint predictions are those of the dense posterior, across rows and across channels."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests._reference import build, dense

from streamgp.data import pack
from streamgp.inference.learner import Learner

_joint = eqx.filter_jit(Learner.predict_joint)
WEIGHTS = np.array([[1.0, 0.4], [-0.3, 0.9]])
LENGTHSCALES, NOISE, OFFSETS = (1.0, 2.0), (0.3, 0.2), (0.5, -2.0)


def _kernel(a, of_a, b, of_b):
    """Covariance of f_d(x): Σ_q w_dq w_eq k_q, entry by entry."""
    grams = [dense.rbf(a[:, None], b[:, None], lengthscale) for lengthscale in LENGTHSCALES]
    return sum(np.outer(WEIGHTS[of_a, q], WEIGHTS[of_b, q]) * gram for q, gram in enumerate(grams))


@pytest.fixture(scope="module")
def posterior():
    """Two channels on two latents, with inducing points at all inputs."""
    rng = np.random.default_rng(0)
    x = np.linspace(0, 4, 9)
    of = np.arange(9) % 2
    y = np.sin(x) + np.array(OFFSETS)[of] + 0.1 * rng.normal(size=9)
    learner = Learner(learning=None)
    with jax.enable_x64(True):
        channels = [
            build.channel(build.gaussian(noise), [weights], offset)
            for noise, weights, offset in zip(NOISE, WEIGHTS, OFFSETS, strict=True)
        ]
        model = build.model(channels, LENGTHSCALES)
        state = learner.init(model, build.inducing(x, x, slots=12))
        batch = pack([(d, x[of == d, None], y[of == d]) for d in range(2)])
        state, _ = build.step(learner, state, batch)
    return learner, state, (x, of, y)


def test_the_joint_is_that_of_the_exact_posterior(posterior):
    learner, state, (x, of, y) = posterior
    s, of_s = np.array([-1.0, 0.3, 0.3, 2.2, 7.0]), np.array([0, 0, 1, 1, 0])
    mean, covariance = _joint(learner, state, jnp.asarray(s[:, None]), jnp.asarray(of_s))
    offsets = np.array(OFFSETS)
    expected, between, _ = dense.exact_gp(
        _kernel(x, of, x, of),
        _kernel(x, of, s, of_s),
        _kernel(s, of_s, s, of_s),
        y - offsets[of],
        np.array(NOISE)[of] ** 2,
    )
    np.testing.assert_allclose(mean[:, 0], expected + offsets[of_s], atol=1e-6)
    np.testing.assert_allclose(covariance[:, 0, :, 0], between, atol=1e-6)


def test_its_diagonal_is_the_marginals(posterior):
    learner, state, _ = posterior
    s, of_s = jnp.linspace(-1, 5, 6)[:, None], jnp.arange(6) % 2
    mean, covariance = _joint(learner, state, s, of_s)
    marginal_mean, marginal = learner.predict(state, s, of_s)
    np.testing.assert_allclose(mean, marginal_mean, atol=1e-12)
    rows = np.arange(6)
    np.testing.assert_allclose(covariance[rows, :, rows, :], marginal, atol=1e-12)


@pytest.mark.parametrize("factorised", [False, True])
def test_beyond_the_inducing_points_the_prior_is_left(factorised):
    """Few points, none nearby: what they leave open is correlated between rows all the same."""
    learner = Learner(learning=None, factorised=factorised)
    model = build.model([build.channel(build.gaussian(0.3), [[0.8, 0.5]])], LENGTHSCALES)
    state = learner.init(model, build.inducing([-50.0], [-50.0], slots=4))
    s = np.array([0.0, 0.5, 3.0])
    _, covariance = _joint(learner, state, jnp.asarray(s[:, None]), jnp.zeros(3, int))
    grams = [dense.rbf(s[:, None], s[:, None], lengthscale) for lengthscale in LENGTHSCALES]
    np.testing.assert_allclose(
        covariance[:, 0, :, 0], 0.8**2 * grams[0] + 0.5**2 * grams[1], atol=1e-9
    )
