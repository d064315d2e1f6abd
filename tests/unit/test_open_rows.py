"""Rows that stay open for a while: single samples are learned as well as all data at once."""

import dataclasses
import itertools

import numpy as np
import pytest
from tests._reference import build
from tests._reference.dense import exact_gp, variational_gp

import streamgp as sgp
from streamgp.errors import FileError
from streamgp.inference.over_time import learner as over_time

LENGTH, PER_UNIT = 60, 5
OPEN = 20  # of the latest rows that are not conjugate
X = np.arange(LENGTH * PER_UNIT) / PER_UNIT
TEST = np.linspace(-1, 62, 43)


def covariance(a, b):
    r = np.sqrt(3) * np.abs(a[:, None] - b)
    return (1 + r) * np.exp(-r)


def prior():
    return covariance(X, X)


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


def is_open(model):
    """How many of the last rows have sites that still change."""
    return model.state.size - model.state.closed


@pytest.fixture
def opened(monkeypatch):
    """Say how many rows stay open."""
    return lambda most: monkeypatch.setattr(over_time, "_OPEN", most)


# -- all data at once ------------------------------------------------------------------------------

CUTS = np.random.default_rng(7).choice(np.arange(1, len(X)), 11, replace=False)
ORDERS = {
    "singly": [[k] for k in range(len(X))],
    "in chunks": np.split(np.arange(len(X)), np.sort(CUTS)),
    "at once": [np.arange(len(X))],
    "at random": np.split(np.random.default_rng(8).permutation(len(X)), np.sort(CUTS)),
    "backwards": np.split(np.arange(len(X)), np.sort(CUTS))[::-1],
}


def case(name):
    """Likelihood, f, y, and q(f) of the dense GP of all data."""
    likelihood, curvature = FAMILIES[name]
    generator = np.random.default_rng(0)
    f = truth(generator)
    y = draw(generator, name, f)
    found = variational_gp(prior() + 1e-9 * np.eye(len(X)), y, curvature, rounds=60)
    return likelihood, f, y, found


@pytest.fixture(scope="module", params=FAMILIES)
def offline(request):
    return case(request.param)


@pytest.mark.parametrize("order", ORDERS)
def test_samples_are_learned_as_well_as_all_data_at_once(order, offline):
    likelihood, f, y, (mean, covariance) = offline
    model = model_of(likelihood)
    for part in ORDERS[order]:
        model.update(X[part], y[part])
    assert is_open(model) == OPEN
    assert abs(loss_of(model, f) - loss(f, mean, np.diag(covariance))) < 3e-3


def test_many_samples_are_learned_as_well_as_all_data_at_once(offline, opened):
    likelihood, f, y, (mean, covariance) = offline
    wanted = loss(f, mean, np.diag(covariance))
    losses = []
    for most in (OPEN, 0):
        opened(most)
        model = model_of(likelihood)
        model.update_many(X, y)
        losses.append(loss_of(model, f))
    assert abs(losses[0] - wanted) < 1e-3
    assert losses[1] > wanted + 2e-3  # what open rows are for


