"""The past under other weights, scales, noises and levels: as if its data were still there."""

from typing import NamedTuple

import numpy as np
import pytest
from tests._reference import build, dense, families

import streamgp as sgp
from streamgp.inference.sparse.learner import Learner
from streamgp.inference.posterior import condition
from streamgp.inference.reading import Reading, by_channels
from streamgp.inference.trust import trusted
from streamgp.inference.vem import VEM
from streamgp.model.means import NONE, Constant, Mean
from streamgp.parameters import (
    Positive,
    free_gradient,
    free_vector,
    replaced,
    unwrap,
    with_free,
)

Z = (np.linspace(0, 6, 7), np.linspace(0.3, 5.7, 5))
LENGTHSCALES = (1.2, 0.8)
SPREAD = 4.0
TEST = np.linspace(0, 6, 13)[:, None]


class Line(Mean):
    """A level and a slope."""

    spreads = (None, 1.0)

    def __call__(self, x):
        return np.concatenate([np.ones((len(x), 1)), x / 6], axis=1)


class Kind(NamedTuple):
    """A family to be trained, and how its observations come about from values f."""

    likelihood: sgp.Likelihood
    draw: object


def _weighted(generator, f):
    weight = generator.uniform(0.2, 2.0, len(f))
    weight[0] = 0.0
    return np.column_stack([f, weight])


KINDS = {
    "Gaussian": Kind(sgp.Gaussian(Positive(0.4)), lambda g, f: f),
    "LogNormal": Kind(sgp.LogNormal(Positive(0.5)), lambda g, f: np.exp(f)),
    "Weighted": Kind(sgp.Weighted(sgp.Gaussian(Positive(0.6))), _weighted),
    "Categorical": Kind(sgp.Categorical(3), lambda g, f: np.digitize(f, [0.0, 1.0]) * 1.0),
    "HeteroscedasticGaussian": Kind(sgp.HeteroscedasticGaussian(), lambda g, f: f),
    "Poisson": Kind(sgp.Poisson(), lambda g, f: np.floor(np.exp(f))),
}
NORMAL = {
    "one": ("Gaussian",),
    "three": ("Gaussian", "Gaussian", "Gaussian"),
    "lognormal": ("LogNormal",),
    "weighted": ("Weighted",),
    "mixed": ("Weighted", "Gaussian", "LogNormal"),
}
MEANS = {"no means": (NONE,), "levels": (Constant(),), "some": (Line(), NONE, Constant())}
OF_MEANS = pytest.mark.parametrize("means", MEANS.values(), ids=MEANS)


def channels_of(names, means):
    """A channel of each family, with its weights and scales to be learned."""
    generator = np.random.default_rng(5)
    found = []
    for d, name in enumerate(names):
        likelihood = KINDS[name].likelihood
        weights = generator.normal(size=(likelihood.latents, len(Z)))
        own = build.channel(
            likelihood, weights, 0.3 * d, trainable=True, mean=means[d % len(means)], spread=SPREAD
        )
        scale = Positive(1.0 + 0.2 * np.arange(likelihood.latents))
        found.append(replaced(own, scale=scale))
    return found


def start(learner, names, means):
    """A state before any data, with all but the kernels to be learned."""
    model = build.model(channels_of(names, means), LENGTHSCALES, (1.0, 1.7))
    return learner.init(model, build.points(*Z))


def draw(names, seed=0, rows=20):
    """(channel, inputs, observations) of each channel."""
    generator = np.random.default_rng(seed)
    parts = []
    for d, name in enumerate(names):
        x = generator.uniform(0, 6, rows)
        f = np.sin(2 * x + d) + 0.4 * generator.normal(size=rows) + 0.5 * d
        parts.append((d, x, KINDS[name].draw(generator, f)))
    return parts


def learned(names, means, learning=VEM(evaluations=3)):  # noqa: B008 (frozen)
    """The state after two batches, and their data."""
    learner = Learner(learning)
    first, second = draw(names, 0), draw(names, 1, 15)
    state = start(learner, names, means)
    for parts in (first, second):
        state, _ = learner.step(state, build.rows(*parts))
    return state, [*first, *second]


