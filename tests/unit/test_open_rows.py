"""Rows that stay open for a while: single samples are learned as well as all data at once."""

import dataclasses
import itertools

import numpy as np
import pytest
from tests._reference.dense import variational_gp

import streamgp as sgp
from streamgp.errors import ConfigurationError, FileError

LENGTH, PER_UNIT = 30, 5
X = np.arange(LENGTH * PER_UNIT) / PER_UNIT
TEST = np.linspace(-1, 32, 23)


def prior():
    r = np.sqrt(3) * np.abs(X[:, None] - X)
    return (1 + r) * np.exp(-r)


def truth(seed):
    return np.linalg.cholesky(prior() + 1e-9 * np.eye(len(X))) @ seed.normal(size=len(X))


def poisson(y, mean, variance):
    rate = np.exp(mean + variance / 2)
    return y - rate, rate


def bernoulli(y, mean, variance):
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    chance = 1 / (1 + np.exp(-(mean[:, None] + np.sqrt(variance)[:, None] * nodes)))
    weights = weights / weights.sum()
    return y - chance @ weights, (chance * (1 - chance)) @ weights


def draw(generator, name, f):
    if name == "poisson":
        return generator.poisson(np.exp(f)) * 1.0
    return (generator.uniform(size=len(f)) < 1 / (1 + np.exp(-f))) * 1.0


FAMILIES = {"poisson": (sgp.Poisson(), poisson), "bernoulli": (sgp.Bernoulli(), bernoulli)}


def model_of(likelihood, **options):
    options = {"learning": None, "scale": False, "mean": None, "engine": "chain"} | options
    return sgp.ContinualGP(likelihood, latents=sgp.Matern32(1.0, 1.0), **options)


def loss(f, mean, variance):
    """The mean negative log-density of f."""
    return np.mean(0.5 * np.log(2 * np.pi * variance) + 0.5 * (f - mean) ** 2 / variance)


def loss_of(model, f):
    found = model.predict(X)
    return loss(f, found.latent_mean.ravel(), found.latent_variance.ravel())


@pytest.mark.parametrize("name", FAMILIES)
def test_single_samples_are_learned_as_well_as_all_data_at_once(name):
    likelihood, curvature = FAMILIES[name]
    generator = np.random.default_rng(0)
    f = truth(generator)
    y = draw(generator, name, f)
    mean, covariance = variational_gp(prior() + 1e-9 * np.eye(len(X)), y, curvature)
    offline = loss(f, mean, np.diag(covariance))
    singly, together, closed = (model_of(likelihood, open_rows=n) for n in (20, 20, 0))
    for k in range(len(X)):
        singly.update(X[[k]], y[[k]])
    together.update_many(X, y)
    closed.update_many(X, y)
    assert abs(loss_of(singly, f) - offline) < 1e-3
    assert abs(loss_of(together, f) - offline) < 1e-3
    assert loss_of(closed, f) > offline + 2e-3  # what the window is for


def few(seed=1, count=12):
    generator = np.random.default_rng(seed)
    return X[:count], generator.poisson(2.0, count) * 1.0


def test_a_window_of_all_rows_gives_the_posterior_and_bound_of_one_batch():
    x, y = few()
    whole, singly = model_of(sgp.Poisson(), open_rows=50), model_of(sgp.Poisson(), open_rows=50)
    bound = whole.update(x, y).bound
    total = sum(singly.update(x[[k]], y[[k]]).bound for k in range(len(x)))
    np.testing.assert_allclose(total, bound, rtol=1e-5)
    for one in ("latent_mean", "latent_variance"):
        got, wanted = (getattr(model.predict(TEST), one) for model in (singly, whole))
        np.testing.assert_allclose(got, wanted, atol=2e-3)


# -- what is kept ----------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [0, 1, 5])
def test_no_more_rows_are_kept_than_asked_for_and_these_are_the_latest(most):
    x, y = few()
    model = model_of(sgp.Poisson(), open_rows=most)
    order = np.random.default_rng(2).permutation(len(x))
    for k, j in itertools.pairwise([0, 3, 4, 9, 12]):
        model.update(x[order[k:j]], y[order[k:j]])
        kept = model.state.open
        wanted = np.sort(x[order[:j]])[-most:] if most else []
        assert np.array_equal([] if kept is None else np.sort(kept.x[:, 0]), wanted)


def test_nothing_is_kept_of_conjugate_channels():
    model = sgp.ContinualGP({"real": sgp.Gaussian(), "count": sgp.Poisson()}, engine="chain")
    x, y = few()
    model.update({"real": (x, y), "count": (x, y)}, learn=False)
    assert set(model.state.open.channel) == {1}
    model.update_many(x + 3, y, ["real", "count"] * 6, learn=False)
    assert set(model.state.open.channel) == {1}
    assert model_after(sgp.Gaussian()).state.open is None
    assert model_after(sgp.LogNormal()).state.open is None


def model_after(likelihood, **options):
    x, y = few()
    model = model_of(likelihood, **options)
    model.update(x, y + 1)
    return model


def test_a_past_that_fades_keeps_none():
    assert model_after(sgp.Poisson(), forgetting=0.9).state.open is None


@pytest.mark.parametrize("wrong", [-1, 2.5, "many"])
def test_other_numbers_of_rows_are_refused(wrong):
    with pytest.raises(ConfigurationError, match="open_rows"):
        model_of(sgp.Poisson(), open_rows=wrong)


# -- streams ---------------------------------------------------------------------------------------

