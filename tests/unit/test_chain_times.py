"""The times of chains: odd inputs, times that are split and times that go."""

import numpy as np
import pytest
from tests import chains
from tests._reference import build, markov

import streamgp as sgp
from streamgp.inducing.chain_placement import ChainPlacer
from streamgp.inference.chain import grid
from streamgp.inference.chain.evidence import Past, evidence
from streamgp.inference.chain.segments import joined
from streamgp.kernels import Matern32
from streamgp.parameters import fixed, replaced

X = 0.3 * np.arange(40.0)
Y = np.sin(X)


def assert_exact(world, model, rows, x, tolerance=1e-8):
    """One channel: what the model says is what the dense GP says."""
    x, channel = np.asarray(x, float), np.zeros(len(x), int)
    found = markov.exact(world, rows, x, channel)
    mean, variance = chains.moments(model, x, channel)
    np.testing.assert_allclose(mean, found.mean, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(variance, np.diag(found.covariance), rtol=tolerance, atol=tolerance)
    return found.evidence


def rows_of(x, y):
    return markov.Rows(np.asarray(x, float), np.zeros(len(x), int), np.asarray(y, float))


# -- odd inputs ------------------------------------------------------------------------------------

ODD = {
    "one row": [[2.0]],
    "one time": [[2.0] * 5],
    "one time, again and again": [[2.0], [2.0, 2.0], [2.0]],
    "rows in pairs": [[0.0, 0.0, 0.5, 0.5, 1.0, 1.0]],
    "the same rows again": [[0.0, 0.5, 1.0], [0.5, 1.0, 0.0], [1.0, 1.0]],
    "one row, then one before it": [[2.0], [-5.0]],
    "a gap": [[0.0, 0.5, 1.0], [40.0, 40.5]],
    "huge gaps": [[0.0, 1.0], [1e6, 1e6 + 1], [-1e9]],
    "a row amid a huge gap": [[0.0, 1e8], [5e7], [5e7 + 1]],
}


@pytest.mark.parametrize("name", ["matern12", "matern32", "matern52", "sum", "oscillator", "carma"])
@pytest.mark.parametrize("odd", ODD)
def test_odd_inputs_are_exact(odd, name):
    world = chains.one(name)
    model = chains.model_of(world, name)
    x = np.concatenate(ODD[odd])
    rows = rows_of(x, np.sin(x) + np.arange(len(x)))
    bound, begin = 0.0, 0
    for part in ODD[odd]:
        bound += chains.fed(model, rows.take(slice(begin, begin + len(part))))
        begin += len(part)
    test = [*np.unique(x), x.min() - 3, x.min() + 0.2, x.max() + 0.2, x.max() + 1e3]
    np.testing.assert_allclose(bound, assert_exact(world, model, rows, test), rtol=1e-8)


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.filterwarnings("error")
def test_odd_inputs_can_be_learned_from(odd):
    model = sgp.ContinualGP(sgp.Gaussian(), latents=Matern32(), engine="chain")
    for part in ODD[odd]:
        x = np.array(part)
        report = model.update(x, np.sin(x) + 0.1 * np.arange(len(x)))
        assert np.isfinite(report.bound)
    prediction = model.predict([*np.concatenate(ODD[odd]), -1e10, 1e10])
    assert np.isfinite(prediction.mean).all()
    assert np.all(prediction.variance > 0)


def test_a_tiny_lengthscale_leaves_rows_alone():
    world = chains.one("matern32")._replace(processes=(markov.matern(1, 1e-7, 0.7),))
    model = sgp.ContinualGP(
        {"a": sgp.Gaussian(noise=sgp.fixed(0.3))}, latents=Matern32(1e-7, 0.7), learning=None,
        mean=sgp.Constant(2.0), scale={"a": (0.4, 1.0), "inputs": (1.0, 1.0)},
        mixing={"a": sgp.fixed([[1.0]])},
    )  # fmt: skip
    rows = rows_of(X, Y)
    bound = chains.fed(model, rows)
    exact = assert_exact(world, model, rows, [*X[:3], 0.1, 500.0])
    np.testing.assert_allclose(bound, exact, rtol=1e-8)


def test_a_huge_lengthscale_is_nearly_a_level():
    model = sgp.ContinualGP(
        sgp.Gaussian(noise=0.3), latents=Matern32(1e6, 1.0), learning=None, scale=False
    )
    model.update(X, 2 + Y)
    prediction = model.predict([-5.0, 3.0, 50.0])
    np.testing.assert_allclose(prediction.latent_mean.ravel(), np.mean(2 + Y), atol=0.02)
    assert np.all(prediction.latent_variance > 0)


@pytest.mark.filterwarnings("ignore::streamgp.errors.EpochWarning")
@pytest.mark.parametrize("far", [1e4, 1e9, -1e9])
def test_inputs_far_from_zero_lose_no_digits(far):
    """Steps of a quarter are exact at either place."""
    x = 0.25 * np.arange(60)
    y = np.sin(x) + 0.1 * np.cos(9 * x)
    found = []
    for shift in (0.0, far):
        model = sgp.ContinualGP(sgp.Gaussian(), latents=Matern32())
        for part in np.split(np.arange(60), 3):
            model.update(x[part] + shift, y[part])
        own = model.predict(x + 0.125 + shift)
        found.append(np.stack([own.mean, own.variance]))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4, atol=1e-5)