def elsewhere(model, size=0.3, seed=3):
    """The model with other weights, scales and noises."""
    vector = free_vector(model)
    return with_free(model, vector + size * np.random.default_rng(seed).normal(size=vector.size))


def read(model, past):
    """What the past says under a plain model, v integrated out."""
    reading = Reading.of(model)
    return reading.beside(past) + condition(reading.site(past)).log_evidence


# -- dense formulas --------------------------------------------------------------------------------


def regressions(model, x):
    """Whitened features and open variance of each latent function at some inputs."""
    found = []
    for kernel, z in zip(model.kernels, Z, strict=True):
        k = (kernel.lengthscale, kernel.variance)
        gram = dense.with_nugget(dense.rbf(z[:, None], z[:, None], *k))
        cross = dense.rbf(z[:, None], x[:, None], *k)
        found.append(dense.design(gram, cross, np.full(len(x), float(kernel.variance))))
    return found


def normal_rows(likelihood, y):
    """Normal values, their noise variances, and the log-density that they leave out."""
    if isinstance(likelihood, sgp.LogNormal):
        value, variance = np.log(y), np.full(len(y), float(likelihood.noise) ** 2)
        return value, variance, -np.sum(value)
    if isinstance(likelihood, sgp.Gaussian):
        return y, np.full(len(y), float(likelihood.noise) ** 2), 0.0
    variance, (value, weight) = float(likelihood.base.noise) ** 2, y.T
    heard = weight > 0
    rest = 0.5 * np.sum(np.log(2 * np.pi * variance / weight[heard]))
    rest -= 0.5 * np.sum(weight) * np.log(2 * np.pi * variance)
    return value, variance / np.where(heard, weight, 1e-30), rest


def dense_bound(model, parts):
    """The collapsed bound of all data: inducing values for the functions, levels exactly."""
    rows, noises, designs, rest = [], [], [], 0.0
    width = max(channel.mean.size for channel in model.channels)
    for d, x, y in parts:
        channel = model.channels[d]
        value, variance, own = normal_rows(channel.likelihood, y)
        heard = variance < 1e20
        x, value, variance = x[heard], value[heard], variance[heard]
        blocks = []
        for loading, (a, left) in zip(channel.loadings[0], regressions(model, x), strict=True):
            blocks.append(loading * a)
            rest -= 0.5 * np.sum(loading**2 * left / variance)
        levels = np.zeros((len(x), len(model.channels), width))
        levels[:, d, : channel.mean.size] = SPREAD * channel.mean(x[:, None])
        designs.append(np.concatenate([*blocks, levels.reshape(len(x), -1)], axis=1))
        rows.append(value - channel.offset[0])
        noises.append(variance)
        rest += own
    design = np.concatenate(designs)
    total = design @ design.T + np.diag(np.concatenate(noises))
    return rest + dense.log_normal(np.concatenate(rows), np.zeros(len(total)), total)


def left_out(parts, past, names):
    """What does not depend on any hyperparameter."""
    logarithms = sum(np.sum(np.log(y)) for d, _, y in parts if names[d] == "LogNormal")
    return -0.5 * np.sum(past.count) * np.log(2 * np.pi) - logarithms


# -- rows with normal noise ------------------------------------------------------------------------


@OF_MEANS
@pytest.mark.parametrize("names", NORMAL.values(), ids=NORMAL)
def test_what_is_read_is_the_bound_of_the_past_data(names, means):
    """Under the learned hyperparameters and under any others."""
    state, parts = learned(names, means)
    before = start(Learner(), names, means).model
    for model in (state.model, before, elsewhere(state.model), elsewhere(state.model, 1.0)):
        plain = unwrap(model)
        got = read(plain, state.past) + left_out(parts, state.past, names)
        assert got == pytest.approx(dense_bound(plain, parts), rel=1e-8, abs=1e-7)


def test_weights_stand_for_rows_and_a_weight_of_zero_for_none():
    state, parts = learned(("Weighted",), (NONE,))
    assert state.past.count[0] == pytest.approx(sum(np.sum(y[:, 1]) for _, _, y in parts))
    assert state.heard[0] == 35


