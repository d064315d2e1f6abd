"""Batches too large to hold at once, folded in by random parts."""

import dataclasses

import numpy as np
import pytest
from tests._reference import build

import streamgp as sgp
from streamgp.data.batch import Parts
from streamgp.inference.large_batch import LargeBatch
from streamgp.inference.sparse.learner import Learner
from streamgp.inference.sparse.prior import Prior
from streamgp.inference.vem import VEM, Options
from streamgp.model.means import Constant
from streamgp.parameters import Positive, free_vector, with_free

GENERATOR = np.random.default_rng(0)
X = GENERATOR.uniform(0, 6, 1000)
F = 2 * np.sin(2 * X)
POINTS = sgp.Fixed(np.linspace(0, 6, 14))
KERNEL = [sgp.RBF(1.0, 2.0)]


def pair(likelihood, y, **settings):
    whole = sgp.ContinualGP(likelihood, batch_rows=4096, **settings)
    parts = sgp.ContinualGP(likelihood, batch_rows=128, **settings)
    return (whole, whole.update(X[:900], y[:900])), (parts, parts.update(X[:900], y[:900]))


def test_gaussian_channels_lose_nothing():
    y = F + 0.3 * GENERATOR.normal(size=1000)
    (whole, one), (parts, many) = pair(
        sgp.Gaussian(0.3), y, inducing=POINTS, learning=None, latents=KERNEL
    )
    np.testing.assert_allclose(many.bound, one.bound, rtol=1e-9)
    np.testing.assert_allclose(
        many.log_predictive_rows["y"], one.log_predictive_rows["y"], atol=1e-9
    )
    for name in ("latent_mean", "latent_variance"):
        got, wanted = (getattr(m.predict(X[900:]), name) for m in (parts, whole))
        np.testing.assert_allclose(got, wanted, atol=1e-8)
    assert parts.observations == {"y": 900}


def test_gaussian_channels_pay_for_no_further_pass(monkeypatch):
    monkeypatch.setattr(Learner, "revise", None)  # would fail if it were called
    y = F + 0.3 * GENERATOR.normal(size=1000)
    counts = GENERATOR.poisson(np.exp(F))
    model = sgp.ContinualGP({"a": sgp.Gaussian(), "b": sgp.Poisson()}, batch_rows=128)
    model.update({"b": (X[:50], counts[:50])})
    model.update({"a": (X, y)}, learn=False)
    assert model.observations == {"a": 1000, "b": 50}


@pytest.mark.parametrize("kind", ["gaussian", "bernoulli"])
def test_learning_in_parts_is_as_good(kind):
    y = F + 0.3 * GENERATOR.normal(size=1000)
    y, likelihood = (y, sgp.Gaussian()) if kind == "gaussian" else (y > 0, sgp.Bernoulli())
    (whole, _), (parts, _) = pair(likelihood, y.astype(float))
    nlpd = [-np.mean(m.predict(X[900:]).log_density(y[900:])) for m in (whole, parts)]
    assert nlpd[1] - nlpd[0] < 0.01


# -- channels that are not conjugate ---------------------------------------------------------------

LIKELIHOODS = {
    "Bernoulli": ({"y": sgp.Bernoulli()}, {"y": (F + GENERATOR.logistic(size=1000) > 0) * 1.0}),
    "Poisson": ({"y": sgp.Poisson()}, {"y": GENERATOR.poisson(np.exp(F)) * 1.0}),
    "Categorical": ({"y": sgp.Categorical(3)}, {"y": np.digitize(F, [-0.7, 0.7]) * 1.0}),
    "Gaussian and Poisson": (
        {"y": sgp.Gaussian(0.3), "n": sgp.Poisson()},
        {"y": F + 0.3 * GENERATOR.normal(size=1000), "n": GENERATOR.poisson(np.exp(F)) * 1.0},
    ),
}


def precise(likelihoods, batch_rows, **settings):
    """A model at fixed hyperparameters whose E steps go on to the end."""
    model = sgp.ContinualGP(
        likelihoods,
        batch_rows=batch_rows,
        inducing=POINTS,
        learning=None,
        latents=KERNEL,
        **settings,
    )
    updater, progress = model._version
    learner = dataclasses.replace(updater.engines.settings, e_tolerance=1e-10)
    engines = dataclasses.replace(updater.engines, settings=learner)
    updater = dataclasses.replace(updater, engines=engines)
    model._version = type(model._version)(updater, progress)
    return model


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_at_fixed_hyperparameters_it_is_the_whole_batch(name):
    likelihoods, y = LIKELIHOODS[name]
    first, then = (
        {c: (X[rows], v[rows]) for c, v in y.items()} for rows in (slice(99), slice(99, 900))
    )
    models = precise(likelihoods, 4096), precise(likelihoods, 128)
    for model in models:
        model.update(first)
    one, many = (model.update(then) for model in models)
    np.testing.assert_allclose(many.bound, one.bound, atol=1e-6)
    for channel in y:
        whole, parts = (model.predict(X[900:], channel) for model in models)
        np.testing.assert_allclose(parts.latent_mean, whole.latent_mean, atol=1e-5)
        np.testing.assert_allclose(parts.latent_variance, whole.latent_variance, rtol=1e-4)
        np.testing.assert_allclose(
            many.log_predictive_rows[channel], one.log_predictive_rows[channel], atol=1e-6
        )
    assert models[1].observations == dict.fromkeys(y, 900)


def test_a_bound_at_the_usual_tolerance_is_that_of_the_whole_batch():
    likelihoods, y = LIKELIHOODS["Poisson"]
    (_, one), (_, many) = pair(
        likelihoods["y"], y["y"], inducing=POINTS, learning=None, latents=KERNEL
    )
    assert abs(many.bound - one.bound) < 1e-3


