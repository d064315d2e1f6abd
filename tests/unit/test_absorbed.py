"""What channels have said, read under other weights, scales, noises and inducing values."""

import dataclasses
import itertools
from typing import NamedTuple

import numpy as np
import pytest
from tests._reference import build, dense, families

import streamgp as sgp
from streamgp.inference.posterior import condition
from streamgp.inference.sites import through
from streamgp.inference.sparse.absorbed import Absorbed, Reading, believable
from streamgp.inference.sparse.filtering import filter_rows
from streamgp.inference.sparse.learner import Learner
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


def read(model, state):
    """What the past says under a plain model, v integrated out."""
    reading = Reading.of(model, state.plain)
    said = condition(state.absorbed.site(reading, state.sizes)).log_evidence
    return state.absorbed.beside(reading) + said


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


def left_out(parts, said, names):
    """What does not depend on any hyperparameter."""
    logarithms = sum(np.sum(np.log(y)) for d, _, y in parts if names[d] == "LogNormal")
    return -0.5 * np.sum(said.count) * np.log(2 * np.pi) - logarithms


# -- rows with normal noise ------------------------------------------------------------------------


@OF_MEANS
@pytest.mark.parametrize("names", NORMAL.values(), ids=NORMAL)
def test_what_is_read_is_the_bound_of_the_past_data(names, means):
    """Under the learned hyperparameters and under any others."""
    state, parts = learned(names, means)
    before = start(Learner(), names, means).model
    for model in (state.model, before, elsewhere(state.model), elsewhere(state.model, 1.0)):
        plain = unwrap(model)
        got = read(plain, state) + left_out(parts, state.absorbed, names)
        assert got == pytest.approx(dense_bound(plain, parts), rel=1e-8, abs=1e-7)


def test_weights_stand_for_rows_and_a_weight_of_zero_for_none():
    state, parts = learned(("Weighted",), (NONE,))
    assert state.absorbed.count[0] == pytest.approx(sum(np.sum(y[:, 1]) for _, _, y in parts))
    assert state.heard[0] == 35


@OF_MEANS
def test_at_the_states_own_hyperparameters_it_is_the_bound_of_the_step(means):
    names = NORMAL["mixed"]
    learner = Learner(None, e_tolerance=1e-12, e_rounds=3000)
    parts = draw(names)
    state, info = learner.step(start(learner, names, means), build.rows(*parts))
    got = read(state.plain, state) + left_out(parts, state.absorbed, names)
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
    """The state after one batch, the batch, and the sites of its rows."""
    learner = Learner(None, e_tolerance=1e-10)
    blank, rows = start(learner, names, means), build.rows(*draw(names))
    learned = build.learned(learner, blank, rows)
    trial, fit = learned.trial, learned.fit
    sites = believable(trial.wrapped, trial.setting, fit.rows, fit.marginals)
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


def wanted_beyond(model, rows, at_rows):
    """By how much each row of the first channel wants f farther than three prior deviations."""
    channel = model.channels[0]
    deviation = np.sqrt(channel.scale[0] ** 2 + np.sum(channel.loadings[0] ** 2))
    precision = rows.precision[0][:, 0, 0]
    step = (rows.linear - precision * at_rows.centred) / precision
    return np.abs(step) - 3 * deviation


def test_no_row_is_believed_to_want_f_beyond_three_prior_deviations():
    """A count that nobody expected gets more curvature, and its pull where f is stays the same."""
    learner, x = Learner(None, e_tolerance=1e-10), np.linspace(0, 6, 12)
    y = np.where(np.arange(12) == 5, 1e5, 1.0)
    blank, rows = start(learner, ("Poisson",), (NONE,)), build.rows((0, x, y))
    learned = build.learned(learner, blank, rows)
    fit, setting, model = learned.fit, learned.trial.setting, blank.plain
    sites = believable(learned.trial.wrapped, setting, fit.rows, fit.marginals)
    too_far = wanted_beyond(model, fit.rows, fit.marginals) > 1e-9
    assert 0 < np.count_nonzero(too_far) < 12
    assert wanted_beyond(model, sites, fit.marginals).max() < 1e-9
    np.testing.assert_allclose(sites.linear[~too_far], fit.rows.linear[~too_far], rtol=1e-9)
    np.testing.assert_array_equal(sites.precision[0][~too_far], fit.rows.precision[0][~too_far])
    pulls = [
        own.linear - own.precision[0][:, 0, 0] * fit.marginals.centred for own in (fit.rows, sites)
    ]
    np.testing.assert_allclose(pulls[1], pulls[0], rtol=1e-9)
    one_by_one = filter_rows(blank, rows, rounds=100, tolerance=1e-10)
    assert wanted_beyond(model, one_by_one.rows, one_by_one.after).max() < 1e-3


