"""Rows over any inputs: exact, in any order and in any parts, and what becomes of many."""

import dataclasses

import numpy as np
import pytest
from tests._reference import dense
from tests._reference.build import channel, gaussian, model, one_gaussian, rows

import streamgp as sgp
from streamgp.inference.dense.joining import limited
from streamgp.inference.dense.learner import DenseLearner
from streamgp.inference.dense.objective import Objective
from streamgp.inference.dense.whole import Whole
from streamgp.inference.kept import ROOM
from streamgp.inference.vem import VEM
from streamgp.parameters import free_vector

NOISE, LENGTH, VARIANCE = 0.3, 1.3, 1.7
STILL = DenseLearner(None, 200, 1e-10, weight_uncertainty=False)


def drawn(count, seed=0, width=2):
    generator = np.random.default_rng(seed)
    x = generator.uniform(-2, 2, (count, width))
    y = np.sin(1.5 * x[:, 0]) + 0.5 * x[:, -1] + NOISE * generator.normal(size=count)
    return x, y


def prior(a, b):
    return dense.rbf(a, b, LENGTH, VARIANCE)


def exact(x, y, at, noise=NOISE):
    noises = np.full(len(y), noise**2)
    return dense.exact_gp(prior(x, x), prior(x, at), prior(at, at), y, noises)


def lone(noise=NOISE):
    return one_gaussian(LENGTH, VARIANCE, noise, width=2)


def learned(parts, learner=STILL, wrapped=None):
    state = learner.begin(lone() if wrapped is None else wrapped, parts[0].x.shape[1])
    for part in parts:
        state, info = learner.step(state, part, learn=False)
        assert info.finite
    return state


def at_zero(x, y):
    return rows((0, x, y))


AT = drawn(15, seed=9)[0]


@pytest.mark.parametrize("parts", [1, 2, 7])
@pytest.mark.parametrize("order", [1, 2])
def test_the_posterior_is_that_of_the_exact_process(parts, order):
    x, y = drawn(60)
    mixed = np.random.default_rng(order).permutation(60)
    state = learned([at_zero(x[own], y[own]) for own in np.array_split(mixed, parts)])
    mean, covariance, _ = exact(x, y, AT)
    got, spread = STILL.predict(state, AT, 0)
    np.testing.assert_allclose(got[:, 0], mean, atol=1e-8)
    np.testing.assert_allclose(spread[:, 0, 0], np.diagonal(covariance), atol=1e-8)
    joint = STILL.predict_joint(state, AT, [0])
    np.testing.assert_allclose(joint[0], mean, atol=1e-8)
    np.testing.assert_allclose(joint[1], covariance, atol=1e-8)


def test_single_rows_end_as_one_batch_and_are_scored_before():
    x, y = drawn(90)
    state = STILL.begin(lone(), 2)
    scores = []
    for n in range(90):
        state, info = STILL.step(state, at_zero(x[n : n + 1], y[n : n + 1]), learn=False)
        scores.append(info.log_predictive[0])
    streamed, scored = STILL.filter_scored(STILL.begin(lone(), 2), at_zero(x, y))
    mean, covariance, evidence = exact(x, y, AT)
    for got in (state, streamed):
        np.testing.assert_allclose(STILL.predict(got, AT, 0)[0][:, 0], mean, atol=1e-8)
        joint = STILL.predict_joint(got, AT, [0])[1]
        np.testing.assert_allclose(joint, covariance, atol=1e-8)
    np.testing.assert_allclose(np.sum(scores), evidence, atol=1e-7)
    np.testing.assert_allclose(scored.log_predictive, scores, atol=1e-8)


@pytest.mark.parametrize("noise", [1e-3, 1e-2, 10.0])
def test_bounds_add_up_to_the_evidence(noise):
    x, y = drawn(40)
    learner, state, total = STILL, STILL.begin(lone(noise), 2), 0.0
    for own in np.array_split(np.arange(40), 4):
        state, info = learner.step(state, at_zero(x[own], y[own]), learn=False)
        total += info.bound
    evidence = exact(x, y, AT, noise)[2]
    assert total == pytest.approx(evidence, rel=1e-7, abs=1e-6)
    whole = Whole.of(state, at_zero(x[:0], y[:0]), state.model)
    assert whole.known()[1] == pytest.approx(evidence, rel=1e-7, abs=1e-6)


def two_channels(trainable=False):
    return model(
        [
            channel(gaussian(0.2, trainable), [[1.0, 0.4]], trainable=trainable),
            channel(gaussian(0.5, trainable), [[-0.3, 0.8]], offset=1.0, trainable=trainable),
        ],
        lengthscales=(1.0, 2.0),
        width=2,
        trainable=trainable,
    )


