"""Small first batches over several inputs: noise stays above rounding, lengthscales stay long."""

import numpy as np
import pytest
from tests._reference import build

import streamgp as sgp
from streamgp import kernels
from streamgp.inference.sparse.episode import Episode, Options
from streamgp.inference.sparse.learner import Learner
from streamgp.inference.vem import VEM
from streamgp.likelihoods.rounding import rounding_of, step_of
from streamgp.numerics.differences import gradient
from streamgp.parameters import Positive, free_vector, prior_of, replaced, unwrap, with_free

SMALLEST = 1 / np.sqrt(12)  # the noise of values that are rounded to whole numbers


def graded(seed, columns=5, rows=60):
    """Rows that stand twice with equal grades, which depend little on what is known of them."""
    generator = np.random.default_rng(seed)
    x = np.repeat(generator.normal(size=(rows // 2, columns)), 2, axis=0)
    grades = np.round(5 + 0.3 * x[::2, 0] + generator.normal(size=rows // 2))
    return x, np.repeat(grades, 2)


def noise_of(model):
    return model.hyperparameters["channels"]["y"]["noise"]


# -- rounding ------------------------------------------------------------------------------------


def test_values_that_repeat_tell_their_rounding():
    y = 0.5 * np.array([1.0, 2, 2, 3, 1, 4, 4, 3, 7, 7])
    np.testing.assert_allclose(rounding_of(y), 0.5 * SMALLEST)


@pytest.mark.parametrize(
    "y",
    [np.array([1.0, 2, 3, 4, 5, 5]), np.array([0.0, 1, 0, 0, 1, 1]), np.zeros(9), np.zeros(0)],
    ids=["few repeat", "two values", "one value", "none"],
)
def test_other_values_do_not(y):
    assert rounding_of(y) == 0.0


def test_a_step_needs_two_values():
    assert step_of(np.array([3.0, 1.0, 1.5])) == 0.5
    assert step_of(np.ones(4)) == np.inf


# -- parameters ----------------------------------------------------------------------------------


def test_a_deviation_is_never_less_than_its_known_part():
    node = replaced(Positive(0.4), least=0.3)
    np.testing.assert_allclose(node.value, 0.5)
    np.testing.assert_allclose(node.with_free(np.array(-50.0)).value, 0.3)


def test_the_derivative_by_the_learned_part():
    node = replaced(Positive([0.4, 2.0]), least=0.3)
    weights = np.array([1.5, -0.7])
    expected = gradient(lambda free: node.with_free(free).value @ weights, node.free, 1e-3)
    np.testing.assert_allclose(node.pulled(weights), expected, rtol=1e-7)


def test_a_prior_may_be_stricter_below_its_centre():
    node = Positive([0.5, 1.0, 2.0], centre=1.0, spread=1.5, below=0.2)
    np.testing.assert_allclose(node.prior()[1], [0.3, 1.5, 1.5])
    np.testing.assert_allclose(node.prior()[0], np.zeros(3))


@pytest.mark.parametrize("shift", [-0.4, 0.4])
def test_the_objectives_gradient_on_both_sides_of_the_centre(shift):
    lengthscale = Positive(np.ones(3), spread=1.5, below=0.2)
    noise = replaced(Positive(0.3), least=0.2)
    channel = build.channel(sgp.Gaussian(noise), [[1.0]])
    model = build.of_kernels([sgp.RBF(lengthscale, Positive(1.0))], [channel], width=3)
    generator = np.random.default_rng(0)
    learner = Learner(VEM(evaluations=2))
    state = learner.init(model, (generator.normal(size=(8, 3)),))
    batches = [
        build.rows((0, generator.normal(size=(15, 3)), generator.normal(size=15))) for _ in "ab"
    ]
    state, _ = learner.step(state, batches[0])  # so that there is a past to be read
    episode = Episode(state, state.model.batch(batches[1]), Options(100, 1e-4))
    held = episode.learn(episode.trial(state.model), None).fit.rows
    theta = free_vector(model) + shift

    def objective(vector):
        trial = episode.trial(with_free(state.model, vector))
        return episode._beliefs(trial.wrapped).objective(vector, *episode.bound(trial, held))

    wanted = build.slopes(lambda vector: objective(vector)[0], theta, 1e-4)
    np.testing.assert_allclose(objective(theta)[1], wanted, rtol=1e-6, atol=1e-8)


# -- lengthscales --------------------------------------------------------------------------------


@pytest.mark.parametrize(("columns", "short"), [(1, 1.5), (2, 0.7), (3, 0.7), (8, 0.7)])
def test_short_lengthscales_are_doubted_over_several_inputs(columns, short):
    kernel = kernels.start(sgp.RBF(), np.ones(columns), 1.0)
    for shift, spread in ((-9.0, short), (9.0, 1.5)):
        moved = with_free(kernel, free_vector(kernel) + shift)
        np.testing.assert_allclose(prior_of(moved)[1][:columns], spread)


def test_slopes_of_lines_and_given_lengthscales_are_not_doubted():
    for kernel in (sgp.Linear(), sgp.RBF(lengthscale=np.ones(4))):
        started = kernels.start(kernel, np.ones(4), 1.0)
        moved = with_free(started, free_vector(started) - 9.0)
        np.testing.assert_allclose(prior_of(moved)[1], 1.5)


def test_few_rows_are_not_explained_one_by_one():
    """Values that have nothing to do with any of six inputs are noise, nearly always."""
    noises = []
    for seed in range(5):
        generator = np.random.default_rng(seed)
        model = sgp.ContinualGP(sgp.Gaussian())
        model.update(generator.normal(size=(40, 6)), generator.normal(size=40))
        noises.append(noise_of(model))
    assert np.median(noises) > 0.6
    assert np.sum(np.array(noises) > 0.4) >= 4  # a prior that held all five cost real tables .03


# -- streams -------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", [0, 60, "auto"])
def test_rows_that_stand_twice_do_not_end_the_noise(keep):
    """At inducing points, and where learning begins anew from kept rows, joined ones too."""
    model = sgp.ContinualGP(sgp.Gaussian(), keep=keep)
    for seed in range(5):
        model.update(*graded(seed))
        assert noise_of(model) >= SMALLEST


@pytest.mark.parametrize("columns", [1, 2])
def test_the_least_noise_that_arithmetic_can_take_stays(columns):
    """A function without noise, on rows: no update breaks off for want of digits."""
    generator = np.random.default_rng(0)
    model = sgp.ContinualGP(sgp.Gaussian(), engine="dense")
    for _ in range(8):
        x = generator.uniform(-2, 2, (50, columns))
        model.update(x, np.sin(x).sum(axis=1))
        assert noise_of(model) > 5e-5
    assert np.max(np.abs(model.predict(x).mean - np.sin(x).sum(axis=1))) < 1e-3


def test_finer_values_that_come_later_lower_the_least_noise():
    model, (x, y) = sgp.ContinualGP(sgp.Gaussian()), graded(0)
    model.update(x, y)
    assert model.state.model.channels[0].likelihood.noise.least == pytest.approx(SMALLEST)
    model.update(*graded(1))
    assert model.state.model.channels[0].likelihood.noise.least == pytest.approx(SMALLEST)
    model.update(x, y + np.where(np.arange(len(y)) < 10, 0.25, 0.0))
    assert model.state.model.channels[0].likelihood.noise.least == pytest.approx(SMALLEST / 4)


@pytest.mark.parametrize("case", ["one input", "fixed", "no scales", "error"])
def test_noise_is_left_alone(case):
    x, y = graded(0, columns=1 if case == "one input" else 3)
    noise = sgp.fixed(0.01) if case == "fixed" else None
    likelihood = sgp.Gaussian(noise=noise, error=case == "error")
    if case == "error":
        y = np.stack([y, np.full(len(y), 0.1)], axis=1)
    model = sgp.ContinualGP(likelihood, scale=case != "no scales", learning=None, engine="sparse")
    model.update(x, y)
    node = model.state.model.channels[0].likelihood.noise
    if case == "fixed":
        assert node.value == 0.01
    else:
        assert node.least == 0.0


def test_a_model_with_a_least_noise_is_saved_and_goes_on():
    model = sgp.ContinualGP(sgp.Gaussian())
    model.update(*graded(0))
    other = sgp.from_bytes(model.to_bytes())
    for each in (model, other):
        each.update(*graded(1))
    assert other.to_bytes() == model.to_bytes()
    assert unwrap(other.state.model).channels[0].likelihood.noise >= SMALLEST
