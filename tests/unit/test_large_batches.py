"""Batches too large to hold at once, folded in by random parts."""

import numpy as np
import pytest
from tests._reference import build

import streamgp as sgp
from streamgp.data.batch import Parts
from streamgp.inference.dense.learner import DenseLearner
from streamgp.inference.sparse.learner import Learner
from streamgp.inference.sparse.prior import Prior

GENERATOR = np.random.default_rng(0)
X = GENERATOR.uniform(0, 6, 1000)
F = 2 * np.sin(2 * X)
POINTS = sgp.Fixed(np.linspace(0, 6, 14))
KERNEL = [sgp.RBF(1.0, 2.0)]


LEARNERS = {"sparse": Learner, "dense": DenseLearner}


@pytest.fixture
def together(monkeypatch):
    """Sets how many rows are held together."""

    def hold(rows):
        for learner in LEARNERS.values():
            monkeypatch.setattr(learner, "pace", learner.pace._replace(rows=rows))

    return hold


@pytest.fixture
def pair(together):
    """A model that learned a batch at once, and one that learned it in parts; and the reports."""

    def learned(likelihood, y, **settings):
        found = []
        for rows in (4096, 128):
            together(rows)
            model = sgp.ContinualGP(likelihood, **settings)
            found.append((model, model.update(X[:900], y[:900])))
        return found

    return learned


@pytest.mark.parametrize(
    "settings", [{"inducing": POINTS}, {"engine": "dense", "keep": None}], ids=LEARNERS
)
def test_gaussian_channels_lose_nothing(pair, settings):
    y = F + 0.3 * GENERATOR.normal(size=1000)
    (whole, one), (parts, many) = pair(
        sgp.Gaussian(0.3), y, learning=None, latents=KERNEL, **settings
    )
    np.testing.assert_allclose(many.bound, one.bound, rtol=1e-8)
    np.testing.assert_allclose(
        many.log_predictive_rows["y"], one.log_predictive_rows["y"], atol=1e-9
    )
    for name in ("latent_mean", "latent_variance"):
        got, wanted = (getattr(m.predict(X[900:]), name) for m in (parts, whole))
        np.testing.assert_allclose(got, wanted, atol=1e-8)
    assert parts.observations == {"y": 900}


@pytest.mark.parametrize("engine", LEARNERS)
@pytest.mark.parametrize("kind", ["gaussian", "bernoulli"])
def test_learning_in_parts_is_as_good(pair, kind, engine):
    y = F + 0.3 * GENERATOR.normal(size=1000)
    y, likelihood = (y, sgp.Gaussian()) if kind == "gaussian" else (y > 0, sgp.Bernoulli())
    (whole, _), (parts, _) = pair(likelihood, y.astype(float), engine=engine)
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


def halves(y):
    """An early batch of each channel, and a large one."""
    return [{c: (X[rows], v[rows]) for c, v in y.items()} for rows in (slice(99), slice(99, 900))]


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_each_part_is_a_batch_of_its_own(together, name):
    """Scores are those before any part was learned."""
    likelihoods, y = LIKELIHOODS[name]
    settings = {"inducing": POINTS, "learning": None, "latents": KERNEL}
    whole, parts, apart = (sgp.ContinualGP(likelihoods, **settings) for _ in range(3))
    first, then = halves(y)
    for model in (whole, parts, apart):
        model.update(first)
    one = whole.update(then)
    together(128)
    many = parts.update(then)
    names = list(y)
    rows = build.rows(*[(names.index(c), *own) for c, own in then.items()])
    bound = 0.0
    for part in Parts.of(rows, 128, seed=0):
        own = [part.channel == d for d in range(len(names))]
        batch = {c: (part.x[n], part.y[n, 0]) for c, n in zip(names, own, strict=True) if n.any()}
        bound += apart.update(batch).bound
    np.testing.assert_allclose(many.bound, bound, rtol=1e-9)
    for channel in y:
        wanted, got = (model.predict(X[900:], channel) for model in (apart, parts))
        np.testing.assert_allclose(got.latent_mean, wanted.latent_mean, atol=1e-8)
        np.testing.assert_allclose(got.latent_variance, wanted.latent_variance, rtol=1e-7)
        np.testing.assert_allclose(
            many.log_predictive_rows[channel], one.log_predictive_rows[channel], atol=1e-9
        )
    assert parts.observations == dict.fromkeys(y, 900)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_at_fixed_hyperparameters_it_is_about_the_whole_batch(together, name):
    """Sites of rows that are not conjugate are found with the parts before theirs only."""
    likelihoods, y = LIKELIHOODS[name]
    settings = {"inducing": POINTS, "learning": None, "latents": KERNEL}
    whole, parts = (sgp.ContinualGP(likelihoods, **settings) for _ in range(2))
    first, then = halves(y)
    for model in (whole, parts):
        model.update(first)
    one = whole.update(then)
    together(128)
    many = parts.update(then)
    assert many.bound == pytest.approx(one.bound, abs=0.1)
    for channel in y:
        wanted, got = (model.predict(X[900:], channel) for model in (whole, parts))
        off = np.abs(got.latent_mean - wanted.latent_mean)
        assert np.max(off / np.sqrt(wanted.latent_variance)) < 0.1
        np.testing.assert_allclose(got.latent_variance, wanted.latent_variance, rtol=0.1)


@pytest.mark.parametrize("engine", LEARNERS)
def test_points_that_were_dropped_or_rows_that_were_joined_on_the_way(together, engine):
    likelihoods, y = LIKELIHOODS["Bernoulli"]
    own, nlpd = y["y"], []
    for rows in (4096, 128):
        together(rows)
        limit = {"keep": 60} if engine == "dense" else {"inducing": sgp.Adaptive(budget=9)}
        model = sgp.ContinualGP(likelihoods, engine=engine, **limit)
        early = X < 3  # what comes later needs room
        model.update(X[:900][early[:900]], own[:900][early[:900]])
        model.update(X[:900][~early[:900]], own[:900][~early[:900]])
        nlpd.append(-np.mean(model.predict(X[900:]).log_density(own[900:])))
    assert nlpd[1] - nlpd[0] < 0.005


def test_no_more_rows_are_looked_at_together(together, monkeypatch):
    likelihoods, y = LIKELIHOODS["Poisson"]
    together(128)
    model = sgp.ContinualGP(likelihoods, engine="sparse")
    model.update(X[:100], y["y"][:100])
    sizes, cross = [], Prior.cross
    monkeypatch.setattr(Prior, "cross", lambda self, x: sizes.append(len(x)) or cross(self, x))
    model.update(X[100:], y["y"][100:])
    assert max(sizes) == 128


def test_parts_are_all_rows_and_the_same_each_time():
    rows = build.rows((0, X, F))
    parts = Parts.of(rows, 300, seed=3)
    once, again = list(parts), list(parts)
    assert [part.size for part in once] == [300, 300, 300, 100]
    assert all(np.array_equal(a.x, b.x) for a, b in zip(once, again, strict=True))
    np.testing.assert_array_equal(np.sort(np.concatenate([p.x[:, 0] for p in once])), np.sort(X))
