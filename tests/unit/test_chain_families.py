"""Every likelihood family over time, and samples that come one at a time."""

import numpy as np
import pytest
from tests import chains, families
from tests._reference import markov

import streamgp as sgp

X = 0.3 * np.arange(70.0)
TEST = np.linspace(-2, 25, 16)
SHIPPED = [name for name in families.FAMILIES if not name.startswith("a user's")]


def moments(model, x=TEST):
    """Latent means and variances of all channels."""
    found = [model.predict(x, name) for name in model.channels]
    return [part for own in found for part in (own.latent_mean, own.latent_variance)]


def assert_same(one, other, tolerance):
    for got, wanted in zip(moments(one), moments(other), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)


# -- all families ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", families.FAMILIES)
def test_every_family_learns_predicts_and_is_saved(name, tmp_path):
    family = families.FAMILIES[name]
    model = sgp.ContinualGP(
        family.likelihood, latents=sgp.Matern32(), learning=sgp.VEM(rounds=1, evaluations=2),
        weight_uncertainty=False,
    )  # fmt: skip
    reports = [model.update(X[k : k + 6], family.rows(6), learn=k > 0) for k in (0, 6)]
    assert model.engine == "chain"
    assert np.isfinite([report.bound for report in reports]).all()
    mean, covariance = model.learner.predict(model.state, TEST[:, None], 0)
    assert np.isfinite(mean).all()
    assert np.isfinite(covariance).all()
    assert np.all(np.linalg.eigvalsh(covariance) > 0)
    prediction = model.predict(TEST)
    if "student" not in name:  # whose tails may turn out so heavy that it has no mean
        assert np.isfinite(prediction.mean).all()
        assert np.all(prediction.variance > 0)
    # What was observed there is less open than what lies far away, if the data told anything.
    near, far = model.predict([2.0, 500.0]).latent_variance.reshape(2, -1)
    assert np.sum(near) <= np.sum(far) * (1 + 1e-9)
    if name in SHIPPED:
        goes_on_from_a_file(model, family, tmp_path / "model.sgp")


def goes_on_from_a_file(model, family, path):
    model.save(path)
    again = sgp.load(path)
    assert again.engine == "chain"
    assert_same(again, model, 1e-12)
    for one in (model, again):
        one.update(X[4:8] + 0.1, family.rows(4), learn=False)
        one.update_many(X[12:16], family.rows(4))
    assert_same(again, model, 1e-10)


# -- the other engines -----------------------------------------------------------------------------


def others(x):
    """The settings of exact engines: rows anywhere, and a point at every row."""
    return {"dense": {}, "sparse": {"inducing": sgp.Fixed(x)}}


@pytest.mark.parametrize(
    ("likelihood", "draw"),
    [
        (sgp.Bernoulli(), lambda g, f: (g.uniform(size=len(f)) < 1 / (1 + np.exp(-2 * f))) * 1.0),
        (sgp.Poisson(), lambda g, f: g.poisson(np.exp(1 + f)) * 1.0),
    ],
    ids=["bernoulli", "poisson"],
)
@pytest.mark.parametrize("kernel", [sgp.Matern12(1.0, 1.0), sgp.Matern32(1.0, 1.0)])
@pytest.mark.parametrize("engine", others(X))
def test_one_batch_is_that_of_other_engines(engine, likelihood, draw, kernel):
    y = draw(np.random.default_rng(0), np.sin(X))
    options = {"latents": kernel, "learning": None, "scale": False}
    chain = sgp.ContinualGP(likelihood, engine="chain", **options)
    other = sgp.ContinualGP(likelihood, engine=engine, **others(X)[engine], **options)
    reports = [model.update(X, y) for model in (chain, other)]
    assert (chain.engine, other.engine) == ("chain", engine)
    assert_same(chain, other, 1e-5)
    np.testing.assert_allclose(reports[0].bound, reports[1].bound, rtol=1e-5)
    for one in ("mean", "variance"):
        got, wanted = (getattr(model.predict(TEST), one) for model in (chain, other))
        np.testing.assert_allclose(got, wanted, rtol=1e-4)


