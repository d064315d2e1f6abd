"""Kernels are tinygp kernels with parameters that start, train and stay positive."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest
import tinygp

import streamgp as sgp
from streamgp import kernels
from streamgp.model.multitask import _Centred
from streamgp.numerics.linalg import gram
from streamgp.parameters import Positive, log_prior, split

X = np.random.default_rng(0).normal(size=(30, 2))
SPREAD = X.std(axis=0)
ALL = [
    sgp.RBF(), sgp.Matern12(), sgp.Matern32(), sgp.Matern52(), sgp.RationalQuadratic(),
    sgp.Periodic(), sgp.Linear(), sgp.RBF() + sgp.Linear(), sgp.RBF() * sgp.Periodic(),
]  # fmt: skip


def ready(kernel, variance=2.0):
    return paramax.unwrap(kernels.start(kernel, SPREAD, variance))


@pytest.mark.parametrize("kernel", ALL, ids=lambda k: type(k).__name__)
def test_symmetric_positive_and_differentiable_in_several_inputs(kernel):
    k = ready(kernel)(X, X)
    np.testing.assert_allclose(k, k.T)
    assert np.linalg.eigvalsh(k).min() > -1e-9
    started = jax.tree.map(jnp.asarray, kernels.start(kernel, SPREAD, 2.0))
    trainable, rest = split(started)
    gradient = jax.grad(lambda t: jnp.sum(paramax.unwrap(eqx.combine(t, rest))(X, X)))(trainable)
    leaves = jax.tree.leaves(gradient)
    assert leaves
    assert all(np.isfinite(leaf).all() for leaf in leaves)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (sgp.RBF(0.7, 1.3), tinygp.kernels.ExpSquared(0.7)),
        (sgp.Matern12(0.7, 1.3), tinygp.kernels.Exp(0.7)),
        (sgp.Matern32(0.7, 1.3), tinygp.kernels.Matern32(0.7)),
        (sgp.Matern52(0.7, 1.3), tinygp.kernels.Matern52(0.7)),
        (sgp.RationalQuadratic(0.7, 1.3, 2.0), tinygp.kernels.RationalQuadratic(0.7, alpha=2.0)),
        (
            sgp.Periodic(0.7, 1.3, period=2.5),
            tinygp.kernels.ExpSineSquared(2.5, gamma=2 / 0.7**2),
        ),
    ],
    ids=lambda k: type(k).__name__,
)
def test_one_input_agrees_with_tinygp(ours, theirs):
    x = X[:, :1]
    np.testing.assert_allclose(ready(ours)(x, x), 1.3 * theirs(x, x), rtol=1e-10)


def test_left_out_parameters_come_from_the_data_and_lengthscales_are_one_an_input():
    kernel = ready(sgp.RBF())
    assert kernel.lengthscale.shape == (2,)
    np.testing.assert_allclose(kernel.lengthscale, 0.25 * np.sqrt(2) * SPREAD)
    np.testing.assert_allclose(kernel.variance, 2.0)


def test_a_mixed_kernel_has_unit_variance_and_cannot_learn_it():
    kernel = kernels.start(sgp.RBF(), SPREAD, None)
    assert isinstance(kernel.variance, paramax.NonTrainable)
    np.testing.assert_allclose(paramax.unwrap(kernel).variance, 1.0)


def test_fixed_parameters_are_not_trainable():
    kernel = jax.tree.map(
        jnp.asarray, kernels.start(sgp.RBF(sgp.fixed(0.5), sgp.fixed(2.0)), SPREAD, 1.0)
    )
    assert jax.tree.leaves(split(kernel)[0]) == []


def test_a_foreign_kernel_is_trained_in_log_space_but_its_order_stays():
    foreign = tinygp.kernels.Matern32(scale=1.5) + tinygp.kernels.Polynomial(
        order=2.0, scale=1.0, sigma=0.5
    )
    started = kernels.start(foreign, SPREAD, None)
    assert isinstance(started.kernel1.scale, Positive)
    assert started.kernel2.order == 2.0
    np.testing.assert_allclose(paramax.unwrap(started)(X, X), foreign(X, X))


def test_the_prior_prefers_the_start():
    here = Positive(2.0)
    away = eqx.tree_at(lambda p: p.log_value, here, here.log_value + 1.0)
    assert log_prior(here) == 0.0
    np.testing.assert_allclose(log_prior(away), -0.5 / 1.5**2)


@pytest.mark.usefixtures("fully_compiled")  # where it once went wrong
@pytest.mark.parametrize("kind", [sgp.RBF, sgp.Matern12, sgp.Matern32, sgp.Matern52])
def test_a_compiled_loop_has_the_same_gram_matrix(kind):
    """Inside a loop, XLA compiled a branch at distance zero wrongly: the diagonal was off."""
    z = jnp.asarray(np.sort(np.random.default_rng(0).uniform(0, 6, 10))[:, None])
    mask = jnp.arange(32) < 10
    padded = jnp.pad(z, [(0, 22), (0, 0)])

    def one(log_lengthscale):
        kernel = kind(jnp.exp(log_lengthscale)[None], jnp.exp(0.5 * log_lengthscale))
        return gram(_Centred(kernel, jnp.full(1, 2.9)), padded, mask)

    steps = jnp.log(jnp.array([0.4, 0.401]))
    looped = jax.jit(lambda s: jax.lax.map(one, s))(steps)
    np.testing.assert_allclose(looped, jnp.stack([one(s) for s in steps]), rtol=1e-12)
    np.testing.assert_allclose(jnp.diag(looped[0])[:10], 0.4**0.5, rtol=1e-6)
