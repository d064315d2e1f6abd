"""The expansion of past data in the hyperparameters, against differences of a dense formula.

Kernels are remembered so, and likelihood parameters but for a noise that scales the sites. Weights,
scales and such noises are not: the past is read under any of them.
"""

import numpy as np
from scipy import stats
from scipy.linalg import block_diag
from tests._reference import build, dense

import streamgp as sgp
from streamgp.inference.learner import Learner
from streamgp.inference.vem import VEM
from streamgp.model.means import Constant
from streamgp.parameters import Positive, free_vector, replaced, with_free

Z = (np.linspace(-3, 3, 6)[:, None], np.linspace(-3, 3, 6)[:, None] + 0.2)
OFFSETS, SPREAD = (0.0, 0.1), 2.0
KERNELS, CHANNEL = 4, 4  # numbers: lengthscales and variances; noise or shape, two weights, scale
SHAPE = KERNELS + CHANNEL  # the only parameter of a channel that is remembered


def trained(evaluations=1):
    """A normal and a gamma channel on two latent functions after one update; all is trained."""
    generator = np.random.default_rng(0)
    likelihoods = build.gaussian(0.4, trainable=True), sgp.Gamma(Positive(2.0))
    weights = ([[0.9, 0.3]], [[-0.2, 0.7]])
    channels = []
    for likelihood, w, offset in zip(likelihoods, weights, OFFSETS, strict=True):
        own = build.channel(likelihood, w, offset, trainable=True, mean=Constant(), spread=SPREAD)
        channels.append(replaced(own, scale=Positive(np.array([1.3]))))
    model = build.model(channels, (1.0, 0.7), trainable=True)
    learner = Learner(learning=VEM(evaluations=evaluations, cells=0))
    state = learner.init(model, Z)
    x = generator.uniform(-3, 3, (2, 25, 1))
    f = np.sin(x[:, :, 0])
    parts = [(0, x[0], f[0] + 0.3 * generator.normal(size=25))]
    parts.append((1, x[1], generator.gamma(2.0, np.exp(f[1]))))
    rows = build.rows(*parts)
    return learner, build.as_fitted(learner, state, rows), rows


def density(channel, parameter, y):
    """log p(y|f) of each observation, as a function of f."""
    if channel == 0:
        return lambda f: stats.norm.logpdf(y[:, None], f, parameter)
    return lambda f: stats.gamma.logpdf(y[:, None], parameter, scale=np.exp(f) / parameter)


def dense_expectation(state, rows):
    """Σ E_q[log p(y|f)] of the batch as a function of all hyperparameters, q(u) and levels held.

    They are, in logarithms, lengthscale and variance of each kernel and the likelihood parameter of
    each channel, after which come the channel's two weights and, in logarithms, its scale.
    """
    start = free_vector(state.model)

    def grams(vector):
        kernels = np.exp(vector[:KERNELS]).reshape(2, 2)
        return [dense.with_nugget(dense.rbf(z, z, *k)) for z, k in zip(Z, kernels, strict=True)]

    root = block_diag(*map(np.linalg.cholesky, grams(start)), SPREAD * np.eye(2))
    covariance_v = np.linalg.inv(np.eye(14) + state.site.precision)
    mean_u = root @ covariance_v @ state.site.linear
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
            begin = KERNELS + CHANNEL * d
            parameter, *weights, scale = vector[begin : begin + CHANNEL]
            own, w = rows.channel == d, np.exp(scale) * np.asarray(weights)
            level = np.tile(np.eye(2)[d], (np.sum(own), 1))
            mixed = [w[q] * regressions[q][own] for q in range(2)]
            a = np.concatenate([*mixed, level], axis=1)
            variance = np.sum(a @ covariance_u * a, axis=1)
            variance += sum(w[q] ** 2 * left[q][own] for q in range(2))
            log_p = density(d, np.exp(parameter), rows.y[own, 0])
            total += np.sum(dense.expected(log_p, OFFSETS[d] + a @ mean_u, variance))
        return total

    return value, start


def test_gradient_and_curvature_are_those_of_the_expected_log_density():
    _, state, rows = trained()
    value, start = dense_expectation(state, rows)

    kept = np.append(np.arange(KERNELS), SHAPE)
    np.testing.assert_array_equal(np.flatnonzero(build.in_memory(state.model)), kept)

    def gradient(part):
        def with_part(own):
            vector = start.copy()
            vector[kept] = own
            return value(vector)

        return build.slopes(with_part, part, 1e-3)

    slope, hessian = gradient(start[kept]), build.slopes(gradient, start[kept], 1e-3)
    np.testing.assert_allclose(state.memory.gradient[kept], slope, rtol=1e-6, atol=1e-5)
    assert np.all(np.abs(slope) > 0.01)
    values, vectors = np.linalg.eigh(hessian[:KERNELS, :KERNELS])
    wanted = (vectors * np.abs(values)) @ vectors.T
    # The library takes one-sided differences here.
    np.testing.assert_allclose(
        state.memory.precision[:KERNELS, :KERNELS],
        wanted,
        rtol=0.001,
        atol=0.001 * np.abs(wanted).max(),
    )
    np.testing.assert_allclose(state.memory.precision[SHAPE, SHAPE], -hessian[-1, -1], rtol=1e-5)


def test_nothing_is_remembered_of_weights_scales_and_noises_that_scale_sites():
    """Nor of how kernels and likelihood parameters go together."""
    _, state, _ = trained(evaluations=10)
    kept = build.in_memory(state.model)
    np.testing.assert_array_equal(state.memory.gradient[~kept], 0.0)
    np.testing.assert_array_equal(state.memory.precision[~kept], 0.0)
    np.testing.assert_array_equal(state.memory.precision[:KERNELS, KERNELS:], 0.0)
    assert np.all(state.memory.gradient[kept] != 0)


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
    kernels = np.s_[:KERNELS, :KERNELS]
    np.testing.assert_array_equal(kept.memory.precision[kernels], state.memory.precision[kernels])
    assert kept.memory.precision[SHAPE, SHAPE] > state.memory.precision[SHAPE, SHAPE]


def test_kernels_are_remembered_from_other_batches_where_asked_for():
    learner, state, rows = trained()
    kept, _ = learner.step(state, rows, learn=False, remember=True)
    before, after = (s.memory.precision[:KERNELS, :KERNELS] for s in (state, kept))
    assert np.trace(after) > 1.5 * np.trace(before)
    np.testing.assert_array_equal(free_vector(kept.model), free_vector(state.model))
