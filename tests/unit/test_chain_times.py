"""Odd times: rows of one time, late rows, gaps, far and tiny ones; the dense GP is always met."""

import numpy as np
import pytest
from tests import chains
from tests._reference import markov

import streamgp as sgp
from streamgp.inference.kept import SIZE
from streamgp.kernels import Matern32

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
    "gaps of nearly nothing": [[0.0, 1e-300, 1e-6], [1e-150, 1e-15], [1e-6 + 1e-12]],
}


GIVEN = ["oscillator", "carma"]  # whose moves over a gap are computed once for all equal gaps


@pytest.mark.parametrize("name", ["matern12", "matern32", "matern52", "sum", *GIVEN])
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
    rounding = 4 * np.finfo(float).eps * np.abs(x).max() if name in GIVEN else 0.0  # of gaps
    evidence = assert_exact(world, model, rows, test, 1e-8 + rounding)
    np.testing.assert_allclose(bound, evidence, rtol=1e-8)


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


@pytest.mark.parametrize("name", ["matern12", "matern32", "linear sum", "overdamped"])
def test_rows_nearly_free_of_noise_are_met(name):
    """They say 1e16 of levels, of which rounding may leave more or less than all that is open."""
    world = chains.one(name, noise=1e-8)
    rows = rows_of([*X, X[3], X[-1]], [*Y, Y[3] + 1e-9, Y[-1]])
    model = chains.model_of(world, name)
    assert np.isfinite(chains.fed(model, rows.take(slice(30)), rows.take(slice(30, None))))
    prediction = model.predict([-2.0, *X, 20.0])
    np.testing.assert_allclose(prediction.latent_mean.ravel()[1:-1], Y, atol=1e-7)
    variance = prediction.latent_variance.ravel()
    assert np.all(variance[1:-1] >= 0)
    assert np.all(variance[1:-1] < 1e-14)
    assert np.all(variance[[0, -1]] > 0.01)


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


# -- many rows at one time, and late ones ---------------------------------------------------------

AROUND = np.array([-60.0, -1.0, 0.0, 0.1, 1.0, 2.5, 3.0, 40.0, 89.9, 95.0])


def assert_both_exact(world, model, rows, bound):
    """Two channels, at times around all rows."""
    x, channel = np.tile(AROUND, 2), np.repeat([0, 1], len(AROUND))
    found = markov.exact(world, rows, x, channel)
    mean, variance = chains.moments(model, x, channel)
    np.testing.assert_allclose(mean, found.mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(variance, np.diag(found.covariance), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(bound, found.evidence, rtol=1e-8)


@pytest.mark.parametrize("cuts", [[], [1, 2, 3], [7, 333, 334, 500]])
def test_more_rows_at_one_time_than_a_block_holds(cuts):
    """Both channels at three times, most of them at the one in the middle."""
    world = chains.two("matern32", "sum")
    x = np.random.default_rng(2).permutation(np.repeat([0.0, 1.0, 3.0], [5, 2 * SIZE + 40, 60]))
    rows, model = chains.draw(world, x), chains.model_of(world, "matern32", "sum")
    parts = np.split(np.arange(len(x)), cuts)
    bound = chains.fed(model, *(rows.take(part) for part in parts))
    times = [np.unique(block.time) for block in model.state.blocks]
    assert np.all(np.diff(np.concatenate(times)) > 0)  # no two blocks share a time
    assert_both_exact(world, model, rows, bound)


@pytest.mark.parametrize("rows_each", [1, 40, 3 * SIZE // 2])
def test_late_rows_in_front_of_everything(rows_each):
    """A stream that runs backwards: each batch comes before all that are kept."""
    world = chains.two("matern32")
    x = 0.15 * np.arange(2 * SIZE + 90)
    rows, model = chains.draw(world, x), chains.model_of(world, "matern32", "matern52")
    half = len(x) // 2
    first, bound = np.arange(half, len(x)), 0.0
    bound += chains.fed(model, rows.take(first))
    begin = half
    while begin > 0 and begin > half - 8 * rows_each:
        end, begin = begin, max(begin - rows_each, 0)
        bound += chains.fed(model, rows.take(slice(begin, end)))
        if begin % 2:
            chains.moments(model, AROUND, np.zeros(len(AROUND), int))  # fills what is computed once
    assert_both_exact(world, model, rows.take(slice(begin, None)), bound)


def test_late_rows_among_samples_one_at_a_time():
    """Some fall into blocks long past, some at times that were seen, some before everything."""
    world = chains.two("sum")
    x = 0.15 * np.arange(SIZE + 100)
    late = np.array([7.51, 0.0, -3.0, -50.0, x[SIZE], x[SIZE - 1], x[-1], 7.5])
    whole = chains.draw(world, np.concatenate([x, late]))
    model = chains.model_of(world, "sum", "matern52")
    bound = chains.fed(model, whole.take(slice(len(x))))
    names = np.array(chains.NAMES)[whole.channel[len(x) :]]
    model.update_many(late[:4], whole.y[len(x) :][:4], names[:4])
    bound += markov.evidence(world, whole.take(slice(len(x) + 4)))
    bound -= markov.evidence(world, whole.take(slice(len(x))))
    for k in range(len(x) + 4, len(whole.x)):
        bound += chains.fed(model, whole.take([k]))
    assert_both_exact(world, model, whole, bound)


# -- hard kernels ----------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.01, 0.3])
def test_a_rough_slow_function_seen_sharply_is_exact(noise):
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
    np.testing.assert_allclose(model.predict(x).mean, exact, atol=1e-8)


def test_a_slow_smooth_stream_is_learned_well():
    """Rows come far closer than the kernel that they teach needs."""
    x = np.linspace(0, 60, 1200)
    y = np.sin(x / 6) + 0.1 * np.random.default_rng(0).normal(size=1200)
    model = sgp.ContinualGP(sgp.Gaussian(), latents=sgp.Matern52())
    for part in np.split(np.arange(1200), 12):
        model.update(x[part], y[part])
    assert np.sqrt(np.mean((model.predict(x).mean - np.sin(x / 6)) ** 2)) < 0.03