@OF_MEANS
def test_at_the_states_own_hyperparameters_it_is_the_bound_of_the_step(means):
    names = NORMAL["mixed"]
    learner = Learner(None, e_tolerance=1e-12, e_rounds=3000)
    parts = draw(names)
    state, info = learner.step(start(learner, names, means), build.rows(*parts))
    got = read(state.plain, state.past) + left_out(parts, state.past, names)
    assert got == pytest.approx(info.bound, rel=1e-9)


def test_the_noise_learned_in_parts_is_that_learned_in_one():
    """Kernel and points fixed: the noise and the posterior of all the data at once."""
    generator = np.random.default_rng(0)
    x = generator.uniform(0, 6, 120)
    # The first part hardly shows how noisy the channel is.
    y = np.sin(x) + np.where(np.arange(120) < 40, 0.05, 0.6) * generator.normal(size=120)
    likelihood = build.gaussian(0.3, trainable=True)
    channel = build.channel(likelihood, [[1.0]], 0.2, mean=Constant(), spread=SPREAD)
    learner = Learner(VEM(evaluations=100))
    blank = learner.init(build.model([channel], (1.2,)), build.points(np.linspace(0, 6, 9)))
    whole, _ = learner.step(blank, build.rows((0, x, y)))
    state = blank
    for part in np.split(np.arange(120), 3):
        state, _ = learner.step(state, build.rows((0, x[part], y[part])))
    got, wanted = (float(s.plain.channels[0].likelihood.noise) for s in (state, whole))
    assert got == pytest.approx(wanted, rel=1e-3)
    for one, other in zip(
        learner.predict(state, TEST, 0), learner.predict(whole, TEST, 0), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=2e-3)


# -- rows of other families ------------------------------------------------------------------------


def settled(names, means):
    """The state after one batch, the batch, and the sites of its rows as they are kept."""
    learner = Learner(None, e_tolerance=1e-10)
    blank, rows = start(learner, names, means), build.rows(*draw(names))
    trial, fit, *_ = build.learned(learner, blank, rows)
    sites = trusted(trial.wrapped, trial.setting, fit.rows, fit.marginals)
    return learner.step(blank, rows)[0], trial.setting.batch, sites


def dense_quadratic(model, batch, sites):
    """λ, Λ and what is beside them, of the rows' sites under a model, row by row."""
    width = max(channel.mean.size for channel in model.channels)
    first = np.cumsum([0, *[channel.likelihood.latents for channel in model.channels]])
    size = sum(map(len, Z))
    linear = np.zeros(size + first[-1] * width)
    precision, beside = np.zeros((len(linear), len(linear))), 0.0
    for group in batch.groups:
        channel, j = model.channels[group.channel], group.latents
        x = batch.x[group.rows, 0]
        at = regressions(model, x)
        b = sites.linear[group.flat].reshape(-1, j)
        p = sites.precision[group.run][group.within]
        for n in range(len(x)):
            blocks = [np.outer(channel.loadings[:, q], a[n]) for q, (a, _) in enumerate(at)]
            levels = np.zeros((j, first[-1], width))
            own = SPREAD * channel.mean(x[n : n + 1, None])[0]
            for i in range(j):
                levels[i, first[group.channel] + i, : len(own)] = own
            a = np.concatenate([*blocks, levels.reshape(j, -1)], axis=1)
            linear += a.T @ b[n]
            precision += a.T @ p[n] @ a
            left = np.array([left[n] for _, left in at])
            beside -= 0.5 * np.trace(p[n] @ channel.loadings @ np.diag(left) @ channel.loadings.T)
    return linear, precision, beside


