"""The expansion of past data in the hyperparameters, against automatic differentiation."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
from jax.flatten_util import ravel_pytree
from tests._reference import build

from streamgp.data import pack
from streamgp.inference import memory
from streamgp.inference.conditioning import condition, factorise, project
from streamgp.inference.learner import VEM, Learner
from streamgp.parameters import split


def trained(evaluations=1):
    """Two Gaussian channels on two latents after one update; everything can be trained."""
    generator = np.random.default_rng(0)
    channels = [
        build.channel(build.gaussian(0.4, trainable=True), [[0.9, 0.3]], trainable=True),
        build.channel(build.gaussian(0.6, trainable=True), [[-0.2, 0.7]], 0.1, 2.0, trainable=True),
    ]
    model = build.model(channels, (1.0, 0.7), trainable=True)
    learner = Learner(learning=VEM(evaluations=evaluations))
    z = np.linspace(-3, 3, 6)
    state = learner.init(model, build.inducing(z, z + 0.2))
    parts = []
    for index in range(2):
        x = generator.uniform(-3, 3, (25, 1))
        parts.append((index, x, np.sin(x[:, 0]) + 0.3 * generator.normal(size=25)))
    batch = pack(parts)
    return learner, build.step(learner, state, batch)[0], batch


def dense_expectation(state, batch):
    """Σ E_q[log p(y|f)] of the batch as a function of all hyperparameters, q(u) held."""
    trainable, rest = split(state.model)
    start, unravel = ravel_pytree(trainable)
    held = paramax.unwrap(state.model)
    chol = factorise(held, state.inducing)
    posterior = condition(state.site)
    covariance_v = jnp.linalg.inv(posterior.chol[0] @ posterior.chol[0].T)
    root = jax.scipy.linalg.block_diag(*chol)
    mean_u, covariance_u = root @ posterior.mean[0], root @ covariance_v @ root.T

    channel = np.asarray(batch.channel)

    def value(vector):
        model = paramax.unwrap(eqx.combine(unravel(vector), rest))
        chols = factorise(model, state.inducing)
        projection, variance = project(model, state.inducing, chols, batch.x)
        weights, offsets = model.loadings()
        total = 0.0
        for n in range(50):
            w = weights[channel[n], 0]
            regression = jnp.concatenate(
                [w[q] * jnp.linalg.solve(chols[q].T, projection[q, :, n]) for q in range(2)]
            )
            mean = offsets[channel[n], 0] + regression @ mean_u
            spread = regression @ covariance_u @ regression + jnp.sum(w**2 * variance[:, n])
            noise = model.channels[channel[n]].likelihood.noise
            total += -0.5 * jnp.log(2 * jnp.pi * noise**2)
            total -= 0.5 * ((batch.y[n] - mean) ** 2 + spread) / noise**2
        return total

    return value, start


def test_gradient_and_curvature_are_those_of_the_expected_log_density():
    _, state, batch = trained()
    value, start = dense_expectation(state, batch)
    derivative = jax.jit(jax.grad(value))
    gradient = derivative(start)
    hessian = np.stack(
        [
            (derivative(start + step) - derivative(start - step)) / 2e-5
            for step in 1e-5 * np.eye(len(start))
        ]
    )
    kernels = memory.as_vector(state.model).size - 6  # six channel parameters come last
    np.testing.assert_allclose(state.memory.gradient, gradient, rtol=1e-4, atol=1e-3)
    block = np.asarray(hessian)[:kernels, :kernels]
    values, vectors = np.linalg.eigh(block)
    wanted = (vectors * np.abs(values)) @ vectors.T
    np.testing.assert_allclose(
        state.memory.precision[:kernels, :kernels],
        wanted,
        rtol=0.02,
        atol=0.02 * np.abs(wanted).max(),
    )
    # Noise, then the two weights, of each channel: exact for Gaussian channels but for the
    # curvature between noise and weights, which is left out.
    for first in (kernels, kernels + 3):
        own = np.arange(first, first + 3)
        got, exact = np.asarray(state.memory.precision)[np.ix_(own, own)], -np.asarray(hessian)
        np.testing.assert_allclose(got[1:, 1:], exact[np.ix_(own[1:], own[1:])], rtol=1e-6)
        np.testing.assert_allclose(got[0, 0], exact[first, first], rtol=1e-6)


def test_moving_the_centre_changes_nothing_but_a_constant():
    _, state, _ = trained()
    shifted = jax.tree.map(
        lambda leaf: leaf + 0.1 if eqx.is_inexact_array(leaf) else leaf, split(state.model)[0]
    )
    other = eqx.combine(shifted, split(state.model)[1])
    again = eqx.combine(jax.tree.map(lambda leaf: leaf * 1.1, shifted), split(state.model)[1])
    before = state.memory.value(again, state.model) - state.memory.value(other, state.model)
    after = state.memory.recentred(other, state.model).value(again, other)
    np.testing.assert_allclose(after, before, rtol=1e-9)


def test_precision_is_positive_and_grows():
    learner, state, batch = trained()
    more, _ = build.step(learner, state, batch)
    for s in (state, more):
        assert np.linalg.eigvalsh(s.memory.precision).min() > -1e-9
    assert np.trace(more.memory.precision) > np.trace(state.memory.precision)


def test_nothing_is_remembered_when_nothing_is_learned():
    _, state, batch = trained()
    frozen, _ = build.step(Learner(learning=None), state, batch)
    np.testing.assert_array_equal(frozen.memory.precision, state.memory.precision)