@pytest.mark.parametrize("order", ORDERS)
def test_where_all_rows_are_open_the_order_changes_nothing(order, offline, opened):
    """E steps go on until nothing changes: the posterior is that of one batch, to many digits."""
    opened(len(X))
    likelihood, _, y, (mean, covariance) = offline
    begun = model_of(likelihood)
    begun.update(X[:1], y[:1])  # for its hyperparameters
    learner = dataclasses.replace(begun.learner, e_rounds=1000, e_tolerance=1e-11)
    state, bound = learner.begin(begun.state.model, 1), 0.0
    for part in ORDERS[order]:
        state, info = learner.step(state, build.rows((0, X[part], y[part])), learn=False)
        bound += info.bound
    assert state.closed == 0
    once, info = learner.step(
        learner.begin(begun.state.model, 1), build.rows((0, X, y)), learn=False
    )
    np.testing.assert_allclose(bound, info.bound, rtol=1e-7)
    x = np.concatenate([X, TEST])[:, None]
    got, wanted = learner.predict(state, x, 0), learner.predict(once, x, 0)
    for one, other in zip(got, wanted, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    np.testing.assert_allclose(got[0][: len(X), 0], mean, atol=1e-5)
    np.testing.assert_allclose(got[1][: len(X), 0, 0], np.diag(covariance), atol=1e-5)


def few(seed=1, count=12):
    generator = np.random.default_rng(seed)
    return X[:count], generator.poisson(2.0, count) * 1.0


def test_single_samples_that_all_are_open_have_the_bound_of_one_batch():
    x, y = few()
    whole, singly = model_of(sgp.Poisson()), model_of(sgp.Poisson())
    bound = whole.update(x, y).bound
    total = sum(singly.update(x[[k]], y[[k]]).bound for k in range(len(x)))
    np.testing.assert_allclose(total, bound, rtol=1e-5)
    for one in ("latent_mean", "latent_variance"):
        got, wanted = (getattr(model.predict(TEST), one) for model in (singly, whole))
        np.testing.assert_allclose(got, wanted, atol=2e-3)


# -- which rows are open ---------------------------------------------------------------------------


@pytest.mark.parametrize("most", [0, 1, 5])
def test_no_more_rows_are_open_than_asked_for_and_these_are_the_latest(most, opened):
    opened(most)
    x, y = few()
    model = model_of(sgp.Poisson())
    order = np.random.default_rng(2).permutation(len(x))
    for k, j in itertools.pairwise([0, 3, 4, 9, 12]):
        model.update(x[order[k:j]], y[order[k:j]])
        assert is_open(model) == min(most, j)
        np.testing.assert_array_equal(model.state.kept.time, np.sort(x[order[:j]]))


def test_sites_of_closed_rows_stay_and_those_of_open_ones_change():
    x, y = few(count=60)
    model = model_of(sgp.Poisson())
    model.update(x[:50], y[:50])
    before, closed = model.state.kept, model.state.closed
    assert closed == 50 - OPEN
    model.update(x[50:], y[50:])
    after = model.state.kept
    for one, other in ((before.linear, after.linear), (before.precision, after.precision)):
        np.testing.assert_array_equal(other[:closed], one[:closed])
        assert np.all(other[40:50] != one[40:50])


def test_no_row_of_conjugate_channels_is_open():
    x, y = few()
    for likelihood in (sgp.Gaussian(), sgp.LogNormal()):
        model = model_of(likelihood)
        model.update(x, y + 1)
        assert is_open(model) == 0
        kept = model.state.kept
        assert not kept.linear.any()  # their sites follow from what was observed
        assert not kept.precision.any()


def test_rows_are_open_from_the_first_of_the_latest_that_are_not_conjugate():
    """Those of conjugate channels between them are told again with them; their sites are exact."""
    model = sgp.ContinualGP({"real": sgp.Gaussian(), "count": sgp.Poisson()}, engine="chain")
    x, y = few(count=90)
    model.update({"real": (x + 0.1, y), "count": (x[::3], y[::3])}, learn=False)
    first = np.sort(x[::3])[-OPEN]
    assert model.state.kept.time[model.state.closed] == first
    kept = model.state.kept
    assert not kept.linear[kept.channel == 0].any()
    model.update_many(x[:30] + 18, y[:30], ["real", "count"] * 15, learn=False)
    kept = model.state.kept
    assert np.sum(kept.channel[model.state.closed :] == 1) == OPEN
    assert kept.channel[model.state.closed] == 1


def model_after(likelihood, **options):
    x, y = few(count=30)
    model = model_of(likelihood, **options)
    model.update(x, y + 1)
    return model


# -- streams ---------------------------------------------------------------------------------------

CHANNELS = {
    "real": sgp.Gaussian(noise=0.3), "count": sgp.Poisson(), "kind": sgp.Categorical(3)
}  # fmt: skip


@pytest.mark.parametrize("most", [0, 4])
def test_samples_of_several_channels_over_many_blocks_are_as_many_updates(most, opened):
    """Rows lie where one block ends and the next begins, too."""
    opened(most)
    generator = np.random.default_rng(3)
    x = np.arange(280) / 8
    names = generator.choice(list(CHANNELS), len(x))
    y = np.where(names == "real", np.sin(x), np.floor(generator.uniform(0, 3, len(x))))
    one, many = (
        sgp.ContinualGP(CHANNELS, latents=sgp.Matern12(1.0), learning=None, scale=False)
        for _ in range(2)
    )
    first, rest = np.arange(245), np.arange(245, 280)
    own = {name: first[names[first] == name] for name in CHANNELS}
    for model in (one, many):
        model.update({name: (x[rows], y[rows]) for name, rows in own.items()})
    for k in rest:
        one.update({str(names[k]): (x[[k]], y[[k]])})
    many.update_many(x[rest], y[rest], names[rest])
    assert len(one.state.blocks) > 1
    for name in CHANNELS:
        got, wanted = many.predict(TEST, name), one.predict(TEST, name)
        np.testing.assert_allclose(got.latent_mean, wanted.latent_mean, atol=1e-7)
        np.testing.assert_allclose(got.latent_variance, wanted.latent_variance, atol=1e-7)


def test_late_rows_are_open_too():
    """A late row, far from the latest ones, is fitted with all that come after it."""
    x = np.concatenate([np.arange(300.0), [10.5, 300.0]])
    y = np.random.default_rng(4).poisson(2.0, len(x)) * 1.0
    y[300] = 9.0
    one, many, whole = (model_of(sgp.Poisson()) for _ in range(3))
    for model in (one, many):
        model.update(x[:300], y[:300])
    for k in (300, 301):
        one.update(x[[k]], y[[k]])
    many.update_many(x[300:], y[300:])
    whole.update(x, y)
    near = np.linspace(5, 15, 21)
    for got, wanted in zip(moments(many), moments(one), strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-7)
    for got, wanted in zip(moments(one, near), moments(whole, near), strict=True):
        np.testing.assert_allclose(got, wanted, atol=2e-3)


def moments(model, x=TEST):
    found = model.predict(x)
    return found.latent_mean, found.latent_variance


@pytest.mark.parametrize("likelihood", [sgp.Poisson(), sgp.NegativeBinomial()])
def test_hyperparameters_are_learned_while_rows_are_open(likelihood):
    generator = np.random.default_rng(5)
    x = X[:150]
    y = generator.poisson(np.exp(1 + np.sin(x))) * 1.0
    model = sgp.ContinualGP(likelihood, learning=sgp.VEM(rounds=1, evaluations=5, every=40))
    model.update(x[:60], y[:60])
    report = model.update_many(x[60:], y[60:])
    assert np.isfinite(report.log_predictive["y"])
    assert is_open(model) == OPEN
    assert np.isfinite(model.refine().bound)
    assert is_open(model) == OPEN
    assert model.state.count == len(x)


def test_a_channel_may_be_added_while_rows_are_open():
    model = model_after(sgp.Poisson())
    before = moments(model)
    model.add_channel("kind", sgp.Categorical(3))
    x, _ = few()
    model.update({"kind": (x + 1, np.arange(12) % 3.0)}, learn=False)
    assert np.isfinite(model.predict(TEST, "kind").latent_mean).all()
    assert not np.allclose(model.predict(TEST, "y").latent_mean, before[0])


# -- what is kept of them --------------------------------------------------------------------------


@pytest.mark.parametrize("part", [1.0, 0.5])
def test_predictions_follow_from_sites(part):
    """A site is an observation of f with noise; a part of its say is one of more noise."""
    model = model_after(sgp.Poisson())
    learner, state = model.learner, model.state
    if part < 1:
        state = learner.tempered(state, part)
    assert state.count == 30 * part
    kept = model.state.kept
    strength, offset = kept.precision[:, 0], model.state.plain.channels[0].offset[0]
    mean, spread, _ = exact_gp(
        covariance(kept.time, kept.time), covariance(kept.time, TEST), covariance(TEST, TEST),
        kept.linear[:, 0] / strength, 1 / (part * strength),
    )  # fmt: skip
    got, variance = learner.predict(state, TEST[:, None], 0)
    np.testing.assert_allclose(got[:, 0], mean + offset, atol=1e-8)
    np.testing.assert_allclose(variance[:, 0, 0], np.diag(spread), atol=1e-8)


# -- files -----------------------------------------------------------------------------------------


def test_open_rows_are_saved_and_stay_open():
    model = model_after(sgp.Poisson())
    again = sgp.from_bytes(model.to_bytes())
    assert is_open(again) == OPEN
    x, y = few(seed=6)
    for one in (model, again):
        one.update(x[:4] + 7, y[:4])
        one.update_many(x[4:] + 7, y[4:])
    assert is_open(again) == OPEN
    for got, wanted in zip(moments(again), moments(model), strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-10)


def block_with(**wrong):
    return lambda state: {"blocks": (dataclasses.replace(state.blocks[0], **wrong),)}


WRONG = {
    "another channel": block_with(channel=np.full(30, 3, np.int32)),
    "too few sites": block_with(linear=np.zeros((29, 1))),
    "wide sites": block_with(precision=np.zeros((30, 3))),
    "sites that are no numbers": block_with(precision=np.full((30, 1), np.nan)),
    "no time": block_with(x=np.full((30, 1), np.nan)),
    "times out of order": block_with(x=X[:30][::-1, None]),
    "values that cannot be": block_with(y=np.full((30, 1), -1.0)),
    "rows of nothing": block_with(count=np.zeros(30)),
    "energy below zero": block_with(energy=np.full(30, -1.0)),
    "more closed than there are": lambda state: {"closed": 31},
    "no filter": lambda state: {"end": None},
    "a filter without rows": lambda state: {"closed": 0},
    "another filter": lambda state: {"end": state.end[:-1]},
    "a filter that is no numbers": lambda state: {"end": np.full_like(state.end, np.nan)},
    "blocks of the same times": lambda state: {"blocks": state.blocks * 2},
    "no blocks": lambda state: {"blocks": (), "closed": 0, "end": None},
}


@pytest.mark.parametrize("name", WRONG)
def test_files_with_wrong_rows_are_refused(name):
    model = model_after(sgp.Poisson())
    version = model._version
    state = version.progress.state
    broken = state.replace(**WRONG[name](state))
    model._version = version._replace(progress=dataclasses.replace(version.progress, state=broken))
    with pytest.raises(FileError):
        model.to_bytes()