def test_channels_that_mix_latent_functions():
    x, y = drawn(50, seed=3)
    where = np.arange(50) % 2
    batch = rows((0, x[where == 0], y[where == 0]), (1, x[where == 1], 1 + y[where == 1]))
    state = learned(
        [batch.take(np.arange(0, 50, 2)), batch.take(np.arange(1, 50, 2))], wrapped=two_channels()
    )
    weights, lengths = np.array([[1.0, 0.4], [-0.3, 0.8]]), (1.0, 2.0)

    def covariance(a, own, b, other):
        parts = [dense.rbf(a, b, length) for length in lengths]
        return sum(np.outer(weights[own, q], weights[other, q]) * parts[q] for q in range(2))

    known, values = batch.x, batch.y[:, 0] - batch.channel
    noises = np.array([0.2, 0.5])[batch.channel] ** 2
    for d in range(2):
        at = np.full(len(AT), d)
        mean, spread, _ = dense.exact_gp(
            covariance(known, batch.channel, known, batch.channel),
            covariance(known, batch.channel, AT, at),
            covariance(AT, at, AT, at),
            values,
            noises,
        )
        got = STILL.predict(state, AT, d)
        np.testing.assert_allclose(got[0][:, 0], mean + d, atol=1e-8)
        np.testing.assert_allclose(got[1][:, 0, 0], np.diagonal(spread), atol=1e-8)


def test_a_count_that_is_learned_from_is_that_of_variational_inference():
    generator = np.random.default_rng(1)
    x = generator.uniform(-2, 2, (30, 2))
    y = generator.poisson(np.exp(np.sin(x[:, 0]) + 0.5)).astype(float)
    wrapped = model([channel(sgp.Poisson(), [[1.0]])], lengthscales=(LENGTH,), width=2)
    state = learned([at_zero(x, y)], dataclasses.replace(STILL, e_tolerance=1e-12), wrapped)
    k = dense.rbf(x, x, LENGTH)

    def curvature(y, mean, variance):
        rate = np.exp(mean + 0.5 * variance)
        return y - rate, rate

    mean, covariance = dense.variational_gp(k, y, curvature)[:2]
    got = STILL.predict(state, x, 0)
    np.testing.assert_allclose(got[0][:, 0], mean, atol=2e-5)
    np.testing.assert_allclose(got[1][:, 0, 0], np.diagonal(covariance), atol=2e-5)


