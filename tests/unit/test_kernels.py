"""Kernels in a model: parameters that start, train and stay positive.

Their values are those of test_kernel_families.py.
"""

import numpy as np
import pytest
from tests._reference import build

import streamgp as sgp
from streamgp import kernels
from streamgp.inference.sparse.learner import Learner
from streamgp.inference.sparse.prior import Prior
from streamgp.inference.vem import VEM
from streamgp.parameters import (
    Frozen,
    Positive,
    free_gradient,
    free_vector,
    replaced,
    unwrap,
    with_free,
)

X = np.random.default_rng(0).normal(size=(30, 2))
SPREAD = X.std(axis=0)
ALL = {
    "RBF": sgp.RBF(), "Matern12": sgp.Matern12(), "Matern32": sgp.Matern32(),
    "Matern52": sgp.Matern52(), "RationalQuadratic": sgp.RationalQuadratic(),
    "Periodic": sgp.Periodic(), "Linear": sgp.Linear(), "Sum": sgp.RBF() + sgp.Linear(),
    "Product": sgp.RBF() * sgp.Periodic(), "OnColumns": sgp.RBF().on(1) + sgp.kernels.Constant(0.5),
}  # fmt: skip


@pytest.mark.parametrize("name", ALL)
def test_symmetric_positive_and_differentiable_in_several_inputs(name):
    kernel = kernels.start(ALL[name], SPREAD, 2.0)
    k = unwrap(kernel).matrix(X, X)
    np.testing.assert_array_equal(k, k.T)
    assert np.linalg.eigvalsh(k).min() > -1e-9

    def total(vector):
        return np.sum(unwrap(with_free(kernel, vector)).matrix(X, X) ** 2)

    gradient = free_gradient(kernel, unwrap(kernel).pullback(X, X, 2 * k, k))
    wanted = build.slopes(total, free_vector(kernel), 1e-4)
    assert len(gradient) >= 2
    np.testing.assert_allclose(gradient, wanted, rtol=1e-7, atol=1e-7 * np.abs(wanted).max())


def test_left_out_parameters_come_from_the_data_and_lengthscales_are_one_an_input():
    kernel = unwrap(kernels.start(sgp.RBF(), SPREAD, 2.0))
    np.testing.assert_allclose(kernel.lengthscale, np.sqrt(2) * SPREAD)
    np.testing.assert_allclose(kernel.variance, 2.0)


def test_a_mixed_kernel_has_unit_variance_and_cannot_learn_it():
    kernel = kernels.start(sgp.RBF(), SPREAD, None)
    assert isinstance(kernel.variance, Frozen)
    np.testing.assert_allclose(unwrap(kernel).variance, 1.0)


def test_fixed_parameters_are_not_trainable():
    kernel = kernels.start(sgp.RBF(sgp.fixed(0.5), sgp.fixed(2.0)), SPREAD, 1.0)
    assert free_vector(kernel).size == 0


def test_the_prior_prefers_the_start():
    """Without data, learning goes back to the centre of the prior."""
    channel = build.channel(build.gaussian(0.3), [[1.0]])
    started = sgp.RBF(Positive(2.0, centre=1.0), Positive(0.7, centre=3.0, spread=0.5))
    learner = Learner(VEM(evaluations=100))
    state = learner.init(build.of_kernels([started], [channel]), build.points([0.0, 1.0]))
    state, _ = learner.step(state, build.rows((0, np.zeros((0, 1)), np.zeros((0, 1)))))
    np.testing.assert_allclose(state.plain.kernels[0].lengthscale, 1.0, rtol=1e-3)
    np.testing.assert_allclose(state.plain.kernels[0].variance, 3.0, rtol=1e-3)


@pytest.mark.parametrize("kind", [sgp.RBF, sgp.Matern12, sgp.Matern32, sgp.Matern52])
def test_a_priors_diagonal_is_the_variance_wherever_kernels_see_inputs_from(kind):
    z = np.sort(np.random.default_rng(0).uniform(0, 6, 10))[:, None]
    channel = build.channel(build.gaussian(0.3), [[1.0]])
    model = build.of_kernels([kind(sgp.fixed(0.4), sgp.fixed(0.7))], [channel])
    near = unwrap(model)
    far = unwrap(replaced(model, origin=sgp.fixed([1e9])))
    for plain, points in ((near, z), (far, z + 1e9)):
        prior = Prior.of(plain, (points,))
        np.testing.assert_array_equal(np.diag(prior.grams[0]), 0.7)
        np.testing.assert_allclose(prior.grams[0], Prior.of(near, (z,)).grams[0], atol=1e-6)