def test_points_that_were_dropped_on_the_way():
    likelihoods, y = LIKELIHOODS["Bernoulli"]
    own, nlpd = y["y"], []
    for batch_rows in (4096, 128):
        model = sgp.ContinualGP(likelihoods, inducing=sgp.Adaptive(budget=9), batch_rows=batch_rows)
        early = X < 3  # what comes later needs room
        model.update(X[:900][early[:900]], own[:900][early[:900]])
        model.update(X[:900][~early[:900]], own[:900][~early[:900]])
        nlpd.append(-np.mean(model.predict(X[900:]).log_density(own[900:])))
    assert nlpd[1] - nlpd[0] < 0.005


def test_no_more_than_batch_rows_are_looked_at_together(monkeypatch):
    likelihoods, y = LIKELIHOODS["Poisson"]
    learning = sgp.VEM(cells=0)  # cells are seen all together
    model = sgp.ContinualGP(likelihoods, batch_rows=128, engine="dense", learning=learning)
    model.update(X[:100], y["y"][:100])
    sizes, cross = [], Prior.cross
    monkeypatch.setattr(Prior, "cross", lambda self, x: sizes.append(len(x)) or cross(self, x))
    model.update(X[100:], y["y"][100:])
    assert max(sizes) == 128


# -- the functional core ---------------------------------------------------------------------------

Z = np.linspace(0, 6, 9)


def start(channels, trainable=False):
    own = [
        build.channel(likelihood, weights, trainable=trainable, mean=Constant(), spread=2.0)
        for likelihood, weights in channels
    ]
    return build.model(own, (0.9, 1.3), trainable=True)


CASES = {
    "Poisson": ([(sgp.Poisson(), [[1.0, 0.5]])], lambda f: [GENERATOR.poisson(np.exp(f))]),
    "NegativeBinomial": (  # with a parameter that is remembered
        [(sgp.NegativeBinomial(Positive(2.0)), [[1.0, 0.5]])],
        lambda f: [GENERATOR.poisson(np.exp(f))],
    ),
    "Categorical and Gaussian": (
        [
            (sgp.Categorical(3), [[1.0, 0.2], [0.1, 1.0], [-0.5, 0.3]]),
            (sgp.Gaussian(0.3), [[1.0, 0.0]]),
        ],
        lambda f: [np.digitize(f, [-0.5, 0.5]), f + 0.3 * GENERATOR.normal(size=len(f))],
    ),
}


def rows_of(draw, x):
    return build.rows(*[(d, x, y * 1.0) for d, y in enumerate(draw(np.sin(2 * x)))])


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("trainable", [False, True], ids=["fixed weights", "trained weights"])
def test_what_is_kept_is_what_a_step_with_all_rows_keeps(name, trainable):
    channels, draw = CASES[name]
    learner = Learner(VEM(cells=0), e_tolerance=1e-11, e_rounds=3000)
    before = learner.init(start(channels, trainable), build.points(Z, Z))
    before, _ = learner.step(before, rows_of(draw, X[:30]), learn=False, remember=True)
    rows, theta = rows_of(draw, X[30:130]), free_vector(before.model)
    other = with_free(before.model, theta + 0.1)
    wanted, one = learner.step(before, rows, other, learn=False, remember=True)
    parts, streamed = Parts.of(rows, 41, seed=0), before
    for part in parts:
        streamed, _ = learner.step(streamed, part, other, learn=False)
    got, many = learner.revise(before, streamed, parts, remember=True)
    assert many.finite
    np.testing.assert_allclose(many.bound, one.bound, rtol=1e-8)
    for mine, its in zip(got.past.arrays(), wanted.past.arrays(), strict=True):
        np.testing.assert_allclose(mine, its, atol=2e-4 * (1 + np.abs(its).max()))
    gradients = got.memory.gradient, wanted.memory.gradient
    np.testing.assert_allclose(*gradients, atol=2e-4 * (1 + np.abs(gradients[1]).max()))
    assert np.abs(gradients[0] - streamed.memory.gradient).max() > 1e-2
    np.testing.assert_array_equal(got.heard, wanted.heard)


def test_sites_after_shortened_steps_are_those_of_the_sum():
    """Rows whose whole steps lower the bound, so that their sites come from several places."""
    model = start([(sgp.HeteroscedasticGaussian(), [[1.0, 0.2], [0.1, 1.0]])])
    state = Learner().init(model, build.points(Z, Z))
    x = X[:300]
    y = np.sin(2 * x) + np.exp(np.sin(x)) * 0.2 * GENERATOR.normal(size=300)
    batch = LargeBatch(state, Parts.of(build.rows((0, x, y)), 128, 0), Options(7, 0.0))
    fit, _ = batch.fitted(state.posterior)
    assert len(fit.origins) > 1
    site = batch.added(fit, lambda after: after, remember=False, kernels=False).site
    for got, wanted in ((site.linear, fit.said.linear), (site.precision, fit.said.precision)):
        np.testing.assert_allclose(got, wanted, rtol=1e-7, atol=1e-9 * np.abs(wanted).max())


def test_parts_are_all_rows_and_the_same_each_time():
    rows = build.rows((0, X, F))
    parts = Parts.of(rows, 300, seed=3)
    once, again = list(parts), list(parts)
    assert [part.size for part in once] == [300, 300, 300, 100]
    assert all(np.array_equal(a.x, b.x) for a, b in zip(once, again, strict=True))
    np.testing.assert_array_equal(np.sort(np.concatenate([p.x[:, 0] for p in once])), np.sort(X))
