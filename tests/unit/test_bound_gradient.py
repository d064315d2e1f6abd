"""Closed-form gradients of the bound against central differences."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from tests._reference import build, families

import streamgp as sgp
from streamgp.inducing import placement
from streamgp.inference.e_step import first_sites
from streamgp.inference.sites import RowSites
from streamgp.inference.sparse import refinement
from streamgp.inference.sparse.carry import carried
from streamgp.inference.sparse.episode import Episode, Options
from streamgp.inference.sparse.learner import Learner
from streamgp.inference.vem import VEM
from streamgp.parameters import free_size, free_vector, with_free


class Case(NamedTuple):
    names: tuple[str, ...]
    latents: Any = None
    width: int = 1
    carried: bool = True


def _wave(x1, x2, period):
    return 1.1 + np.cos((x1 - x2.T) / period)


ALONE = {name: Case((name,), 2 if "Hetero" in name else None) for name in families.FAMILIES}
TOGETHER = {
    "two channels": Case(("Gaussian", "Poisson"), 2),
    "one, two and three latent parameters": Case(
        ("Categorical", "Gaussian", "HeteroscedasticGaussian", "Poisson"), 2
    ),
    "conjugate channels": Case(("Gaussian", "Weighted", "LogNormal"), 3),
    "two draws of a kernel": Case(("Gaussian", "Bernoulli"), [(sgp.Matern52(), 2)]),
    "draws of two kernels": Case(("StudentT", "Gamma"), [(sgp.RBF(), 2), sgp.Matern32()]),
    "classes": Case(("Categorical", "Gaussian"), [(sgp.RBF(), 2)]),
}
KERNELS = {
    "sum": sgp.RBF() + sgp.Linear(),
    "product": sgp.RBF() * sgp.Periodic(period=2.5),
    "sum of products": 2.0 * sgp.Matern32() * sgp.RBF() + sgp.kernels.Constant(0.4),
    "exponential": sgp.Matern12(),
    "rational": sgp.RationalQuadratic(),
    "function": sgp.FunctionKernel(_wave, {"period": 1.3}) * sgp.RBF(),
}
OF_KERNELS = {name: Case(("Poisson",), [kernel]) for name, kernel in KERNELS.items()}
INPUTS = {
    "two inputs": Case(("Gaussian",), width=2),
    "columns": Case(("Gaussian",), [sgp.RBF().on(0) + sgp.Matern52().on(1)], width=2),
    "three inputs": Case(("Bernoulli",), [sgp.Matern32()], width=3),
}
CASES = {**ALONE, **TOGETHER, **OF_KERNELS, **INPUTS}


def points_of(generator, count, width, number=6):
    if width == 1:
        return build.points(*[np.linspace(0, 5, number) + 0.1 * q for q in range(count)])
    return tuple(generator.uniform(0, 5, (number + 1, width)) for _ in range(count))


def episode_of(case, rows=12, number=6, learn=True):
    """A batch that meets a state, and the sites that its rows settle at."""
    generator = np.random.default_rng(0)
    parts = families.draw(generator, case.names, 0, 4, rows, case.width)
    model = families.started(case.names, case.latents, parts)
    learner = Learner(VEM(evaluations=3))
    state = learner.init(model, points_of(generator, sum(model.draws), case.width, number))
    if case.carried:
        state, _ = learner.step(state, build.rows(*parts), learn=learn)
        parts = families.draw(generator, case.names, 1, 5, rows, case.width)
    batch = state.model.batch(build.rows(*parts))
    episode = Episode(state, batch, Options(100, 1e-4))
    return episode, settled(episode, state.model)


def settled(episode, model):
    return episode.learn(episode.trial(model), None).fit.rows


def objective_of(episode, trial, held):
    """What an M step maximises, priors included, and its gradient."""
    theta = free_vector(trial.wrapped)
    return episode._beliefs(trial.wrapped).objective(theta, *episode.bound(trial, held))


def displaced(model, size=0.1):
    vector = free_vector(model)
    return vector + size * np.random.default_rng(1).normal(size=vector.size)


def assert_close(got, wanted, tolerance=1e-6):
    scale = np.max(np.abs(wanted))
    assert scale > 1e-3  # or nothing is compared
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance * scale)


def check_objective(case, size=0.1, tolerance=1e-6):
    check_episode(*episode_of(case), size, tolerance)


def check_episode(episode, held, size=0.1, tolerance=1e-6):
    theta = displaced(episode.state.model, size)

    def objective(vector):
        return objective_of(episode, episode.trial(with_free(episode.state.model, vector)), held)

    value, gradient = objective(theta)
    assert np.isfinite(value)
    # Not so small that rounding shows through a badly conditioned factor.
    wanted = build.slopes(lambda vector: objective(vector)[0], theta, 1e-4)
    assert_close(gradient, wanted, tolerance)


@pytest.mark.parametrize("name", CASES)
def test_the_objectives_gradient(name):
    """The past mapped to other kernels, and read under other weights and noises."""
    check_objective(CASES[name])


@pytest.mark.parametrize("name", ["Gaussian", "Poisson", "two draws of a kernel"])
def test_before_any_data(name):
    check_objective(CASES[name]._replace(carried=False))


@pytest.mark.parametrize("name", ["Gaussian", "conjugate channels", "classes"])
def test_after_points_were_dropped(name):
    """With data from before, and from after."""
    episode, _ = episode_of(CASES[name])
    dropped = carried(episode.state, tuple(z[::2] for z in episode.state.points))
    learner = Learner(VEM(evaluations=2))
    rows = build.rows(*families.draw(np.random.default_rng(5), CASES[name].names, 1, 5))
    state, _ = learner.step(dropped, rows)
    later = Episode(state, episode.batch, episode.options)
    check_episode(later, settled(later, state.model))


@pytest.mark.parametrize("name", ["Gaussian", "two channels", "classes"])
def test_at_the_states_own_hyperparameters(name):
    """Where nothing is whitened anew."""
    episode, held = episode_of(CASES[name])
    start = free_vector(episode.state.model)
    _, gradient = objective_of(episode, episode.trial(episode.state.model), held)

    def value(vector):
        return objective_of(episode, episode.trial(with_free(episode.state.model, vector)), held)[0]

    assert_close(gradient, build.slopes(value, start, 1e-4))


@pytest.mark.parametrize("name", ["Poisson", "two channels"])
def test_with_any_sites_held(name):
    """Not only with those that are best for the batch and the state's hyperparameters."""
    episode, held = episode_of(CASES[name])
    generator = np.random.default_rng(2)
    held = RowSites(
        held.linear + generator.normal(size=held.linear.shape),
        tuple(1.5 * p + 0.1 * np.eye(p.shape[1]) for p in held.precision),
    )
    theta = displaced(episode.state.model)

    def objective(vector):
        return objective_of(episode, episode.trial(with_free(episode.state.model, vector)), held)

    wanted = build.slopes(lambda vector: objective(vector)[0], theta, 1e-4)
    assert_close(objective(theta)[1], wanted)