def test_times_are_inputs():
    pd = pytest.importorskip("pandas")
    x = np.arange(60)
    y = np.sin(x / 6)
    by_time, by_number = (sgp.ContinualGP(sgp.Gaussian(), latents=Matern32()) for _ in range(2))
    times = pd.date_range("2024-03-01", periods=60, freq="h")
    for part in (slice(40), slice(40, None)):
        by_time.update(pd.DataFrame({"y": y[part]}, index=times[part]))
        by_number.update(x[part] / 24, y[part])
    assert by_time.engine == "chain"
    ahead = pd.date_range("2024-03-02 01:30", periods=40, freq="h")
    got, wanted = by_time.predict(ahead), by_number.predict((np.arange(40) + 25.5) / 24)
    np.testing.assert_allclose(got.mean, wanted.mean, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got.variance, wanted.variance, rtol=1e-4, atol=1e-5)


def test_missing_values_were_not_observed():
    pd = pytest.importorskip("pandas")
    seen = np.arange(40) % 3 > 0
    frame = pd.DataFrame({"y": np.where(seen, Y, np.nan)}, index=X)
    with_gaps, without = (
        sgp.ContinualGP({"y": sgp.Gaussian()}, latents=Matern32(1.0), learning=None)
        for _ in range(2)
    )
    with_gaps.update(frame)
    without.update({"y": (X[seen], Y[seen])})
    assert with_gaps.observations == {"y": int(seen.sum())}
    got, wanted = (model.predict(X, "y").mean for model in (with_gaps, without))
    np.testing.assert_allclose(got, wanted, rtol=1e-10)


# -- more times and fewer --------------------------------------------------------------------------


def told(state):
    """log p(all data), up to a constant."""
    return evidence(Past(joined(state.segments), state.totals), state.model)[0]


