"""Hyperparameters learned over time: gradients, maximum likelihood, the past read anew."""

import numpy as np
import pytest
from scipy.optimize import minimize
from tests import chains
from tests._reference import build, markov

import streamgp as sgp
from streamgp.inference.over_time.learner import evidence_of
from streamgp.parameters import free_vector, prior_of, unwrap, with_free

X = np.cumsum(np.random.default_rng(1).uniform(0.55, 0.9, 20)) - 2.0


def assert_gradient(model, seed=0, tolerance=1e-6):
    """The gradient of the evidence, away from where the data came, is that by differences."""
    objective, theta = evidence_of(model.state), free_vector(model.state.model)
    theta = theta + 0.2 * np.random.default_rng(seed).normal(size=len(theta))
    _, gradient = objective.evidence(theta)
    wanted = build.slopes(lambda at: objective.evidence(at)[0], theta, 1e-4)
    np.testing.assert_allclose(
        gradient, wanted, rtol=tolerance, atol=tolerance * np.abs(wanted).max()
    )
    assert len(gradient)
    assert np.all(wanted != 0)


# -- gradients -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", chains.KERNELS)
def test_the_gradient_by_every_parameter_of_one_channel(name):
    model = sgp.ContinualGP(sgp.Gaussian(), latents=chains.KERNELS[name][0], engine="chain")
    model.update(X, np.sin(2 * X) + 0.1 * X, learn=False)
    assert_gradient(model)


@pytest.mark.parametrize("name", chains.KERNELS)
def test_the_gradient_by_every_parameter_of_two_channels(name):
    model = sgp.ContinualGP(
        {"a": sgp.Gaussian(), "b": sgp.LogNormal()},
        latents=[chains.KERNELS[name][0], sgp.Matern52(1.3)], engine="chain",
    )  # fmt: skip
    model.update({"a": (X[:12], np.sin(X[:12])), "b": (X[5:], np.exp(np.cos(X[5:])))}, learn=False)
    assert_gradient(model)


FAMILIES = {
    "lognormal": ({"a": sgp.LogNormal()}, {"a": (X, np.exp(np.sin(X)))}),
    "gaussian with errors": (
        {"a": sgp.Gaussian(error=True)}, {"a": (X, np.column_stack([np.sin(X), 0.1 + X % 1]))}
    ),
    "counts and classes": (
        {"a": sgp.Poisson(), "b": sgp.Categorical(3)},
        {"a": (X, np.floor(2 + 2 * np.sin(X))), "b": (X[3:], np.arange(len(X) - 3) % 3.0)},
    ),
    "families with parameters": (
        {"a": sgp.NegativeBinomial(), "b": sgp.StudentT(), "c": sgp.Gaussian()},
        {
            "a": (X, np.floor(2 + 2 * np.sin(X))), "b": (X[3:], np.cos(X[3:])),
            "c": (X[::3], np.sin(X[::3])),
        },
    ),
    "two latent parameters": (
        {"a": sgp.HeteroscedasticGaussian(), "b": sgp.Gaussian()},
        {"a": (X, np.sin(X)), "b": (X[::2], np.cos(X[::2]))},
    ),
}  # fmt: skip


@pytest.mark.parametrize("forgetting", [1.0, 0.6], ids=["whole", "faded"])
@pytest.mark.parametrize("name", FAMILIES)
def test_the_gradient_with_other_families(name, forgetting):
    channels, data = FAMILIES[name]
    model = sgp.ContinualGP(
        channels, latents=[sgp.Matern32(1.0)] * 2, engine="chain", forgetting=forgetting
    )
    model.update({name: (x[:9], y[:9]) for name, (x, y) in data.items()}, learn=False)
    model.update({name: (x[9:], y[9:]) for name, (x, y) in data.items()}, learn=False)
    # Rows that pull without curvature cost the evidence some digits, and so these differences.
    assert_gradient(model, tolerance=1e-4 if name == "two latent parameters" else 1e-6)


def test_the_gradient_of_a_long_stream():
    x = np.sort(np.random.default_rng(2).uniform(0, 40, 700))
    model = sgp.ContinualGP(sgp.Gaussian(), latents=sgp.Matern32(1.0), engine="chain")
    model.update(x, np.sin(2 * x), learn=False)
    assert len(model.state.blocks) > 1
    assert_gradient(model)


# -- the evidence ----------------------------------------------------------------------------------


def test_evidence_under_other_hyperparameters_is_that_of_the_dense_gp():
    """Up to a constant, for any of them: nothing of the rows is lost."""
    model = sgp.ContinualGP(
        {"a": sgp.Gaussian(), "b": sgp.Gaussian()},
        latents=[sgp.Matern32(1.0), sgp.Matern52(2.0)], engine="chain",
    )  # fmt: skip
    rows = chains.draw(chains.two("matern32"), X)
    chains.fed(model, rows)
    told, wanted = evidence_at(model, 4, lambda world: markov.evidence(world, rows))
    np.testing.assert_allclose(np.diff(told), np.diff(wanted), rtol=1e-8)
    assert np.ptp(wanted) > 1


def evidence_at(model, count, exact):
    """What the evidence is under some hyperparameters, and what it should be up to a constant."""
    wrapped, objective = model.state.model, evidence_of(model.state)
    told, wanted = [], []
    generator = np.random.default_rng(4)
    for _ in range(count):
        theta = free_vector(wrapped)
        theta = theta + 0.4 * generator.normal(size=len(theta))
        told.append(objective.evidence(theta)[0])
        wanted.append(exact(chains.world_of(unwrap(with_free(wrapped, theta)))))
    return told, wanted