CHANNELS = {
    "real": sgp.Gaussian(noise=0.3), "count": sgp.Poisson(), "kind": sgp.Categorical(3)
}  # fmt: skip


@pytest.mark.parametrize("most", [0, 4])
def test_samples_of_several_channels_over_many_segments_are_as_many_updates(most):
    """Rows lie where one segment ends and the next begins, too."""
    generator = np.random.default_rng(3)
    x = np.arange(150) / 4
    names = generator.choice(list(CHANNELS), len(x))
    y = np.where(names == "real", np.sin(x), np.floor(generator.uniform(0, 3, len(x))))
    one, many = (
        sgp.ContinualGP(
            CHANNELS, latents=sgp.Matern12(1.0), learning=None, scale=False, open_rows=most
        )
        for _ in range(2)
    )
    for model in (one, many):
        for name in CHANNELS:
            model.update({name: ([-1.0], [1.0])})
    for k in range(len(x)):
        one.update({str(names[k]): (x[[k]], y[[k]])})
    many.update_many(x, y, names)
    assert len(one.state.segments) > 1
    for name in CHANNELS:
        got, wanted = many.predict(TEST, name), one.predict(TEST, name)
        np.testing.assert_allclose(got.latent_mean, wanted.latent_mean, atol=1e-7)
        np.testing.assert_allclose(got.latent_variance, wanted.latent_variance, atol=1e-7)


def test_rows_far_apart_are_open_together():
    """A late row and the latest ones are too far apart to be looked at as few."""
    x = np.concatenate([np.arange(300.0), [10.5, 300.0]])
    y = np.random.default_rng(4).poisson(2.0, len(x)) * 1.0
    one, many = model_of(sgp.Poisson(), open_rows=5), model_of(sgp.Poisson(), open_rows=5)
    for model in (one, many):
        model.update(x[:300], y[:300])
    for k in (300, 301):
        one.update(x[[k]], y[[k]])
    many.update_many(x[300:], y[300:])
    for got, wanted in zip(moments(many), moments(one), strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-7)


def moments(model, x=TEST):
    found = model.predict(x)
    return found.latent_mean, found.latent_variance


@pytest.mark.parametrize("likelihood", [sgp.Poisson(), sgp.NegativeBinomial()])
def test_hyperparameters_are_learned_while_rows_are_open(likelihood):
    generator = np.random.default_rng(5)
    y = generator.poisson(np.exp(1 + np.sin(X))) * 1.0
    model = sgp.ContinualGP(likelihood, learning=sgp.VEM(rounds=1, evaluations=5, every=40))
    model.update(X[:60], y[:60])
    report = model.update_many(X[60:], y[60:])
    assert np.isfinite(report.log_predictive["y"])
    assert model.state.open.size == 20
    assert np.isfinite(model.refine().bound)
    assert model.state.open.size == 20
    assert model.state.count == len(X)


def test_a_channel_may_be_added_while_rows_are_open():
    model = model_after(sgp.Poisson())
    before = moments(model)
    model.add_channel("kind", sgp.Categorical(3))
    x, _ = few()
    model.update({"kind": (x + 1, np.arange(12) % 3.0)}, learn=False)
    assert np.isfinite(model.predict(TEST, "kind").latent_mean).all()
    assert not np.allclose(model.predict(TEST, "y").latent_mean, before[0])


# -- files -----------------------------------------------------------------------------------------


def test_open_rows_are_saved_and_stay_open():
    model = model_after(sgp.Poisson(), open_rows=5)
    again = sgp.from_bytes(model.to_bytes())
    x, y = few(seed=6)
    for one in (model, again):
        one.update(x[:4] + 3, y[:4])
        one.update_many(x[4:] + 3, y[4:])
    assert again.state.open.size == 5
    for got, wanted in zip(moments(again), moments(model), strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-10)


WRONG = [{"channel": np.full(5, 3)}, {"linear": np.zeros((4, 1))}, {"x": np.full((5, 1), np.nan)}]


@pytest.mark.parametrize("wrong", WRONG)
def test_files_with_other_open_rows_are_refused(wrong):
    model = model_after(sgp.Poisson(), open_rows=5)
    version = model._version
    state = version.progress.state
    broken = state.replace(open=dataclasses.replace(state.open, **wrong))
    model._version = version._replace(progress=dataclasses.replace(version.progress, state=broken))
    with pytest.raises(FileError):
        model.to_bytes()


# -- without open rows -----------------------------------------------------------------------------


@pytest.mark.parametrize("likelihood", [sgp.Poisson(), sgp.NegativeBinomial()])
def test_a_state_can_be_closed(likelihood):
    """What open rows say is then in the sums, and of likelihoods in the memory."""
    x, y = few()
    model = sgp.ContinualGP(likelihood, latents=sgp.Matern32(1.0), engine="chain", open_rows=5)
    model.update(x, y, learn=False)
    state, learner = model.state, model.learner
    closed = state.closed
    assert (state.open.size, closed.open) == (5, None)
    assert closed.count == state.count
    for got, wanted in zip(
        learner.predict(closed, TEST[:, None], 0),
        learner.predict(state, TEST[:, None], 0),
        strict=True,
    ):
        np.testing.assert_allclose(got, wanted, atol=1e-12)
    remembered = np.abs(closed.memory.gradient - state.memory.gradient).max()
    assert (remembered > 0) == isinstance(likelihood, sgp.NegativeBinomial)
    half = learner.tempered(state, 0.5)
    assert half.open is None
    assert half.count == state.count / 2
