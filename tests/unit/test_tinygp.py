"""Kernels of tinygp are accepted as they are. Only these need JAX."""

import copy
import pickle
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import streamgp as sgp
from streamgp import kernels
from streamgp.parameters import Positive, Real, fixed, free_vector, unwrap

tinygp = pytest.importorskip("tinygp")
jax = pytest.importorskip("jax")

X = np.random.default_rng(0).normal(size=(30, 2))


def inputs(width, rows=23, others=17, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, width)), rng.normal(size=(others, width))


def ours():
    return kernels.RBF(np.array([0.9, 1.4]), np.asarray(1.3))


def in_jax(kernel, x1, x2):
    with jax.enable_x64(True):
        return np.asarray(kernel(jax.numpy.asarray(x1), jax.numpy.asarray(x2)))


def leaves(tree):
    """The numbers of a gradient, one after the other."""
    if isinstance(tree, dict):
        return [leaf for part in tree.values() for leaf in leaves(part)]
    return [leaf for part in tree for leaf in leaves(part)] if isinstance(tree, tuple) else [tree]


def assert_gradients_close(actual, expected):
    for mine, value in zip(leaves(actual), leaves(expected), strict=True):
        np.testing.assert_allclose(mine, value, rtol=1e-6, atol=1e-7 * (1 + np.abs(value).max()))


@pytest.mark.parametrize(
    ("one", "other"),
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
def test_one_input_agrees_with_tinygp(one, other):
    x = X[:, :1]
    plain = unwrap(kernels.start(one, np.ones(1), 2.0))
    np.testing.assert_allclose(plain.matrix(x, x), 1.3 * in_jax(other, x, x), rtol=1e-10)


FOREIGN = [
    tinygp.kernels.Matern32(scale=1.5),
    tinygp.kernels.ExpSquared(scale=0.8) * tinygp.kernels.Cosine(scale=2.0) + 0.4,
    tinygp.kernels.Polynomial(order=2.0, scale=1.1, sigma=0.5),
    tinygp.kernels.Matern52(distance=tinygp.kernels.distance.L2Distance()),
    tinygp.transforms.Linear(np.array([0.5, -0.3]), tinygp.kernels.Exp()),
    tinygp.transforms.Subspace(1, tinygp.kernels.ExpSineSquared(scale=1.5, gamma=0.7)),
]


@pytest.mark.parametrize("foreign", FOREIGN, ids=lambda k: type(k).__name__)
def test_values_and_derivatives(foreign):
    x1, x2 = inputs(2, 21, 9)
    weights = np.random.default_rng(0).normal(size=(len(x1), len(x2)))
    kernel = unwrap(kernels.start(foreign, np.ones(2), None))
    np.testing.assert_allclose(kernel.matrix(x1, x2), in_jax(foreign, x1, x2), atol=1e-12)
    np.testing.assert_allclose(np.diag(kernel.matrix(x1, x1)), kernel.diagonal(x1), atol=1e-12)
    assert kernel.matrix(x1, x2).flags.writeable
    expected = kernels.Kernel.pullback(kernel, x1, x2, weights)
    assert_gradients_close(kernel.pullback(x1, x2, weights), expected)
    expected = kernels.Kernel.diagonal_pullback(kernel, x1, weights[:, 0])
    assert_gradients_close(kernel.diagonal_pullback(x1, weights[:, 0]), expected)
    expected = kernels.Kernel.input_gradient(kernel, x1, x2, weights)
    np.testing.assert_allclose(kernel.input_gradient(x1, x2, weights), expected, atol=1e-6)


def test_numbers_are_trained_but_an_order_is_not():
    begun = kernels.start(FOREIGN[2], np.ones(2), None)
    assert [type(leaf) for leaf in begun.leaves] == [Positive, Positive]
    begun = kernels.start(FOREIGN[4], np.ones(2), None)
    assert isinstance(begun.leaves[0], Real)
    assert begun.leaves[0].spread == 10.0
    kept = kernels.start(tinygp.kernels.Matern32(scale=fixed(0.5)), np.ones(2), None)
    assert free_vector(kept).size == 0


def test_they_mix_with_ours_in_either_order():
    x1, x2 = inputs(2)
    mine, foreign = ours(), FOREIGN[0]
    k1, k2 = mine.matrix(x1, x2), in_jax(foreign, x1, x2)
    for kernel, expected in [
        (mine + foreign, k1 + k2),
        (mine * foreign, k1 * k2),
        (foreign + mine, k1 + k2),
        (foreign * mine, k1 * k2),
        (2.0 * (foreign + mine), 2 * (k1 + k2)),
    ]:
        plain = unwrap(kernels.start(kernel, np.ones(2), 1.0))
        np.testing.assert_allclose(plain.matrix(x1, x2), expected, atol=1e-12)


def test_programs_are_compiled_for_few_shapes():
    kernel = unwrap(kernels.start(FOREIGN[0], np.ones(2), None))
    traced = []
    count = tinygp.kernels.Matern32.evaluate

    def counted(self, *rows):
        traced.append(1)
        return count(self, *rows)

    tinygp.kernels.Matern32.evaluate = counted
    try:
        for rows in range(1, 33):
            kernel.matrix(*inputs(2, rows, 5))
    finally:
        tinygp.kernels.Matern32.evaluate = count
    assert len(traced) == 3  # 8, 16 and 32 rows


def test_they_run_in_threads_and_survive_copies():
    x1, x2 = inputs(2, 40, 30)
    kernel = unwrap(kernels.start(FOREIGN[1], np.ones(2), None))
    expected = kernel.matrix(x1, x2)
    with ThreadPoolExecutor(4) as pool:
        for values in pool.map(lambda _: kernel.matrix(x1, x2), range(20)):
            np.testing.assert_array_equal(values, expected)
    for other in (copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel))):
        np.testing.assert_array_equal(other.matrix(x1, x2), expected)