def test_the_evidence_of_faded_rows_is_that_of_parts_of_observations():
    """A row of which a part is left has its likelihood to that power."""
    x, part = X[:16], 0.4
    model = sgp.ContinualGP(
        sgp.Gaussian(), latents=sgp.Matern32(1.0), engine="chain", forgetting=part
    )
    y = np.sin(x)
    model.update(x[:10], y[:10], learn=False)
    model.update(x[10:], y[10:], learn=False)
    rows, left = markov.Rows(x, np.repeat([0, 1], [10, 6]), y), np.array([part, 1.0])

    def exact(world):
        noise = world.noises[0]
        two = world._replace(
            weights=np.repeat(world.weights, 2, axis=0), offsets=np.repeat(world.offsets, 2),
            spreads=np.zeros(2), noises=noise / np.sqrt(left),
            processes=(world.processes[0] + markov.constant(world.spreads[0] ** 2),),
        )  # fmt: skip
        return markov.evidence(two, rows) - 10 * (part - 1) * np.log(noise)

    told, wanted = evidence_at(model, 4, exact)
    np.testing.assert_allclose(np.diff(told), np.diff(wanted), rtol=1e-8)
    assert np.ptp(wanted) > 1


# -- maximum likelihood ----------------------------------------------------------------------------


def series(count, step=0.1, noise=0.3, seed=3):
    """A draw from a Matérn-3/2 process of unit lengthscale and variance."""
    generator = np.random.default_rng(seed)
    x = step * np.arange(count)
    k = markov.matern(1, 1.0, 1.0).covariance(x, x)
    f = np.linalg.cholesky(k + 1e-10 * np.eye(count)) @ generator.normal(size=count)
    return x, f + noise * generator.normal(size=count)


def offline(wrapped, rows):
    """Hyperparameters of the largest evidence of the dense GP times the weak priors."""
    centre, width = prior_of(wrapped)

    def loss(theta):
        world = chains.world_of(unwrap(with_free(wrapped, theta)))
        return 0.5 * np.sum(((theta - centre) / width) ** 2) - markov.evidence(world, rows)

    start = free_vector(wrapped) + np.array([0.3, -0.3, 0.2])
    found = minimize(loss, start, method="BFGS", options={"gtol": 0.1, "eps": 1e-4})
    return np.exp(found.x)


def test_a_stream_learns_what_maximum_likelihood_of_all_data_does():
    x, y = series(400)
    model = sgp.ContinualGP(sgp.Gaussian(), latents=sgp.Matern32())
    for part in np.split(np.arange(400), 8):
        model.update(x[part], y[part])
    assert model.engine == "chain"
    model.refine()
    wrapped = model.state.model
    learned = np.exp(free_vector(wrapped))  # lengthscale, variance, noise
    best = offline(wrapped, markov.Rows(x, np.zeros(400, int), y))
    np.testing.assert_allclose(learned, best, rtol=0.02)


# -- the past read anew ----------------------------------------------------------------------------


def test_what_is_learned_later_reinterprets_the_past():
    """Weights, noises and kernels change at every update: all rows count as if they came last."""
    x = np.cumsum(np.random.default_rng(6).uniform(0.3, 0.6, 120))
    generator = np.random.default_rng(7)
    shared = np.sin(x) + 0.5 * np.sin(2.3 * x)
    a = (x < 30, shared)
    b = (x > 15, 2 - 3 * shared)
    model = sgp.ContinualGP(
        {"a": sgp.Gaussian(), "b": sgp.Gaussian()}, latents=sgp.Matern32(), engine="chain",
        weight_uncertainty=False,
    )  # fmt: skip
    parts, bound, weights = [], 0.0, []
    for low in range(0, 120, 20):
        own = np.arange(low, low + 20)
        batch = {}
        for d, (seen, values) in enumerate((a, b)):
            some = own[seen[own]]
            if len(some):
                y = values[some] + 0.2 * generator.normal(size=len(some))
                batch[chains.NAMES[d]] = (x[some], y)
                parts.append(markov.Rows(x[some], np.full(len(some), d), y))
        bound += model.update(batch).bound
        weights.append(model.state.plain.channels[1].loadings[0, 0])
    rows = markov.Rows(*(np.concatenate(part) for part in zip(*parts, strict=True)))
    assert abs(weights[-1] - weights[0]) > 0.1
    world = chains.world_of(model.state.plain)
    test, channel = np.tile(np.linspace(-1, x[-1] + 2, 40), 2), np.repeat([0, 1], 40)
    found = markov.exact(world, rows, test, channel)
    mean, variance = chains.moments(model, test, channel)
    np.testing.assert_allclose(mean, found.mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(variance, np.diag(found.covariance), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(bound, found.evidence, rtol=1e-8)
    # Where b was never seen, a tells it, with the right sign and size.
    early = x < 12
    told = model.predict(x[early], "b").mean
    assert np.sqrt(np.mean((told - b[1][early]) ** 2)) < 0.8


def test_refining_without_data_raises_the_objective():
    x, y = series(120)
    model = sgp.ContinualGP(sgp.Gaussian(), latents=sgp.Matern32(3.0))
    model.update(x, y, learn=False)
    before = free_vector(model.state.model)
    report = model.refine()
    assert report.m_evaluations > 1
    after, objective = free_vector(model.state.model), evidence_of(model.state)
    values = [objective.evidence(theta)[0] for theta in (before, after)]
    assert values[1] > values[0] + 1
    assert model.observations == {"y": 120}