FAMILIES = {
    "gaussian": ([sgp.Gaussian(0.3)], None),
    "counts": ([sgp.Poisson()], None),
    "mixed": ([sgp.Gaussian(0.3), sgp.Bernoulli(), sgp.HeteroscedasticGaussian()], 3),
    "outliers": ([sgp.StudentT(), sgp.Gaussian(0.3)], 2),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_gradients_are_those_of_the_bound(name):
    families, latents = FAMILIES[name]
    generator = np.random.default_rng(4)
    x = generator.uniform(-2, 2, (36, 2))
    named = {f"c{d}": family for d, family in enumerate(families)}
    data = {}
    for d, (key, family) in enumerate(named.items()):
        own = x[d :: len(named)]
        signal = np.sin(1.5 * own[:, 0]) + 0.3 * generator.normal(size=len(own))
        value = {"Poisson": np.floor(np.exp(signal)), "Bernoulli": (signal > 0) * 1.0}
        data[key] = own, value.get(type(family).__name__, signal)
    made = sgp.ContinualGP(named, latents=latents, learning=VEM(evaluations=2))
    made.update(data)
    state = made.state
    none = at_zero(x[:0], np.zeros(0))._replace(names=tuple(named))
    none = none._replace(y=np.zeros((0, state.kept.y.shape[1])))
    whole = Whole.of(state, none, state.model)
    count = np.random.default_rng(5).uniform(1, 3, state.size)
    kept = dataclasses.replace(whole.kept, count=count)
    batch = kept.batch(whole.model)
    objective = Objective(state.model, batch, kept.sites(batch), whole.beliefs())
    theta = free_vector(state.model)
    theta = theta + 0.05 * np.random.default_rng(6).normal(size=len(theta))
    _, gradient = objective.bound(theta)
    step = 1e-4
    differences = [
        (objective.bound(theta + e)[0] - objective.bound(theta - e)[0]) / (2 * step)
        for e in step * np.eye(len(theta))
    ]
    np.testing.assert_allclose(gradient, differences, rtol=2e-4, atol=2e-4)


# -- more rows than there may be -------------------------------------------------------------------


def test_rows_are_joined_beyond_the_limit_and_little_is_lost():
    x, y = drawn(900, seed=5)
    model = sgp.ContinualGP(sgp.Gaussian(), keep=200)
    every = sgp.ContinualGP(sgp.Gaussian(), keep=None)
    for own in np.array_split(np.arange(900), 9):
        model.update(x[own], y[own])
        every.update(x[own], y[own])
    assert model.kept_rows <= ROOM * 200
    assert every.kept_rows == 900
    report = model.update(x[:1], y[:1], learn=False)
    every.update(x[:1], y[:1], learn=False)
    assert (report.kept_rows, report.kept_of) == (model.kept_rows, 901)
    assert report.kept_bytes == sum(c.nbytes for c in model.state.kept.columns())
    assert f"{report.kept_rows} kept rows for 901 observations" in str(report)
    kept = model.state.kept
    assert kept.count.sum() == pytest.approx(901)
    held = drawn(400, seed=6)
    few, many = (-np.mean(m.predict(held[0]).log_density(held[1])) for m in (model, every))
    assert few < many + 0.02
    noise = model.hyperparameters["channels"]["y"]["noise"]
    assert noise == pytest.approx(NOISE, rel=0.1)


def test_twins_are_joined_without_loss():
    x, y = drawn(40)
    twice = np.concatenate([x, x]), np.concatenate([y, y + 0.1])
    state = learned([at_zero(*twice)])
    fewer = limited(state, 60)
    assert fewer.size == 60
    for at in (AT, x):
        for mine, theirs in zip(
            STILL.predict(fewer, at, 0), STILL.predict(state, at, 0), strict=True
        ):
            np.testing.assert_allclose(mine, theirs, atol=1e-7)
    none = at_zero(x[:0], y[:0])
    bounds = [Whole.of(own, none, own.model).known()[1] for own in (state, fewer)]
    assert bounds[1] == pytest.approx(bounds[0], abs=1e-6)


def test_rows_that_do_not_add_up_are_joined_as_sites():
    generator = np.random.default_rng(7)
    x = generator.uniform(-2, 2, (300, 2))
    y = (np.sin(2 * x[:, 0]) + 0.5 * generator.normal(size=300) > 0) * 1.0
    few, every = (sgp.ContinualGP(sgp.Bernoulli(), keep=keep) for keep in (100, None))
    for own in np.array_split(np.arange(300), 3):
        few.update(x[own], y[own])
        every.update(x[own], y[own])
    assert few.kept_rows <= ROOM * 100
    kept = few.state.kept
    joined = np.isnan(kept.y[:, 0])
    assert joined.any()
    assert kept.count.sum() == pytest.approx(300)
    assert np.all(kept.precision[joined] >= 0)
    held = generator.uniform(-2, 2, (300, 2))
    mine, theirs = (m.predict(held).mean for m in (few, every))
    assert np.max(np.abs(mine - theirs)) < 0.15
    again = sgp.from_bytes(few.to_bytes())
    np.testing.assert_allclose(again.predict(held).mean, mine, atol=1e-9)


def test_the_first_batch_decides_nothing():
    """A sensor that is still at first, and then alive."""
    generator = np.random.default_rng(8)
    x = generator.uniform(-2, 2, (240, 2))
    y = np.sin(2 * x[:, 0]) * x[:, 1] + 0.1 * generator.normal(size=240)
    y[:40] = 1e-3 * generator.normal(size=40)
    model, alive = sgp.ContinualGP(sgp.Gaussian()), sgp.ContinualGP(sgp.Gaussian())
    for own in np.array_split(np.arange(240), 6):
        model.update(x[own], y[own])
    alive.update(x, y)
    at = generator.uniform(-2, 2, (200, 2))
    wanted = np.sin(2 * at[:, 0]) * at[:, 1] + 0.1 * generator.normal(size=200)
    mine, theirs = (-np.mean(m.predict(at).log_density(wanted)) for m in (model, alive))
    assert mine < theirs + 0.1


def test_compacting_keeps_no_row_and_what_they_said():
    x, y = drawn(200)
    model = sgp.ContinualGP(sgp.Gaussian())
    model.update(x, y)
    before = model.predict(AT)
    model.compact()
    assert (model.engine, model.kept_rows) == ("sparse", 0)
    after = model.predict(AT)
    np.testing.assert_allclose(after.mean, before.mean, atol=0.02)
    np.testing.assert_allclose(after.variance, before.variance, rtol=0.05)
    model.update(x[:20], y[:20])
    assert model.kept_rows == 0
    assert sgp.from_bytes(model.to_bytes()).engine == "sparse"


def test_chains_are_compacted_too():
    t = np.linspace(0, 10, 120)
    model = sgp.ContinualGP(sgp.Gaussian(), latents=sgp.Matern52())
    model.update(t, np.sin(t) + 0.1 * np.cos(40 * t))
    before = model.predict(t).mean
    model.compact()
    assert model.engine == "sparse"
    np.testing.assert_allclose(model.predict(t).mean, before, atol=0.03)


def test_a_model_without_data_is_compacted():
    model = sgp.ContinualGP(sgp.Gaussian())
    model.compact()
    model.update(*drawn(30))
    assert (model.engine, model.kept_rows) == ("sparse", 0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"keep": -1}, "a number of rows"),
        ({"keep": 10, "inducing": sgp.Adaptive()}, "inducing points, which keep none"),
        ({"engine": "dense", "keep": 0}, "which keeps rows"),
        ({"engine": "dense", "inducing": sgp.Adaptive()}, "which keeps rows"),
    ],
)
def test_settings_that_contradict_each_other(settings, message):
    with pytest.raises(sgp.ConfigurationError, match=message):
        sgp.ContinualGP(sgp.Gaussian(), **settings)
