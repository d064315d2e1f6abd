"""The expansion of past data in the hyperparameters, against differences of a dense formula."""

import numpy as np
from scipy.linalg import block_diag
from tests._reference import build, dense

from streamgp.inference.learner import Learner
from streamgp.inference.vem import VEM
from streamgp.parameters import free_vector, with_free

Z = (np.linspace(-3, 3, 6)[:, None], np.linspace(-3, 3, 6)[:, None] + 0.2)
OFFSETS, SCALES = (0.0, 0.1), (1.0, 2.0)


def trained(evaluations=1):
    """Two Gaussian channels on two latent functions after one update; all can be trained."""
    generator = np.random.default_rng(0)
    weights = ([[0.9, 0.3]], [[-0.2, 0.7]])
    channels = [
        build.channel(build.gaussian(noise, trainable=True), w, offset, scale, trainable=True)
        for noise, w, offset, scale in zip((0.4, 0.6), weights, OFFSETS, SCALES, strict=True)
    ]
    model = build.model(channels, (1.0, 0.7), trainable=True)
    learner = Learner(learning=VEM(evaluations=evaluations))
    state = learner.init(model, Z)
    parts = []
    for index in range(2):
        x = generator.uniform(-3, 3, (25, 1))
        parts.append((index, x, np.sin(x[:, 0]) + 0.3 * generator.normal(size=25)))
    rows = build.rows(*parts)
    return learner, learner.step(state, rows)[0], rows


def dense_expectation(state, rows):
    """Σ E_q[log p(y|f)] of the batch as a function of all hyperparameters, q(u) held.

    They are, in logarithms, lengthscale and variance of each kernel and the noise of each channel,
    after which come the channel's two weights.
    """
    start = free_vector(state.model)

    def grams(vector):
        kernels = np.exp(vector[:4]).reshape(2, 2)
        return [dense.with_nugget(dense.rbf(z, z, *k)) for z, k in zip(Z, kernels, strict=True)]

    root = block_diag(*map(np.linalg.cholesky, grams(start)))
    covariance_v = np.linalg.inv(np.eye(12) + state.site.precision[0])
    mean_u = root @ covariance_v @ state.site.linear[0]
    covariance_u = root @ covariance_v @ root.T

    def value(vector):
        regressions, left = [], []
        for q, gram in enumerate(grams(vector)):
            lengthscale, variance = np.exp(vector[2 * q : 2 * q + 2])
            cross = dense.rbf(Z[q], rows.x, lengthscale, variance)
            regressions.append(np.linalg.solve(gram, cross).T)
            left.append(variance - np.sum(regressions[q].T * cross, axis=0))
        total = 0.0
        for d in range(2):
            noise, *weights = vector[4 + 3 * d : 7 + 3 * d]
            own, noise = rows.channel == d, np.exp(noise)
            w = SCALES[d] * np.asarray(weights)
            a = np.concatenate([w[q] * regressions[q][own] for q in range(2)], axis=1)
            spread = np.sum(a @ covariance_u * a, axis=1)
            spread += sum(w[q] ** 2 * left[q][own] for q in range(2))
            residual = rows.y[own, 0] - OFFSETS[d] - a @ mean_u
            total -= 0.5 * np.sum(np.log(2 * np.pi * noise**2) + (residual**2 + spread) / noise**2)
        return total

    return value, start


def test_gradient_and_curvature_are_those_of_the_expected_log_density():
    _, state, rows = trained()
    value, start = dense_expectation(state, rows)

    def gradient(vector):
        return build.slopes(value, vector, 1e-3)

    hessian = build.slopes(gradient, start, 1e-3)
    np.testing.assert_allclose(state.memory.gradient, gradient(start), rtol=1e-6, atol=1e-5)
    kernels = 4
    values, vectors = np.linalg.eigh(hessian[:kernels, :kernels])
    wanted = (vectors * np.abs(values)) @ vectors.T
    # The library takes one-sided differences here.
    np.testing.assert_allclose(
        state.memory.precision[:kernels, :kernels],
        wanted,
        rtol=0.001,
        atol=0.001 * np.abs(wanted).max(),
    )
    # Noise, then the two weights, of each channel: exact for Gaussian channels but for the
    # curvature between noise and weights, which is left out.
    for first in (kernels, kernels + 3):
        own = np.arange(first, first + 3)
        got = state.memory.precision[np.ix_(own, own)]
        np.testing.assert_allclose(got[1:, 1:], -hessian[np.ix_(own[1:], own[1:])], rtol=1e-5)
        np.testing.assert_allclose(got[0, 0], -hessian[first, first], rtol=1e-5)
    np.testing.assert_array_equal(state.memory.precision[:kernels, kernels:], 0.0)


def test_moving_the_centre_changes_nothing_but_a_constant():
    _, state, _ = trained()
    start = free_vector(state.model)
    shift = 0.1 * np.random.default_rng(1).normal(size=(2, len(start)))
    other, again = start + shift[0], start + shift[1]
    before = state.memory.value(again - start) - state.memory.value(other - start)
    moved = state.memory.recentred(with_free(state.model, other), state.model)
    np.testing.assert_allclose(moved.value(again - other), before, rtol=1e-9)


def test_the_slope_is_that_of_the_value():
    _, state, _ = trained()
    step = 0.1 * np.random.default_rng(1).normal(size=len(state.memory.gradient))
    wanted = build.slopes(state.memory.value, step, 1e-3)
    np.testing.assert_allclose(state.memory.slope(step), wanted, rtol=1e-8)


def test_precision_is_positive_and_grows():
    learner, state, rows = trained()
    more, _ = learner.step(state, rows)
    for s in (state, more):
        assert np.linalg.eigvalsh(s.memory.precision).min() > -1e-9
    assert np.trace(more.memory.precision) > np.trace(state.memory.precision)


def test_nothing_is_remembered_when_nothing_is_learned():
    _, state, rows = trained()
    frozen, _ = Learner(learning=None).step(state, rows)
    np.testing.assert_array_equal(frozen.memory.precision, state.memory.precision)
    np.testing.assert_array_equal(frozen.memory.gradient, state.memory.gradient)


def test_kernels_are_remembered_only_from_batches_that_learn():
    learner, state, rows = trained()
    kept, _ = learner.step(state, rows, learn=False)
    np.testing.assert_array_equal(kept.memory.precision[:4, :4], state.memory.precision[:4, :4])
    assert np.all(np.diag(kept.memory.precision)[4:] > np.diag(state.memory.precision)[4:])
