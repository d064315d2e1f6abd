"""Predictions of all rows together, against the dense formulas; and states that are copied."""

import copy
import pickle

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests._reference import build, dense

from streamgp.data import pack
from streamgp.learner import Learner

predict_joint = eqx.filter_jit(Learner.predict_joint)


def test_one_channel_is_the_exact_gp():
    x = np.linspace(-3, 3, 15)[:, None]
    y = np.sin(2 * x[:, 0])
    learner = Learner(learning=None)
    state = learner.init(build.one_gaussian(0.7, 1.5, 0.2), build.inducing(x))
    state, _ = build.step(learner, state, pack([(0, x, y)]))
    s = np.linspace(-3.2, 3.1, 9)[:, None]
    mean, covariance, _ = dense.exact_gp(
        dense.rbf(x, x, 0.7, 1.5), dense.rbf(x, s, 0.7, 1.5), dense.rbf(s, s, 0.7, 1.5),
        y, np.full(15, 0.04),
    )  # fmt: skip
    got_mean, got = predict_joint(learner, state, jnp.asarray(s), jnp.zeros(9, int))
    np.testing.assert_allclose(got_mean[:, 0], mean, atol=1e-6)
    np.testing.assert_allclose(got[:, 0, :, 0], covariance, atol=1e-6)


@pytest.mark.parametrize("factorised", [False, True])
def test_rows_of_several_channels_agree_with_the_sparse_formulas(factorised):
    weights = np.array([[1.0, 0.4], [-0.3, 0.8]])
    channels = [build.channel(build.gaussian(0.3), w[None]) for w in weights]
    model = build.model(channels, lengthscales=(1.0, 0.6))
    z = np.linspace(-2, 2, 5)[:, None]
    learner = Learner(learning=None, factorised=factorised)
    state = learner.init(model, build.inducing(z, z))
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (12, 1))
    state, _ = build.step(learner, state, pack([(0, x, np.sin(x[:, 0])), (1, x, x[:, 0])]))
    s, at = rng.uniform(-3, 3, (6, 1)), np.array([0, 1, 0, 1, 1, 0])
    posterior = learner.condition(state)
    blocks = np.asarray(posterior.covariance())
    v = dense.block_diagonal(blocks) if factorised else blocks[0]

    projections, left_open = [], []
    for lengthscale in (1.0, 0.6):
        k_zz = dense.rbf(z, z, lengthscale) + dense.NUGGET * np.eye(5)
        k_zs = dense.rbf(z, s, lengthscale)
        projections.append(np.linalg.solve(np.linalg.cholesky(k_zz), k_zs))
        left_open.append(dense.rbf(s, s, lengthscale) - k_zs.T @ np.linalg.solve(k_zz, k_zs))
    w = weights[at]
    design = np.concatenate([w[:, q : q + 1] * projections[q].T for q in range(2)], axis=1)
    slack = sum(np.outer(w[:, q], w[:, q]) * left_open[q] for q in range(2))
    mean, got = predict_joint(learner, state, jnp.asarray(s), jnp.asarray(at))
    np.testing.assert_allclose(got[:, 0, :, 0], design @ v @ design.T + slack, atol=1e-9)
    np.testing.assert_allclose(mean[:, 0], design @ np.ravel(posterior.mean), atol=1e-9)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_a_copied_state_keeps_its_precision(copied):
    points = build.inducing(np.linspace(-2, 2, 4))
    state = Learner(learning=None).init(build.one_gaussian(), points)
    with jax.enable_x64(False):
        again = copied(state)
    assert jax.tree.structure(again) == jax.tree.structure(state)
    for got, wanted in zip(jax.tree.leaves(again), jax.tree.leaves(state), strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(got, wanted)