def test_a_model_learns_with_one():
    """As well as with the same kernel of ours; and it survives a file."""
    t = np.linspace(0, 6, 40)
    models = [
        sgp.ContinualGP(sgp.Gaussian(), latents=[kernel], inducing=sgp.Fixed(t[::4]))
        for kernel in (1.0 * tinygp.kernels.Matern52(scale=1.0), sgp.Matern52(1.0, 1.0))
    ]
    for model in models:
        model.update(t, np.sin(t))
    theirs, own = (model.predict(t + 0.05) for model in models)
    np.testing.assert_allclose(theirs.mean, own.mean, atol=0.02)
    with tempfile.TemporaryDirectory() as folder:
        models[0].save(Path(folder) / "model.sgp")
        again = sgp.load(Path(folder) / "model.sgp")
    np.testing.assert_array_equal(again.predict(t + 0.05).mean, theirs.mean)


# -- quasiseparable kernels ------------------------------------------------------------------------

Q = tinygp.kernels.quasisep

QUASISEP = {
    "exp": lambda: Q.Exp(scale=1.5, sigma=0.8),
    "matern32": lambda: Q.Matern32(scale=1.5, sigma=0.8),
    "matern52": lambda: Q.Matern52(scale=1.5),
    "cosine": lambda: Q.Cosine(scale=2.0, sigma=0.8),
    "oscillator": lambda: Q.SHO(omega=2.0, quality=3.0, sigma=0.8),
    "overdamped": lambda: Q.SHO(omega=2.0, quality=0.3),
    "celerite": lambda: Q.Celerite(1.1, 0.1, 0.8, 0.6),
    "carma 1 0": lambda: Q.CARMA(alpha=[0.7], beta=[1.3]),
    "carma 2 1": lambda: Q.CARMA(alpha=[1.2, 1.1], beta=[1.3, 0.4]),
    "carma 2 0": lambda: Q.CARMA(alpha=[1.2, 0.3], beta=[1.3]),
    "sum": lambda: Q.SHO(2.0, 3.0) + 0.5 * Q.Matern32(1.5),
    "product": lambda: Q.Cosine(2.0) * Q.Exp(3.0, sigma=0.8),
}


def made(name):
    with jax.enable_x64(True):
        return QUASISEP[name]()


@pytest.mark.parametrize("name", QUASISEP)
def test_quasiseparable_kernels_have_the_same_covariance(name):
    x = np.sort(np.random.default_rng(0).uniform(0, 8, 20))
    with jax.enable_x64(True):
        foreign = made(name)
        wanted = np.asarray(foreign(jax.numpy.asarray(x), jax.numpy.asarray(x)))
    kernel = unwrap(kernels.start(foreign, np.ones(1), None))
    np.testing.assert_allclose(kernel.matrix(x[:, None], x[:, None]), wanted, atol=1e-10)
    assert kernel.state_space() is not None


@pytest.mark.parametrize("name", ["oscillator", "celerite", "carma 2 1", "sum", "product"])
def test_quasiseparable_kernels_are_kept_as_chains(name, tmp_path):
    x = np.linspace(0, 8, 60)
    model = sgp.ContinualGP(
        sgp.Gaussian(), latents=made(name), learning=sgp.VEM(rounds=1, evaluations=4)
    )
    model.update(x, np.sin(3 * x))
    assert model.engine == "chain"
    assert np.abs(model.predict(x).mean - np.sin(3 * x)).max() < 0.3
    model.save(tmp_path / "model.sgp")
    again = sgp.load(tmp_path / "model.sgp")
    np.testing.assert_allclose(again.predict(x).mean, model.predict(x).mean, rtol=1e-10)


def test_numbers_of_quasiseparable_kernels_may_be_fixed():
    kept = Q.SHO(omega=fixed(2.0), quality=fixed(3.0), sigma=fixed(0.5))
    begun = kernels.start(kept, np.ones(1), None)
    assert free_vector(begun).size == 0
    np.testing.assert_allclose(unwrap(begun).period, np.pi)
    np.testing.assert_allclose(unwrap(begun).variance, 0.25)
    celerite = Q.Celerite(*map(fixed, (1.1, 0.1, 0.8, 0.6)))
    assert free_vector(kernels.start(celerite, np.ones(1), None)).size == 0
    assert free_vector(kernels.start(Q.SHO(2.0, 3.0), np.ones(1), None)).size == 3


def test_quasiseparable_kernels_join_ours():
    both = sgp.Matern32(1.0, 0.7) + Q.SHO(2.0, 3.0)
    x = np.linspace(0, 3, 7)[:, None]
    expected = sgp.Matern32(1.0, 0.7).matrix(x, x) + sgp.SHO(np.pi, 3.0, 1.0).matrix(x, x)
    np.testing.assert_allclose(both.matrix(x, x), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: Q.Celerite(1.0, 5.0, 0.1, 3.0), "is a covariance"),
        (lambda: Q.Celerite(fixed(1.1), 0.1, 0.8, 0.6), "or none"),
        (lambda: type("Own", (Q.Matern32,), {})(scale=1.0), "that tinygp has"),
    ],
)
def test_quasiseparable_kernels_that_cannot_be_read_are_refused(wrong, words):
    with pytest.raises(sgp.ConfigurationError, match=words):
        kernels.start(wrong(), np.ones(1), None)