@pytest.mark.parametrize(
    "name", ["matern12", "matern32", "sum", "quasi-periodic", "linear sum", "overdamped", "smooth"]
)
def test_splitting_loses_nothing(name):
    world = chains.one(name)
    rows = chains.draw(world, 0.9 * np.arange(20))
    model = chains.model_of(world, name)
    chains.fed(model, rows)
    learner, state = model.learner, model.state
    more = np.array([-4.0, 0.3, 0.31, 4.95, 17.05, 30.0])
    finer = ChainPlacer(learner).move(state, (more[:, None],))
    assert set(more) <= set(finer.times)
    assert set(state.times) <= set(finer.times)
    x = np.linspace(-6, 35, 40)[:, None]
    for got, wanted in zip(learner.predict(finer, x, 0), learner.predict(state, x, 0), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(told(finer), told(state), rtol=1e-9)
    # A copy that has nothing but the sums says the same.
    bare = finer.replace()
    np.testing.assert_allclose(
        learner.predict(bare, x, 0)[0], learner.predict(state, x, 0)[0], rtol=1e-9, atol=1e-9
    )


def thinned(lengthscale, times, channels=1):
    """A world with rows at every tenth, its chain, and one with fewer times."""
    world = chains.two("matern32") if channels == 2 else chains.one("matern32")
    long = markov.matern(1, lengthscale, 0.7)
    world = world._replace(processes=(long, *world.processes[1:]))
    rows = chains.draw(world, 0.1 * np.arange(140 * times + 20))
    names = ("matern32", "matern52")[:channels]
    model = chains.model_of(world, *names)
    chains.fed(model, rows.take(slice(2)))  # for its hyperparameters
    learner, begun = model.learner, model.state.model
    kernels = (Matern32(fixed(lengthscale), fixed(0.7)), *begun.kernels[1:])
    state = learner.begin(replaced(begun, kernels=kernels), 1)
    state = ChainPlacer(learner).move(state, (rows.x[:, None],))
    parts = [(d, rows.x[rows.channel == d], rows.y[rows.channel == d]) for d in range(channels)]
    state, info = learner.step(state, build.rows(*parts), learn=False)
    fewer = state
    for _ in range(times):
        fewer = grid.thinner(fewer, 0)
    return world, rows, learner, state, fewer, info


@pytest.fixture
def frugal(monkeypatch):
    """Short chains, too, have no more times than they need."""
    for name in ("_AT_LEAST", "_AT_BEST"):
        monkeypatch.setattr(grid, name, 16)


@pytest.mark.parametrize(("times", "channels"), [(1, 1), (2, 1), (1, 2)])
@pytest.mark.usefixtures("frugal")
def test_thinning_loses_nothing_but_slack(times, channels):
    """It is the sparse GP of the coarser times, as if these had been there from the start."""
    world, rows, learner, state, fewer, info = thinned(4.0, times, channels)
    assert len(fewer.times) < (0.65, 0.4)[times - 1] * len(state.times)
    assert set(fewer.times) <= set(state.times)
    x = np.concatenate([[-1.0], np.linspace(0.03, rows.x[-1] - 0.1, 20), [rows.x[-1] + 2]])
    for d in range(channels):
        channel = np.full(len(x), d)
        found = markov.through_states(world, rows, fewer.times, x, channel)
        mean, variance = learner.predict(fewer, x[:, None], d)
        np.testing.assert_allclose(mean[:, 0], found.mean, atol=1e-7)
        np.testing.assert_allclose(variance[:, 0, 0], np.diag(found.covariance), atol=1e-7)
    lost = told(state) - told(fewer)
    np.testing.assert_allclose(lost, info.bound - found.evidence, atol=1e-6)
    assert lost > 1e-4
    assert np.all(fewer.open_variance[:1] > 0)
    assert np.all(fewer.open_variance < 1e-2)


@pytest.mark.usefixtures("frugal")
def test_times_that_are_needed_stay():
    _, _, _, state, fewer, _ = thinned(1.0, 1)
    assert fewer is state


def slow_stream():
    """Rows come far closer than the kernel that they teach needs. How many times are left?"""
    x = np.linspace(0, 60, 1200)
    y = np.sin(x / 6) + 0.1 * np.random.default_rng(0).normal(size=1200)
    model = sgp.ContinualGP(sgp.Gaussian(), latents=sgp.Matern52())
    for part in np.split(np.arange(1200), 12):
        model.update(x[part], y[part])
    assert np.sqrt(np.mean((model.predict(x).mean - np.sin(x / 6)) ** 2)) < 0.03
    return len(model.inducing_points[0])


@pytest.mark.usefixtures("frugal")
def test_a_stream_of_long_lengthscale_keeps_few_times():
    assert slow_stream() < 400


def test_a_short_stream_keeps_many_times():
    """Its kernels may yet learn of faster changes."""
    assert slow_stream() > 700


@pytest.mark.usefixtures("frugal")
@pytest.mark.parametrize("noise", [0.01, 0.3])
def test_times_are_as_close_as_noise_asks(noise):
    """A rough function that hardly changes from row to row, seen sharply, needs all its times."""
    x = np.arange(300.0)
    prior = np.exp(-np.abs(x[:, None] - x) / 2000.0)
    rng = np.random.default_rng(1)
    f = np.linalg.cholesky(prior) @ rng.normal(size=300)
    y = f + noise * rng.normal(size=300)
    model = sgp.ContinualGP(
        sgp.Gaussian(sgp.fixed(noise)), latents=sgp.Matern12(sgp.fixed(2000.0), sgp.fixed(1.0)),
        mean=None, scale=False, learning=None,
    )  # fmt: skip
    for part in np.split(np.arange(300), 10):
        model.update(x[part], y[part])
    exact = prior @ np.linalg.solve(prior + noise**2 * np.eye(300), y)
    np.testing.assert_allclose(model.predict(x).mean, exact, atol=0.1 * noise)