@OF_MEANS
@pytest.mark.parametrize(
    "names", [("Poisson",), ("Categorical", "Poisson", "HeteroscedasticGaussian")], ids=["1", "3"]
)
def test_rows_of_other_families_are_read_as_their_quadratics(names, means):
    """Under any weights, those of several latent parameters under the weights of their time."""
    state, batch, sites = settled(names, means)
    for model in (state.plain, unwrap(elsewhere(state.model))):
        reading = Reading.of(model, state.plain)
        got = state.absorbed.site(reading, state.sizes)
        channels = tuple(
            new if new.likelihood.latents == 1 else old
            for new, old in zip(model.channels, state.plain.channels, strict=True)
        )
        read = replaced(state.plain, channels=channels)
        linear, precision, beside = dense_quadratic(read, batch, sites)
        np.testing.assert_allclose(got.linear, linear, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(got.precision, precision, rtol=1e-6, atol=1e-7)
        assert state.absorbed.beside(reading) == pytest.approx(beside, rel=1e-6)


@OF_MEANS
def test_a_noise_learned_later_reads_only_its_own_channel(means):
    """Beside a channel of two latent parameters, which stays as it is."""
    names = ("HeteroscedasticGaussian", "Gaussian")
    state, batch, sites = settled(names, means)
    other = unwrap(elsewhere(state.model))
    scaled = state.plain.channels[0], other.channels[1]
    strengths = [own.channels[1].likelihood.strength for own in (other, state.plain)]
    linear, precision, _ = (
        np.sum(parts, axis=0)
        for parts in zip(
            *(
                dense_quadratic(replaced(state.plain, channels=scaled), batch, own)
                for own in _apart(batch, sites, strengths[0] / strengths[1])
            ),
            strict=True,
        )
    )
    got = state.absorbed.site(Reading.of(other, state.plain), state.sizes)
    np.testing.assert_allclose(got.linear, linear, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(got.precision, precision, rtol=1e-6, atol=1e-7)


def _apart(batch, sites, factor):
    """The sites of each channel alone; those of the second by a factor."""
    for d in range(2):
        linear, precision = 0 * sites.linear, [0 * p for p in sites.precision]
        for group in batch.groups:
            if group.channel == d:
                own = factor**d
                linear[group.flat] = own * sites.linear[group.flat]
                precision[group.run][group.within] = own * sites.precision[group.run][group.within]
        yield sites._replace(linear=linear, precision=tuple(precision))


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
    reading = Reading.of(unwrap(elsewhere(state.model)), state.plain)
    generator = np.random.default_rng(8)
    reading = reading._replace(ratio=generator.uniform(0.5, 2.0, reading.ratio.shape))
    by = random_functional(state.site)
    split, shape = reading.ratio.size, reading.ratio.shape

    def value(vector):
        other = reading._replace(
            ratio=vector[:split].reshape(shape), strength=np.exp(vector[split:])
        )
        site = state.absorbed.site(other, state.sizes)
        return applied(*by, site) + state.absorbed.beside(other)

    here = np.append(reading.ratio, np.log(reading.strength))
    wanted = build.slopes(value, here, 1e-3)
    by_strength, by_ratio = state.absorbed.adjoint(reading, state.sizes, *by)
    scale = np.max(np.abs(wanted))
    assert scale > 1
    np.testing.assert_allclose(by_ratio.ravel(), wanted[:split], rtol=1e-8, atol=1e-8 * scale)
    np.testing.assert_allclose(by_strength, wanted[split:], rtol=1e-8, atol=1e-8 * scale)


@OF_MEANS
@pytest.mark.parametrize("names", [NORMAL["mixed"], DERIVED["both"]], ids=["normal", "both"])
def test_derivatives_by_the_parameters_of_channels(names, means):
    """Of the past's bound by weights, scales and noises, as BFGS moves them."""
    learner = Learner()
    state, _ = learned(names, means)
    there = elsewhere(state.model)

    def value(vector):
        return read(unwrap(with_free(there, vector)), state)

    bound, got = learner.told(state, there)
    assert bound == pytest.approx(read(unwrap(there), state), rel=1e-9)
    wanted = build.slopes(value, free_vector(there), 1e-4)
    np.testing.assert_allclose(got, wanted, rtol=1e-7, atol=1e-7 * np.max(np.abs(wanted)))


def test_a_loading_of_zero_says_nothing_to_be_read_under_another():
    state, _ = learned(("Gaussian",), (NONE,), None)
    [channel] = state.model.channels
    silent = replaced(channel, weights=channel.weights.with_free(np.array([0.0, 1.0])))
    state = Learner(None).init(replaced(state.model, channels=(silent,)), state.points)
    state, _ = Learner(None).step(state, build.rows(*draw(("Gaussian",))))
    reading = Reading.of(unwrap(replaced(state.model, channels=(channel,))), state.plain)
    assert reading.ratio[0, 0] == 1.0
    assert reading.per_loading[0, 0] == 0.0
    assert np.isfinite(state.absorbed.site(reading, state.sizes).precision).all()


# -- other inducing values -------------------------------------------------------------------------

ANY = ("Gaussian", "HeteroscedasticGaussian", "Categorical")


@OF_MEANS
def test_other_whitened_values_have_the_site_that_was_said(means):
    state, _ = learned(ANY, means)
    generator = np.random.default_rng(0)
    maps = [generator.normal(size=(size, size)) for size in state.sizes]
    got = state.absorbed.through(maps)
    wanted = through(state.site, maps)
    site = got.site(state.reading, state.sizes)
    np.testing.assert_allclose(site.linear, wanted.linear, atol=1e-9)
    np.testing.assert_allclose(site.precision, wanted.precision, rtol=1e-9, atol=1e-9)
    assert got.beside(state.reading) == state.absorbed.beside(state.reading)


@OF_MEANS
def test_what_a_projection_leaves_open_joins_the_open_variance(means):
    """E[log t(v_old) | v_new] of each channel: its site through Tᵀ, and ½ tr Λ(I − TᵀT) beside."""
    state, _ = learned(ANY, means)
    generator = np.random.default_rng(0)
    maps = [generator.normal(size=(4, size)) for size in state.sizes]
    maps = [t / (1.1 * np.linalg.norm(t, 2)) for t in maps]  # contractions
    got = state.absorbed.projected(maps)
    site = got.site(state.reading, (4, 4))
    weights = len(state.site.linear) - sum(state.sizes)
    whole = dense.block_diagonal([*maps, np.eye(weights)])
    np.testing.assert_allclose(site.linear, whole @ state.site.linear, atol=1e-9)
    wanted = whole @ state.site.precision @ whole.T
    np.testing.assert_allclose(site.precision, wanted, rtol=1e-9, atol=1e-9)
    left = np.eye(len(whole.T)) - whole.T @ whole
    lost = -0.5 * np.sum(dense.block_diagonal(_blocks(state)) * left)
    beside = got.beside(state.reading) - state.absorbed.beside(state.reading)
    assert lost < -1e-3
    assert beside == pytest.approx(lost, rel=1e-9)


def _blocks(state):
    """Those of Λ on each latent function, and nothing on the weights: they lose nothing."""
    ends = np.cumsum([0, *state.sizes, len(state.site.linear) - sum(state.sizes)])
    blocks = [state.site.precision[a:b, a:b] for a, b in itertools.pairwise(ends)]
    return [*blocks[:-1], 0 * blocks[-1]]


@OF_MEANS
def test_further_inducing_values_have_nothing_said_of_them(means):
    state, _ = learned(ANY, means)
    wider = tuple(size + more for size, more in zip(state.sizes, (3, 1), strict=True))
    got = state.absorbed.extended(state.sizes, wider).site(state.reading, wider)
    old = np.concatenate([np.arange(7), 10 + np.arange(5), np.arange(16, len(got.linear))])
    np.testing.assert_array_equal(got.linear[old], state.site.linear)
    np.testing.assert_array_equal(got.precision[np.ix_(old, old)], state.site.precision)
    assert np.count_nonzero(got.linear) == np.count_nonzero(state.site.linear)
    assert np.count_nonzero(got.precision) == np.count_nonzero(state.site.precision)


@OF_MEANS
@pytest.mark.parametrize("late", ["Gaussian", "HeteroscedasticGaussian"])
def test_a_further_channel_has_said_nothing_yet(late, means):
    """Of one latent parameter or of two, with more mean functions than any before or fewer."""
    state, _ = learned(ANY, means)
    [other] = channels_of((late,), (Line(),))
    model = replaced(state.model, channels=(*state.model.channels, other))
    wider = state.with_channel(model, other.likelihood.latents)
    np.testing.assert_array_equal(wider.absorbed.count, [*state.absorbed.count, 0.0])
    for part in wider.absorbed.arrays():
        assert not np.any(part[-1])
    assert wider.absorbed.beside(wider.reading) == pytest.approx(
        state.absorbed.beside(state.reading), rel=1e-12
    )
    learner = Learner(None)
    for d in range(len(ANY)):
        for got, wanted in zip(
            learner.predict(wider, TEST, d), learner.predict(state, TEST, d), strict=True
        ):
            np.testing.assert_allclose(got, wanted, atol=1e-9)


def test_sums_and_parts_of_what_was_said():
    """Two batches say what both say together; a part of it says that part."""
    learner = Learner(None)
    names = NORMAL["mixed"]
    blank = start(learner, names, (NONE,))
    rows = [build.rows(*draw(names, seed)) for seed in range(2)]
    one, two = (learner.step(blank, own)[0] for own in rows)
    both, _ = learner.step(one, rows[1])
    pairs = zip((one.absorbed + two.absorbed).arrays(), both.absorbed.arrays(), strict=True)
    for got, wanted in pairs:
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)
    half = both.absorbed.each(lambda part: 0.5 * part)
    assert isinstance(half, Absorbed)
    assert half.beside(both.reading) == pytest.approx(0.5 * both.absorbed.beside(both.reading))


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
    assert turned.absorbed.beside(turned.reading) == pytest.approx(
        state.absorbed.beside(state.reading), rel=1e-6
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
    known = model.state.absorbed
    np.testing.assert_allclose(known.count, [100, 0], rtol=1e-12)
    assert known.energy[0] == state.absorbed.energy[0]
    assert read(model.state.plain, model.state) == pytest.approx(read(state.plain, state), rel=1e-9)
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
    assert model.state.mean_weights.shape == (5, 1)
    for name, before in old.items():
        after = model.predict(x, name)
        np.testing.assert_allclose(after.mean, before.mean, atol=1e-8)
        np.testing.assert_allclose(after.variance, before.variance, atol=1e-8)
    report = model.update({"late": (x, np.digitize(np.sin(x), [-0.5, 0.5]))})
    assert np.isfinite(report.bound)
    np.testing.assert_array_equal(model.state.heard, [30, 30, 30])


# -- files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["linear", "precision", "slack", "count", "energy"])
def test_a_file_with_sites_of_other_sizes_is_refused(field):
    x = np.random.default_rng(0).uniform(0, 3, (40, 2))
    model = sgp.ContinualGP({"a": sgp.Gaussian(), "b": sgp.Poisson()}, latents=2, keep=0)
    model.update({"a": (x, x[:, 0]), "b": (x, np.floor(x[:, 1]))})
    said = model.state.absorbed
    broken = dataclasses.replace(said, **{field: getattr(said, field)[..., :-1]})
    updater, progress = model._version
    progress = dataclasses.replace(progress, state=model.state.replace(absorbed=broken))
    model._version = model._version._replace(updater=updater, progress=progress)
    with pytest.raises(sgp.StreamGPError):
        model.to_bytes()
