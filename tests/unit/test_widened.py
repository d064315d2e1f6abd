"""Lengthscales over several inputs: their priors follow the ground that a stream explores."""

import numpy as np
import pytest
from tests._reference import build

import streamgp as sgp
from streamgp.inference.sparse.learner import Learner
from streamgp.online import lifecycle
from streamgp.parameters import free_vector, prior_of, recentred, with_free

NARROW, WIDE = 0.1, 10.0


def model_of(widths, batches=2, **settings):
    """A model that has seen a first batch of these widths."""
    generator = np.random.default_rng(0)
    model = sgp.ContinualGP(sgp.Gaussian(), inducing=sgp.Adaptive(budget=40), **settings)
    for _ in range(batches):
        x = generator.normal(size=(40, len(widths))) * widths
        model.update(x, np.sin(x[:, 0]) + 0.1 * generator.normal(size=40))
    return model


def rows_at(x):
    return build.rows((0, x, np.zeros(len(x))))


def widened(model, x):
    specification = model._version.updater.specification
    return lifecycle.widened(specification, model.state, rows_at(x))


def test_priors_follow_ground_that_has_grown_much():
    model = model_of([1.0, NARROW])
    x = np.random.default_rng(1).normal(size=(200, 2)) * [1.0, WIDE]
    found = widened(model, x)
    before, now = (prior_of(kernels)[0] for kernels in (model.state.model.kernels, found.kernels))
    ground = np.concatenate([x, *model.state.points])
    expected = np.log(np.sqrt(2) * ground[:, 1].std() / 2)
    np.testing.assert_allclose(now[1], expected)
    np.testing.assert_allclose(now[[0, 2]], before[[0, 2]])  # the other column, and the variance


def test_only_priors_follow():
    model = model_of([1.0, NARROW])
    found, kernels = widened(model, WIDE * np.eye(2)), model.state.model.kernels
    np.testing.assert_array_equal(free_vector(found.kernels), free_vector(kernels))
    assert prior_of(found.kernels)[0][1] > prior_of(kernels)[0][1]


@pytest.mark.parametrize("case", ["known ground", "one input", "given lengthscales", "no data"])
def test_nothing_moves(case):
    wide = np.random.default_rng(1).normal(size=(50, 2)) * WIDE
    if case == "known ground":
        assert widened(model_of([1.0, 1.0]), wide / WIDE) is None
    elif case == "one input":
        assert widened(model_of([1.0]), wide[:, :1]) is None
    elif case == "given lengthscales":
        kernel = sgp.RBF(lengthscale=[1.0, 1.0])
        assert widened(model_of([1.0, NARROW], latents=kernel), wide) is None
    else:
        model = build.one_gaussian()
        state = Learner().init(model, (np.zeros((0, 2)),))
        specification = model_of([1.0, 1.0])._version.updater.specification
        assert lifecycle.widened(specification, state, rows_at(wide)) is None


def test_only_the_centres_of_priors_move():
    kernel = model_of([1.0, 1.0]).state.model.kernels
    shift = np.array([0.5, -1.0, 2.0])
    moved = recentred(kernel, shift)
    np.testing.assert_allclose(prior_of(moved)[0], prior_of(kernel)[0] + shift)
    centred = (
        with_free(kernel, prior_of(moved)[0] + 1.0),
        with_free(kernel, prior_of(kernel)[0] + 1.0),
    )
    spreads = [
        prior_of(recentred(own, by))[1] for own, by in zip(centred, (shift, 0 * shift), strict=True)
    ]
    np.testing.assert_array_equal(*spreads)
    np.testing.assert_array_equal(free_vector(moved), free_vector(kernel))


@pytest.mark.parametrize("inducing", [sgp.Adaptive(budget=60), None], ids=["sparse", "dense"])
def test_a_column_that_was_all_but_constant_does_not_blind_the_model(inducing):
    """What the first batch could not tell of a column must not stay when the column moves."""
    generator = np.random.default_rng(2)
    model = sgp.ContinualGP(sgp.Gaussian(), inducing=inducing)
    for width in (1e-9, 1.0, 1.0, 1.0):
        x = generator.normal(size=(100, 2)) * [1.0, width]
        model.update(x, np.sin(x[:, 0]) + x[:, 1] + 0.1 * generator.normal(size=100))
    x = generator.normal(size=(200, 2))
    error = model.predict(x).mean - np.sin(x[:, 0]) - x[:, 1]
    assert np.sqrt(np.mean(error**2)) < 0.2


@pytest.mark.parametrize("width", [2, 3])
def test_a_model_whose_priors_have_followed_can_be_read(width):
    """Lengthscales and noises are single numbers, and so is where their priors went."""
    generator = np.random.default_rng(0)
    model = sgp.ContinualGP(sgp.Gaussian())
    for reach in (1.0, 1.0, 4.0):
        x = reach * generator.uniform(size=(30, width))
        model.update(x, np.sin(3 * x[:, 0]) + 0.1 * generator.normal(size=30))
    again = sgp.from_bytes(model.to_bytes())
    np.testing.assert_array_equal(*(prior_of(m.state.model)[0] for m in (model, again)))
    again.update(x, np.sin(3 * x[:, 0]))