@pytest.mark.parametrize("engine", others(X))
def test_several_families_at_once_are_those_of_other_engines(engine):
    generator = np.random.default_rng(1)
    x = X[:40]
    data = {
        "real": (x, np.sin(x) + 0.1 * generator.normal(size=40)),
        "count": (x[::2], generator.poisson(np.exp(np.cos(x[::2]))) * 1.0),
        "kind": (x[1::3], np.arange(13) % 3.0),
    }
    options = {
        "latents": [sgp.Matern32(1.0), sgp.Matern52(2.0)], "learning": None,
        "weight_uncertainty": False,
    }  # fmt: skip
    channels = {
        "real": sgp.Gaussian(noise=0.2), "count": sgp.Poisson(), "kind": sgp.Categorical(3)
    }  # fmt: skip
    weights = np.random.default_rng(2).normal(size=(3, 2))
    options["mixing"] = {
        "real": sgp.fixed(weights[:1]), "count": sgp.fixed(weights[1:2]), "kind": sgp.fixed(weights)
    }  # fmt: skip
    chain = sgp.ContinualGP(channels, engine="chain", **options)
    other = sgp.ContinualGP(channels, engine=engine, **others(x)[engine], **options)
    for model in (chain, other):
        model.update(data)
    assert_same(chain, other, 1e-4)


# -- one sample at a time --------------------------------------------------------------------------

SAMPLES = {
    "gaussian": (sgp.Gaussian(noise=0.3), np.sin(X)),
    "poisson": (sgp.Poisson(), np.floor(2 + 2 * np.sin(X))),
    "bernoulli": (sgp.Bernoulli(), (np.sin(X) > 0.3) * 1.0),
    "categorical": (sgp.Categorical(3), np.digitize(np.sin(X), [-0.5, 0.5]) * 1.0),
}
ORDERS = {
    "in order": np.arange(10, 40),
    "any order": np.random.default_rng(3).permutation(np.arange(10, 40)),
    "late": np.r_[25:40, 10:25],
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", SAMPLES)
def test_many_samples_are_as_many_updates(name, order):
    likelihood, y = SAMPLES[name]
    one, many = (
        sgp.ContinualGP(likelihood, latents=sgp.Matern32(1.0), learning=None, scale=False)
        for _ in range(2)
    )
    scores = []
    for model in (one, many):
        model.update(X[:10], y[:10])
    for n in ORDERS[order]:
        report = one.update(X[[n]], y[[n]])
        scores.append(report.log_predictive_rows["y"][0])
    report = many.update_many(X[ORDERS[order]], y[ORDERS[order]])
    np.testing.assert_allclose(report.log_predictive_rows["y"], scores, rtol=1e-7, atol=1e-7)
    assert_same(many, one, 1e-7)
    assert many.observations == one.observations


def test_many_samples_of_several_channels():
    channels = {name: likelihood for name, (likelihood, _) in SAMPLES.items()}
    generator = np.random.default_rng(4)
    one, many = (
        sgp.ContinualGP(
            channels, latents=[sgp.Matern32(1.0), sgp.Matern52(1.5)], learning=None, scale=False
        )
        for _ in range(2)
    )
    for model in (one, many):
        model.update({name: (X[:6], y[:6]) for name, (_, y) in SAMPLES.items()})
    rows = generator.permutation(np.arange(6, 26))
    names = generator.choice(list(SAMPLES), 20)
    y = np.array([SAMPLES[name][1][n] for name, n in zip(names, rows, strict=True)])
    for n, name, value in zip(rows, names, y, strict=True):
        one.update({str(name): (X[[n]], [value])})
    many.update_many(X[rows], y, names)
    assert_same(many, one, 1e-7)


def test_samples_close_together_are_exact():
    world = chains.one("matern32")
    x = np.sort(np.random.default_rng(5).uniform(0, 10, 300))
    rows = chains.draw(world, x)
    model = chains.model_of(world, "matern32")
    chains.fed(model, rows.take(slice(5)))
    model.update_many(x[5:], rows.y[5:], ["a"] * 295)
    found = markov.exact(world, rows, TEST, np.zeros(len(TEST), int))
    mean, variance = chains.moments(model, TEST, np.zeros(len(TEST), int))
    np.testing.assert_allclose(mean, found.mean, atol=1e-8)
    np.testing.assert_allclose(variance, np.diag(found.covariance), atol=1e-8)
    assert max(model.open_variance) == 0