def test_a_channel_without_data_is_pulled_nowhere():
    """Neither by the batch nor by its prior."""
    episode, _ = episode_of(CASES["two channels"]._replace(carried=False))
    state = episode.state
    rows = build.rows(*families.draw(np.random.default_rng(3), ("Gaussian",), 0, 4))
    alone = Episode(state, state.model.batch(rows), episode.options)
    trial = alone.trial(with_free(state.model, displaced(state.model)))
    _, gradient = objective_of(alone, trial, settled(alone, trial.wrapped))
    silent = free_size(state.model.channels[1])
    np.testing.assert_array_equal(gradient[-silent:], 0.0)
    assert np.all(gradient[:-silent] != 0)


def test_hyperparameters_without_a_batch():
    """What is carried and believed has a gradient too."""
    episode, _ = episode_of(CASES["Gaussian"])
    state = episode.state
    nothing = state.model.batch(build.rows((0, np.zeros((0, 1)), np.zeros((0, 1)))))
    refine = Episode(state, nothing, episode.options)

    def objective(vector):
        trial = refine.trial(with_free(state.model, vector))
        return objective_of(refine, trial, first_sites(trial.setting))

    theta = displaced(state.model)
    wanted = build.slopes(lambda vector: objective(vector)[0], theta, 1e-4)
    assert_close(objective(theta)[1], wanted)


# -- refined points --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["Gaussian", "Poisson", "Categorical", "two draws of a kernel", "sum", "product",
     "rational", "function", "two inputs", "columns", "three inputs"],
)  # fmt: skip
@pytest.mark.parametrize("carried", [False, True])
def test_the_bounds_gradient_by_points(name, carried):
    """By new points that are elsewhere; what the past says stays the same numbers."""
    case = CASES[name]._replace(carried=carried)
    # Few points, with functions as short as they start: their places matter.
    episode, held = episode_of(case, number=3, learn=False)
    here = episode.trial(episode.state.model)
    shapes, generator = [z.shape for z in episode.state.points], np.random.default_rng(4)
    ends = np.cumsum([np.prod(shape) for shape in shapes])

    def bound(vector):
        parts = zip(np.split(vector, ends[:-1]), shapes, strict=True)
        points = tuple(part.reshape(shape) for part, shape in parts)
        return refinement._bound(here, held, episode.batch, points)

    start = np.concatenate([z.ravel() for z in episode.state.points])
    value, _ = bound(start)
    np.testing.assert_allclose(value, episode.bound(here, held)[0] - beside(episode), rtol=1e-9)
    elsewhere = start + 0.2 * generator.normal(size=start.size)
    value, by_points = bound(elsewhere)
    wanted = build.slopes(lambda vector: bound(vector)[0], elsewhere, 1e-4)
    assert np.isfinite(value)
    got = np.concatenate([by.ravel() for by in by_points])
    assert_close(got, wanted, 1e-4 if name == "function" else 1e-5)


def beside(episode):
    """What the past says of noises and weights alone."""
    return episode.state.absorbed.beside(episode.state.reading)


@pytest.mark.parametrize("name", ["Gaussian", "Poisson", "conjugate channels"])
def test_new_points_elsewhere_have_the_bound_of_a_state_with_points_there(name):
    """Behind the old points, whose evidence stays what it was."""
    episode, held = episode_of(CASES[name])
    state, generator = episode.state, np.random.default_rng(5)
    more = [np.concatenate([z, 0.3 + z[:2]]) for z in state.points]
    wide = Episode(placement.extended(state, tuple(more)), episode.batch, episode.options)
    here = wide.trial(state.model)
    elsewhere = []
    for old, z in zip(state.points, more, strict=True):
        z = z.copy()
        z[len(old) :] += 0.3 * generator.normal(size=z[len(old) :].shape)
        elsewhere.append(z)
    there = Episode(placement.extended(state, tuple(elsewhere)), episode.batch, episode.options)
    wanted = there.bound(there.trial(state.model), held)[0] - beside(episode)
    got, _ = refinement._bound(here, held, episode.batch, tuple(elsewhere))
    np.testing.assert_allclose(got, wanted, rtol=1e-9)