@OF_MEANS
@pytest.mark.parametrize(
    "names", [("Poisson",), ("Categorical", "Poisson", "HeteroscedasticGaussian")], ids=["1", "3"]
)
def test_rows_of_other_families_are_read_as_their_quadratics(names, means):
    state, batch, sites = settled(names, means)
    for model in (state.plain, unwrap(elsewhere(state.model))):
        linear, precision, beside = dense_quadratic(model, batch, sites)
        reading = Reading.of(model)
        got = reading.site(state.past)
        np.testing.assert_allclose(got.linear, linear, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(got.precision, precision, rtol=1e-6, atol=1e-7)
        assert reading.beside(state.past) == pytest.approx(beside, rel=1e-6)


# -- derivatives -----------------------------------------------------------------------------------


def random_functional(site, seed=7):
    """Directions by λ and Λ: any, the latter symmetric."""
    generator = np.random.default_rng(seed)
    square = generator.normal(size=site.precision.shape)
    return generator.normal(size=site.linear.shape), square + square.T


def applied(by_linear, by_precision, site):
    return float(by_linear @ site.linear + np.sum(by_precision * site.precision))


DERIVED = {
    "one latent parameter": ("Gaussian",),
    "three latent parameters": ("Categorical",),
    "both": ("Gaussian", "Categorical", "Weighted", "HeteroscedasticGaussian"),
}


@OF_MEANS
@pytest.mark.parametrize("names", DERIVED.values(), ids=DERIVED)
def test_derivatives_by_loadings_and_strengths(names, means):
    state, _ = learned(names, means)
    reading = Reading.of(unwrap(elsewhere(state.model)))
    by = random_functional(reading.site(state.past))
    shape, split = reading.loadings.shape, reading.loadings.size

    def value(vector):
        other = Reading(
            reading.outputs, vector[:split].reshape(shape), reading.spreads, np.exp(vector[split:])
        )
        return applied(*by, other.site(state.past)) + other.beside(state.past)

    here = np.append(reading.loadings, np.log(reading.strength))
    wanted = build.slopes(value, here, 1e-3)
    got = reading.adjoint(state.past, *by)
    scale = np.max(np.abs(wanted))
    assert scale > 1
    np.testing.assert_allclose(got.loadings.ravel(), wanted[:split], rtol=1e-8, atol=1e-8 * scale)
    np.testing.assert_allclose(got.log_strength, wanted[split:], rtol=1e-8, atol=1e-8 * scale)


@OF_MEANS
def test_derivatives_by_the_parameters_of_channels(means):
    """Of the past's bound by weights, scales and noises, as BFGS moves them."""
    state, _ = learned(NORMAL["mixed"], means)
    there = elsewhere(state.model)

    def value(vector):
        return read(unwrap(with_free(there, vector)), state.past)

    plain, reading = unwrap(there), Reading.of(unwrap(there))
    posterior = condition(reading.site(state.past))
    by = reading.adjoint(state.past, posterior.mean, -0.5 * posterior.second)
    got = free_gradient(there.channels, tuple(by_channels(plain, by)))
    wanted = build.slopes(value, free_vector(there), 1e-4)
    np.testing.assert_allclose(got, wanted, rtol=1e-7, atol=1e-7 * np.max(np.abs(wanted)))


# -- noises that scale sites -----------------------------------------------------------------------


def started(name):
    """A family as it starts from some observations, and those."""
    parts = families.draw(np.random.default_rng(0), [name], 0, 4)
    return families.started([name], 2, parts).channels[0].likelihood, parts[0][2]


def with_parameters(likelihood, shift):
    return unwrap(with_free(likelihood, free_vector(likelihood) + shift))


SCALING = {"Gaussian", "LogNormal", "Weighted"}


@pytest.mark.parametrize("name", families.FAMILIES)
def test_a_strength_is_a_common_factor_of_the_sites(name):
    likelihood, y = started(name)
    assert likelihood.scales_sites == (name in SCALING)
    if not likelihood.scales_sites:
        plain = unwrap(likelihood)
        assert plain.strength == 1.0
        assert not plain.strength_gradient(1.0)
        return
    one, other = (with_parameters(likelihood, shift) for shift in (0.0, 0.7))
    assert one.strength != pytest.approx(other.strength, rel=0.1)
    mean, covariance = np.full((len(y), 1), 0.2), np.zeros((len(y), 1, 1))
    for a, b in zip(
        one.curvature(y, mean, covariance), other.curvature(y, mean, covariance), strict=True
    ):
        np.testing.assert_allclose(a / one.strength, b / other.strength, rtol=1e-12)
    by = free_gradient(likelihood, unwrap(likelihood).strength_gradient(1.0))
    wanted = build.slopes(
        lambda vector: np.log(unwrap(with_free(likelihood, vector)).strength),
        free_vector(likelihood), 1e-3,
    )  # fmt: skip
    np.testing.assert_allclose(by, wanted, rtol=1e-8)


@pytest.mark.parametrize(
    "likelihood",
    [sgp.Gaussian(error=True), sgp.Weighted(sgp.Poisson()), sgp.Censored(sgp.Gaussian())],
    ids=["errors", "weighted counts", "censored"],
)
def test_other_noises_are_no_common_factor(likelihood):
    assert not likelihood.scales_sites
    assert unwrap(likelihood).strength == 1.0


# -- the order of channels -------------------------------------------------------------------------


@OF_MEANS
def test_another_order_of_channels_changes_nothing_but_the_order(means):
    names, order = ("Gaussian", "Categorical", "Weighted"), [2, 0, 1]
    learner = Learner(VEM(rounds=1, evaluations=4), e_tolerance=1e-9)
    state = start(learner, names, means)
    channels = tuple(state.model.channels[d] for d in order)
    turned = learner.init(replaced(state.model, channels=channels), state.points)
    for seed in range(2):
        parts = draw(names, seed)
        state, info = learner.step(state, build.rows(*parts))
        again = [(order.index(d), x, y) for d, x, y in parts]
        turned, other = learner.step(turned, build.rows(*again))
        assert other.bound == pytest.approx(info.bound, rel=1e-7)
        assert turned.count == state.count
    for place, d in enumerate(order):
        for got, wanted in zip(
            learner.predict(turned, TEST, place), learner.predict(state, TEST, d), strict=True
        ):
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
    assert Reading.of(turned.plain).beside(turned.past) == pytest.approx(
        Reading.of(state.plain).beside(state.past), rel=1e-6
    )


# -- channels that come later ----------------------------------------------------------------------


@pytest.mark.parametrize("weight", [1.5, -2.0])
def test_what_is_known_survives_a_second_channel(weight):
    """Of the same function, with a weight that the first start may not guess."""
    generator = np.random.default_rng(0)
    x = np.linspace(0, 6, 100)
    model = sgp.ContinualGP(sgp.Gaussian(), inducing=sgp.Fixed(np.linspace(0, 6, 9)))
    model.update(x, np.sin(x) + 0.4 * generator.normal(size=100))
    before, state = model.hyperparameters["channels"]["y"]["noise"], model.state
    model.add_channel("other", sgp.Gaussian())
    known = model.state.past
    np.testing.assert_allclose(known.count, [100, 0], rtol=1e-12)
    assert known.energy[0] == state.past.energy[0]
    assert read(model.state.plain, known) == pytest.approx(read(state.plain, state.past), rel=1e-9)
    model.update({"other": (x, weight * np.sin(x) + 0.1 * generator.normal(size=100))})
    assert model.hyperparameters["channels"]["y"]["noise"] == pytest.approx(before, rel=0.1)


def test_a_later_channel_may_have_more_mean_functions():
    """Its place is behind those of the others, and it says nothing yet."""
    x = np.linspace(0, 6, 30)
    model = sgp.ContinualGP(
        {"a": sgp.Gaussian(), "b": sgp.Gaussian()}, latents=2, inducing=sgp.Fixed(Z[0]),
        mean={"a": None, "b": Constant()},
    )  # fmt: skip
    model.update({"a": (x, np.sin(x)), "b": (x, np.cos(x) + 3)})
    old = {name: model.predict(x, name) for name in "ab"}
    model.add_channel("late", sgp.Categorical(3))
    assert model.state.past.linear[-1].shape == (5, 1)
    for name, before in old.items():
        after = model.predict(x, name)
        np.testing.assert_allclose(after.mean, before.mean, atol=1e-8)
        np.testing.assert_allclose(after.variance, before.variance, atol=1e-8)
    report = model.update({"late": (x, np.digitize(np.sin(x), [-0.5, 0.5]))})
    assert np.isfinite(report.bound)
    np.testing.assert_array_equal(model.state.heard, [30, 30, 30])
