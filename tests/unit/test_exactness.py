"""Gaussian channels at fixed hyperparameters: the stream is the batch, and the batch is exact."""

import jax.numpy as jnp
import numpy as np
import pytest
from tests._reference import build, dense

from streamgp.data import pack
from streamgp.inference.learner import Learner

LEARNER = Learner(learning=None)
TEST = jnp.linspace(-3.0, 3.0, 31)[:, None]


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
    return build.predict(LEARNER, state, TEST, channel)


@pytest.mark.parametrize("seed", range(3))
def test_any_chunking_order_and_interleaving_gives_the_batch_posterior(seed):
    points = build.inducing(np.linspace(-3, 3, 12), np.linspace(-3, 3, 15), slots=16)
    data = stream(seed)
    empty = LEARNER.init(two_channels(), points)
    whole, _ = build.step(LEARNER, empty, pack(data))

    generator = np.random.default_rng(seed)
    rows = [(d, x[i : i + 1], y[i : i + 1]) for d, x, y in data for i in range(len(y))]
    order = generator.permutation(len(rows))
    state = empty
    cuts = np.sort(generator.choice(np.arange(1, len(rows)), 6, replace=False))
    for chunk in np.split(order, cuts):
        state, _ = build.step(LEARNER, state, pack([rows[i] for i in chunk]))
    for channel in range(2):
        for got, wanted in zip(predict(state, channel), predict(whole, channel), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-8, atol=1e-10)


def test_bounds_of_chunks_add_up_to_the_bound_of_the_batch():
    points = build.inducing(np.linspace(-3, 3, 12), np.linspace(-3, 3, 15), slots=16)
    data = stream()
    empty = LEARNER.init(two_channels(), points)
    _, whole = build.step(LEARNER, empty, pack(data))
    state, total = empty, 0.0
    for part in data:
        state, info = build.step(LEARNER, state, pack([part]))
        total += info.bound
    np.testing.assert_allclose(total, whole.bound, rtol=1e-9)


def test_inducing_points_at_the_inputs_give_the_exact_gp():
    x = np.linspace(-3, 3, 25)[:, None]
    y = np.sin(2 * x[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=25)
    state = LEARNER.init(build.one_gaussian(0.7, 1.5, 0.2), build.inducing(x))
    state, info = build.step(LEARNER, state, pack([(0, x, y)]))
    s = np.asarray(TEST)
    mean, covariance, evidence = dense.exact_gp(
        dense.rbf(x, x, 0.7, 1.5), dense.rbf(x, s, 0.7, 1.5), dense.rbf(s, s, 0.7, 1.5),
        y, np.full(25, 0.04),
    )  # fmt: skip
    got_mean, got_covariance = predict(state, 0)
    np.testing.assert_allclose(got_mean[:, 0], mean, atol=1e-6)
    np.testing.assert_allclose(got_covariance[:, 0, 0], np.diag(covariance), atol=1e-6)
    np.testing.assert_allclose(info.bound, evidence, rtol=1e-6)


def test_several_channels_match_the_dense_coregionalised_gp():
    data = stream(rows=15)
    everywhere = np.concatenate([x for _, x, _ in data])
    state = LEARNER.init(two_channels(), build.inducing(everywhere, everywhere))
    state, info = build.step(LEARNER, state, pack(data))

    weights = np.array([[1.0, 0.4], [-0.6, 1.6]])  # the second channel's scale is two
    offsets, noises = np.array([0.2, 0.0]), np.array([0.3, 0.5])
    channel = np.repeat([0, 1], 15)

    def covariance(x, cx, z, cz):
        k = [dense.rbf(x, z, 1.0), dense.rbf(x, z, 0.6)]
        return sum(np.outer(weights[cx, q], weights[cz, q]) * k[q] for q in range(2))

    y = np.concatenate([y for _, _, y in data]) - offsets[channel]
    s = np.asarray(TEST)
    for d in range(2):
        at = np.full(len(s), d)
        mean, variance, evidence = dense.exact_gp(
            covariance(everywhere, channel, everywhere, channel),
            covariance(everywhere, channel, s, at),
            covariance(s, at, s, at), y, noises[channel] ** 2,
        )  # fmt: skip
        got_mean, got_variance = predict(state, d)
        np.testing.assert_allclose(got_mean[:, 0], mean + offsets[d], atol=1e-6)
        np.testing.assert_allclose(got_variance[:, 0, 0], np.diag(variance), atol=1e-6)
        np.testing.assert_allclose(info.bound, evidence, rtol=1e-6)


@pytest.mark.parametrize("count", [2, 5, 12])
def test_the_bound_is_titsias_and_below_the_evidence(count):
    _, x, y = stream()[0]
    z = np.linspace(-3, 3, count)[:, None]
    state = LEARNER.init(build.one_gaussian(0.8, 1.3, 0.3), build.inducing(z, slots=16))
    _, info = build.step(LEARNER, state, pack([(0, x, y)]))
    k_zz = dense.rbf(z, z, 0.8, 1.3)
    k_zz += dense.NUGGET * np.diag(np.diag(k_zz))
    noise = np.full(len(y), 0.09)
    _, _, bound = dense.sparse_gp(k_zz, dense.rbf(z, x, 0.8, 1.3), np.full(len(y), 1.3), y, noise)
    k_xx = dense.rbf(x, x, 0.8, 1.3)
    np.testing.assert_allclose(info.bound, bound, rtol=1e-9)
    assert info.bound <= dense.exact_gp(k_xx, k_xx, k_xx, y, noise)[2]


def test_the_prequential_score_is_the_prediction_made_before():
    (_, x, y), (_, x2, y2) = stream()
    state = LEARNER.init(build.one_gaussian(), build.inducing(np.linspace(-3, 3, 12)))
    state, _ = build.step(LEARNER, state, pack([(0, x, y)]))
    mean, covariance = build.predict(LEARNER, state, x2)
    variance = covariance[:, 0, 0] + 0.3**2
    wanted = -0.5 * (np.log(2 * np.pi * variance) + (y2 - mean[:, 0]) ** 2 / variance)
    _, info = build.step(LEARNER, state, pack([(0, x2, y2)]))
    np.testing.assert_allclose(info.log_predictive[: len(y2)], wanted, rtol=1e-9)
