"""Joint predictions are those of the dense posterior, across rows and across channels."""

import numpy as np
import pytest
from tests._reference import build, dense

from streamgp.inference.sparse.learner import Learner
from streamgp.likelihoods import Categorical
from streamgp.model.means import Constant

WEIGHTS = np.array([[1.0, 0.4], [-0.3, 0.9]])
LENGTHSCALES, NOISE, OFFSETS = (1.0, 2.0), (0.3, 0.2), (0.5, -2.0)
SPREAD = 1.5  # of the levels


def _kernel(a, of_a, b, of_b):
    """Covariance of f_d(x): Σ_q w_dq w_eq k_q and that of the levels, entry by entry."""
    grams = [dense.rbf(a[:, None], b[:, None], lengthscale) for lengthscale in LENGTHSCALES]
    mixed = [np.outer(WEIGHTS[of_a, q], WEIGHTS[of_b, q]) * gram for q, gram in enumerate(grams)]
    return sum(mixed) + SPREAD**2 * (of_a[:, None] == of_b)


@pytest.fixture(scope="module")
def posterior():
    """Two channels on two latent functions, with inducing points at all inputs."""
    rng = np.random.default_rng(0)
    x = np.linspace(0, 4, 9)
    of = np.arange(9) % 2
    y = np.sin(x) + np.array(OFFSETS)[of] + 0.1 * rng.normal(size=9)
    learner = Learner(learning=None)
    channels = [
        build.channel(build.gaussian(noise), [weights], offset, mean=Constant(), spread=SPREAD)
        for noise, weights, offset in zip(NOISE, WEIGHTS, OFFSETS, strict=True)
    ]
    state = learner.init(build.model(channels, LENGTHSCALES), build.points(x, x))
    rows = build.rows(*[(d, x[of == d], y[of == d]) for d in range(2)])
    state, _ = learner.step(state, rows)
    return learner, state, (x, of, y)


@pytest.mark.parametrize("channels", [[0, 1], [1, 0], [1]], ids=str)
def test_the_joint_is_that_of_the_exact_posterior(posterior, channels):
    learner, state, (x, of, y) = posterior
    s = np.array([-1.0, 0.3, 0.3, 2.2, 7.0])
    mean, covariance = learner.predict_joint(state, s[:, None], channels)
    of_s, s = np.repeat(channels, 5), np.tile(s, len(channels))
    offsets = np.array(OFFSETS)
    expected, between, _ = dense.exact_gp(
        _kernel(x, of, x, of),
        _kernel(x, of, s, of_s),
        _kernel(s, of_s, s, of_s),
        y - offsets[of],
        np.array(NOISE)[of] ** 2,
    )
    np.testing.assert_allclose(mean, expected + offsets[of_s], atol=1e-6)
    np.testing.assert_allclose(covariance, between, atol=1e-6)


def test_its_diagonal_is_the_marginals(posterior):
    learner, state, _ = posterior
    s = np.linspace(-1, 5, 6)[:, None]
    mean, covariance = learner.predict_joint(state, s, [0, 1])
    for d in range(2):
        own = slice(6 * d, 6 * d + 6)
        marginal_mean, marginal = learner.predict(state, s, d)
        np.testing.assert_allclose(mean[own], marginal_mean[:, 0], atol=1e-12)
        np.testing.assert_allclose(np.diag(covariance)[own], marginal[:, 0, 0], atol=1e-12)


def test_several_latent_parameters_lie_together():
    """A channel of three beside one of one: blocks along the diagonal are the marginals'."""
    learner = Learner(learning=None)
    generator = np.random.default_rng(0)
    channels = [
        build.channel(Categorical(3), generator.normal(size=(3, 2)), mean=Constant()),
        build.channel(build.gaussian(0.3), [[0.8, 0.5]], 0.4),
    ]
    z = np.linspace(0, 4, 5)
    state = learner.init(build.model(channels, LENGTHSCALES), build.points(z, z + 0.3))
    x = np.linspace(0, 4, 8)
    state, _ = learner.step(state, build.rows((0, x, np.arange(8) % 3), (1, x, np.sin(x))))
    s = np.linspace(-1, 5, 4)[:, None]
    mean, covariance = learner.predict_joint(state, s, [1, 0])
    assert mean.shape == (16,)
    one, three = learner.predict(state, s, 1), learner.predict(state, s, 0)
    np.testing.assert_allclose(mean, np.concatenate([one[0].ravel(), three[0].ravel()]))
    np.testing.assert_allclose(np.diag(covariance)[:4], one[1][:, 0, 0], atol=1e-12)
    for n in range(4):
        own = slice(4 + 3 * n, 7 + 3 * n)
        np.testing.assert_allclose(covariance[own, own], three[1][n], atol=1e-12)
    np.testing.assert_allclose(covariance, covariance.T, atol=1e-12)
    assert np.linalg.eigvalsh(covariance).min() > -1e-10


def test_beyond_the_inducing_points_the_prior_is_left():
    """Few points, none nearby: what they leave open is correlated between rows all the same."""
    learner = Learner(learning=None)
    channel = build.channel(build.gaussian(0.3), [[0.8, 0.5]], mean=Constant(), spread=SPREAD)
    model = build.model([channel], LENGTHSCALES)
    state = learner.init(model, build.points([-50.0], [-50.0]))
    s = np.array([[0.0], [0.5], [3.0]])
    _, covariance = learner.predict_joint(state, s, [0])
    grams = [dense.rbf(s, s, lengthscale) for lengthscale in LENGTHSCALES]
    wanted = 0.8**2 * grams[0] + 0.5**2 * grams[1] + SPREAD**2
    np.testing.assert_allclose(covariance, wanted, atol=1e-9)
