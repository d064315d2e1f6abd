"""The compiled core against dense Gaussian processes from textbook formulas."""

import numpy as np
import pytest

from streamgp.inference.over_time.law import Law
from streamgp.inference.over_time.states import States
from tests._reference.dense import log_normal
from tests.core.worlds import CASES, ORIGIN, World, matern, regular, scattered

NAMES = pytest.mark.parametrize("name", CASES)
STEP = 1e-4


def dense(world, rows):
    """Log evidence, and mean and covariance of f at all rows given those that have a value."""
    covariance, seen = world.covariance(rows), ~np.isnan(rows.value)
    total = covariance[np.ix_(seen, seen)] + np.diag(rows.noise[seen])
    gain = np.linalg.solve(total, covariance[seen])
    value = log_normal(rows.value[seen], np.zeros(seen.sum()), total)
    return value, gain.T @ rows.value[seen], covariance - covariance[:, seen] @ gain


@NAMES
@pytest.mark.parametrize("latents", [1, 2])
@pytest.mark.parametrize("rows", [scattered(60), regular(60)], ids=["scattered", "regular"])
def test_evidence(name, latents, rows):
    world = World.of(name, latents)
    np.testing.assert_allclose(world.core().evidence(rows).value, dense(world, rows)[0], rtol=1e-10)


@NAMES
@pytest.mark.parametrize("latents", [1, 2])
def test_marginals_at_and_between_rows(name, latents):
    world, rows = World.of(name, latents), scattered(60, asking=0.3)
    value, mean, variance = world.core().smoothed(rows)
    wanted, exact, covariance = dense(world, rows)
    prior = world.covariance(rows).diagonal().max()
    np.testing.assert_allclose(value, wanted, rtol=1e-10)
    np.testing.assert_allclose(mean, exact, atol=1e-9 * np.sqrt(prior))
    np.testing.assert_allclose(variance, covariance.diagonal(), atol=1e-9 * prior)


@NAMES
@pytest.mark.parametrize("latents", [1, 2])
def test_joint(name, latents):
    world, rows = World.of(name, latents), scattered(60, asking=0.3)
    _, exact, covariance = dense(world, rows)
    asked, prior = np.isnan(rows.value), world.covariance(rows).diagonal().max()
    mean, found = world.core().joint(rows)
    np.testing.assert_allclose(mean, exact[asked], atol=1e-9 * np.sqrt(prior))
    np.testing.assert_allclose(found, covariance[np.ix_(asked, asked)], atol=1e-9 * prior)


def differences(evidence, step=STEP):
    """Of fourth order."""
    near, far = evidence(step) - evidence(-step), evidence(2 * step) - evidence(-2 * step)
    return (8 * near - far) / (12 * step)


def by_numbers(world, rows):
    found = []
    for number, state in enumerate(world.states):
        for other in range(len(state.numbers)):

            def by(step, number=number, state=state, other=other):
                numbers = np.array(state.numbers)
                numbers[other] *= np.exp(step)
                variant = state.with_numbers(numbers.tolist())
                return world.replaced(number, variant).core().evidence(rows).value

            found.append(differences(by))
    return np.array(found)


@NAMES
@pytest.mark.parametrize("latents", [1, 2])
def test_gradient_by_numbers_of_kernels(name, latents):
    world, rows = World.of(name, latents), scattered(40, asking=0.1)
    wanted = by_numbers(world, rows)
    found = world.core().evidence(rows).by_numbers
    np.testing.assert_allclose(found, wanted, atol=1e-6 * max(1.0, np.abs(wanted).max()))


@pytest.mark.parametrize("name", ["default", "evolving", "smooth"])
def test_gradient_by_loadings_and_noise(name):
    world, rows = World.of(name, 2), scattered(40, asking=0.1)
    found, law = world.core().evidence(rows), Law(world.states, world.latent, 2, ORIGIN)

    def by_loading(step, place):
        loadings = world.loadings.copy()
        loadings[place] += step
        return States(law, loadings, world.spreads).evidence(rows).value

    def by_noise(step, row):
        noise = rows.noise.copy()
        noise[row] += step
        return world.core().evidence(rows._replace(noise=noise)).value

    for place in np.ndindex(2, 2):
        wanted = differences(lambda s, place=place: by_loading(s, place))
        np.testing.assert_allclose(found.by_loadings[place], wanted, rtol=1e-6, atol=1e-6)
    for row in range(0, 40, 5):
        wanted = differences(lambda s, row=row: by_noise(s, row))
        np.testing.assert_allclose(found.by_noise[row], wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["default", "season", "evolving", "smooth"])
def test_a_tape_with_checkpoints_is_a_whole_tape(name):
    """Parts that nothing is seen of leave all as it was, but make a tape too long to be kept."""
    world, rows = World.of(name), scattered(2000, asking=0.02)
    rows = rows._replace(time=100 * rows.time)
    unseen = [matern(2, 1.0 + k, 1.0) for k in range(20)]
    loadings = np.column_stack([world.loadings, np.zeros(2)])
    law = Law((*world.states, *unseen), (*world.latent, *[1] * 20), 2, ORIGIN)
    whole, long = world.core(), States(law, loadings, world.spreads)
    one, other = whole.evidence(rows), long.evidence(rows)
    count = len(one.by_numbers)
    scale = np.abs(one.by_numbers).max()
    np.testing.assert_allclose(other.value, one.value, rtol=1e-10)
    np.testing.assert_allclose(other.by_numbers[:count], one.by_numbers, atol=1e-9 * scale)
    np.testing.assert_array_equal(other.by_numbers[count:], 0.0)
    np.testing.assert_allclose(other.by_loadings[:, :1], one.by_loadings, rtol=1e-9)
    np.testing.assert_allclose(other.by_noise, one.by_noise, rtol=1e-8, atol=1e-9)
    for found, wanted in zip(long.smoothed(rows), whole.smoothed(rows), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-10)
    for found, wanted in zip(long.joint(rows), whole.joint(rows), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", ["default", "season", "evolving", "smooth"])
def test_the_gradient_of_a_long_stream(name):
    """By all noises together and by all variances together, against differences."""
    world = World.of(name)
    rows = regular(70_000 if name == "default" else 20_000)
    core = world.core()
    found, step = core.evidence(rows), 1e-5
    noise = differences(
        lambda s: core.evidence(rows._replace(noise=rows.noise * np.exp(s))).value, step
    )
    np.testing.assert_allclose(found.by_noise @ rows.noise, noise, rtol=1e-5)
    scaled = [state.scaled(np.exp(step)) for state in world.states]
    larger = World(tuple(scaled), world.processes, world.latent, world.loadings, world.spreads)
    scaled = [state.scaled(np.exp(-step)) for state in world.states]
    smaller = World(tuple(scaled), world.processes, world.latent, world.loadings, world.spreads)
    change = larger.core().evidence(rows).value - smaller.core().evidence(rows).value
    of_variances = np.cumsum([0, *(len(state.numbers) for state in world.states)])[:-1]
    wanted = change / (2 * step)
    np.testing.assert_allclose(found.by_numbers[of_variances].sum(), wanted, rtol=1e-4, atol=0.05)
