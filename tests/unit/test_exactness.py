"""Gaussian channels at fixed hyperparameters: the stream is the batch, and the batch is exact."""

import numpy as np
import pytest
from tests._reference import build, dense

from streamgp.inference.sparse.learner import Learner

LEARNER = Learner(learning=None)
TEST = np.linspace(-3.0, 3.0, 31)[:, None]
POINTS = build.points(np.linspace(-3, 3, 12), np.linspace(-3, 3, 15))


def stream(seed=0, rows=40):
    """(channel, x, y) of two channels with their own inputs."""
    generator = np.random.default_rng(seed)
    data = []
    for index in range(2):
        x = generator.uniform(-3, 3, (rows, 1))
        data.append((index, x, np.sin(x[:, 0] + index) + 0.3 * generator.normal(size=rows)))
    return data


def two_channels():
    channels = [
        build.channel(build.gaussian(0.3), [[1.0, 0.4]], offset=0.2),
        build.channel(build.gaussian(0.5), [[-0.3, 0.8]], scale=2.0),
    ]
    return build.model(channels, lengthscales=(1.0, 0.6))


def predict(state, channel):
    return LEARNER.predict(state, TEST, channel)


@pytest.mark.parametrize("seed", range(3))
def test_any_chunking_order_and_interleaving_gives_the_batch_posterior(seed):
    rows = build.rows(*stream(seed))
    empty = LEARNER.init(two_channels(), POINTS)
    whole, _ = LEARNER.step(empty, rows)

    generator = np.random.default_rng(seed)
    order = generator.permutation(rows.size)
    state = empty
    cuts = np.sort(generator.choice(np.arange(1, rows.size), 6, replace=False))
    for chunk in np.split(order, cuts):
        state, _ = LEARNER.step(state, rows.take(chunk))
    for channel in range(2):
        for got, wanted in zip(predict(state, channel), predict(whole, channel), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-8, atol=1e-10)


def test_bounds_of_chunks_add_up_to_the_bound_of_the_batch():
    data = stream()
    empty = LEARNER.init(two_channels(), POINTS)
    _, whole = LEARNER.step(empty, build.rows(*data))
    state, total = empty, 0.0
    for part in data:
        state, info = LEARNER.step(state, build.rows(part))
        total += info.bound
    np.testing.assert_allclose(total, whole.bound, rtol=1e-9)


def test_inducing_points_at_the_inputs_give_the_exact_gp():
    x = np.linspace(-3, 3, 25)[:, None]
    y = np.sin(2 * x[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=25)
    state = LEARNER.init(build.one_gaussian(0.7, 1.5, 0.2), build.points(x))
    state, info = LEARNER.step(state, build.rows((0, x, y)))
    mean, covariance, evidence = dense.exact_gp(
        dense.rbf(x, x, 0.7, 1.5), dense.rbf(x, TEST, 0.7, 1.5), dense.rbf(TEST, TEST, 0.7, 1.5),
        y, np.full(25, 0.04),
    )  # fmt: skip
    got_mean, got_covariance = predict(state, 0)
    np.testing.assert_allclose(got_mean[:, 0], mean, atol=1e-6)
    np.testing.assert_allclose(got_covariance[:, 0, 0], np.diag(covariance), atol=1e-6)
    np.testing.assert_allclose(info.bound, evidence, rtol=1e-6)


def test_several_channels_match_the_dense_coregionalised_gp():
    data = stream(rows=15)
    everywhere = np.concatenate([x for _, x, _ in data])
    state = LEARNER.init(two_channels(), build.points(everywhere, everywhere))
    state, info = LEARNER.step(state, build.rows(*data))

    weights = np.array([[1.0, 0.4], [-0.6, 1.6]])  # the second channel's scale is two
    offsets, noises = np.array([0.2, 0.0]), np.array([0.3, 0.5])
    channel = np.repeat([0, 1], 15)

    def covariance(x, cx, z, cz):
        k = [dense.rbf(x, z, 1.0), dense.rbf(x, z, 0.6)]
        return sum(np.outer(weights[cx, q], weights[cz, q]) * k[q] for q in range(2))

    y = np.concatenate([y for _, _, y in data]) - offsets[channel]
    for d in range(2):
        at = np.full(len(TEST), d)
        mean, variance, evidence = dense.exact_gp(
            covariance(everywhere, channel, everywhere, channel),
            covariance(everywhere, channel, TEST, at),
            covariance(TEST, at, TEST, at), y, noises[channel] ** 2,
        )  # fmt: skip
        got_mean, got_variance = predict(state, d)
        np.testing.assert_allclose(got_mean[:, 0], mean + offsets[d], atol=1e-6)
        np.testing.assert_allclose(got_variance[:, 0, 0], np.diag(variance), atol=1e-6)
        np.testing.assert_allclose(info.bound, evidence, rtol=1e-6)


@pytest.mark.parametrize("count", [2, 5, 12])
def test_the_bound_is_titsias_and_below_the_evidence(count):
    _, x, y = stream()[0]
    z = np.linspace(-3, 3, count)[:, None]
    state = LEARNER.init(build.one_gaussian(0.8, 1.3, 0.3), build.points(z))
    _, info = LEARNER.step(state, build.rows((0, x, y)))
    k_zz = dense.with_nugget(dense.rbf(z, z, 0.8, 1.3))
    noise = np.full(len(y), 0.09)
    _, _, bound = dense.sparse_gp(k_zz, dense.rbf(z, x, 0.8, 1.3), np.full(len(y), 1.3), y, noise)
    k_xx = dense.rbf(x, x, 0.8, 1.3)
    np.testing.assert_allclose(info.bound, bound, rtol=1e-9)
    assert info.bound <= dense.exact_gp(k_xx, k_xx, k_xx, y, noise)[2]


def test_the_prequential_score_is_the_prediction_made_before():
    (_, x, y), (_, x2, y2) = stream()
    state = LEARNER.init(build.one_gaussian(), build.points(np.linspace(-3, 3, 12)))
    state, _ = LEARNER.step(state, build.rows((0, x, y)))
    mean, covariance = LEARNER.predict(state, x2, 0)
    variance = covariance[:, 0, 0] + 0.3**2
    wanted = -0.5 * (np.log(2 * np.pi * variance) + (y2 - mean[:, 0]) ** 2 / variance)
    second = build.rows((0, x2, y2))
    _, info = LEARNER.step(state, second)
    np.testing.assert_allclose(info.log_predictive, wanted, rtol=1e-9)
    np.testing.assert_allclose(LEARNER.log_predictive(state, second), wanted, rtol=1e-9)


def test_what_a_step_computed_on_the_way_is_what_its_state_implies():
    """States keep the factors that a step has made: those of a bare copy are the same."""
    learner = Learner()
    channels = [build.channel(build.gaussian(0.3, trainable=True), [[1.0, 0.4]], trainable=True)]
    start = build.model(channels, (1.0, 0.6), trainable=True)
    state = learner.init(start, POINTS)
    state, _ = learner.step(state, build.rows(stream()[0]))
    assert state.plain.kernels[0].lengthscale != 1.0
    bare = state.replace()
    for kept, fresh in (
        *zip(state.prior.chols, bare.prior.chols, strict=True),
        (state.posterior.mean, bare.posterior.mean),
        (state.posterior.chol, bare.posterior.chol),
    ):
        np.testing.assert_allclose(kept, fresh, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(state.posterior.log_evidence, bare.posterior.log_evidence)
