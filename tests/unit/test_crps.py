"""Scores of whole distributions: CRPS against its own integral, and the probability transform."""

import numpy as np
import pytest
from scipy import special, stats
from tests.families import started

import streamgp as sgp

MEAN = 0.4
CONTINUOUS = {
    "gaussian": (stats.norm(0, 0.3), lambda f: f, sgp.Gaussian(0.3)),
    "log-normal": (stats.norm(0, 0.3), np.exp, sgp.LogNormal(0.3)),
    "student": (stats.t(3, scale=0.3), lambda f: f, sgp.StudentT(0.3, 3.0)),
}


def below(family, z, deviation):
    """P(Y ≤ z) by brute force over f: y is a function of f plus a noise."""
    noise, _, _ = CONTINUOUS[family]
    nodes = np.linspace(-8, 8, 161)
    weights = stats.norm.pdf(nodes) / np.sum(stats.norm.pdf(nodes))
    with np.errstate(divide="ignore"):
        at = np.log(np.maximum(z, 0)) if family == "log-normal" else z
    return noise.cdf(at[:, None] - MEAN - deviation * nodes) @ weights


def predicted(likelihood, deviation, rows=1, mean=MEAN):
    covariance = np.full((rows, 1, 1), float(deviation) ** 2)
    return sgp.Prediction(started(likelihood), np.full((rows, 1), float(mean)), covariance)


@pytest.mark.parametrize("family", CONTINUOUS)
@pytest.mark.parametrize("deviation", [0.1, 1.0])
def test_crps_is_the_integral_of_a_squared_difference(family, deviation):
    _, link, likelihood = CONTINUOUS[family]
    prediction = predicted(likelihood, deviation)
    for offset in (-2.0, 0.0, 0.7):
        y = float(link(MEAN + offset))
        steps = np.concatenate([-np.geomspace(1e4, 1e-7, 3001), np.geomspace(1e-7, 1e4, 3001)])
        ends = np.sort(np.concatenate([y + steps, MEAN + np.linspace(-5, 5, 2001)]))
        ends = ends[ends >= 0] if family == "log-normal" else ends
        middle = 0.5 * (ends[1:] + ends[:-1])
        wanted = np.sum((below(family, middle, deviation) - (y <= middle)) ** 2 * np.diff(ends))
        assert prediction.crps(y)[0] == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize("deviation", [0.1, 1.0])
def test_crps_of_counts_is_a_sum(deviation):
    nodes = np.linspace(-8, 8, 801)
    weights = stats.norm.pdf(nodes) / np.sum(stats.norm.pdf(nodes))
    counts = np.arange(4000)
    f = MEAN + deviation * nodes
    cdf = stats.poisson.cdf(counts[:, None], np.exp(f)) @ weights
    for y in (0, 2, 30):
        wanted = np.sum((cdf - (y <= counts)) ** 2)
        assert predicted(sgp.Poisson(), deviation).crps(y)[0] == pytest.approx(wanted, rel=1e-5)


def test_crps_of_counts_too_many_to_be_added_up_one_by_one():
    rate = 2e5
    counts = np.arange(190_000, 210_000)
    cdf = stats.poisson.cdf(counts, rate)
    for y in (199_000, 200_100):
        wanted = np.sum((cdf - (y <= counts)) ** 2)
        prediction = predicted(sgp.Poisson(), 0.0, mean=np.log(rate))
        assert prediction.crps(y)[0] == pytest.approx(wanted, rel=1e-3)


def test_crps_of_yes_or_no_is_the_brier_score():
    prediction = predicted(sgp.Bernoulli(), 0.5, rows=2)
    yes = prediction.probabilities[:, 1]
    np.testing.assert_allclose(prediction.crps([0, 1]), (yes - [0, 1]) ** 2, rtol=1e-9)


def test_crps_of_grades():
    likelihood = started(sgp.Ordinal(4))
    prediction = predicted(sgp.Ordinal(4), 0.0, rows=4)
    cdf = special.expit(likelihood.cutpoints - MEAN)
    wanted = [np.sum((cdf - (y <= np.arange(3))) ** 2) for y in range(4)]
    np.testing.assert_allclose(prediction.crps([0, 1, 2, 3]), wanted, rtol=1e-6)


@pytest.mark.parametrize("likelihood", [sgp.Gaussian(0.3), sgp.StudentT(0.3, 3.0), sgp.Poisson()])
def test_far_from_everything_crps_is_the_distance(likelihood):
    assert predicted(likelihood, 0.3).crps(10**12)[0] == pytest.approx(1e12, rel=1e-6)


def test_crps_prefers_the_truth():
    rng = np.random.default_rng(0)
    y = MEAN + 0.5 * rng.normal(size=4000)
    scores = [
        np.mean(predicted(sgp.Gaussian(noise), 0.0, rows=4000).crps(y)) for noise in (0.3, 0.5, 0.8)
    ]
    assert np.argmin(scores) == 1


def test_unordered_values_have_neither():
    prediction = sgp.Prediction(sgp.Categorical(3), np.zeros((2, 3)), np.tile(np.eye(3), (2, 1, 1)))
    for ask in (prediction.crps, prediction.pit):
        with pytest.raises(sgp.DataError, match="ordered"):
            ask([0, 1])


def test_no_rows_have_no_scores():
    empty = predicted(sgp.Poisson(), 0.1, rows=0)
    assert empty.crps([]).shape == empty.pit([]).shape == (0,)


# -- the probability transform ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "likelihood", [sgp.Gaussian(0.3), sgp.Poisson(), sgp.Bernoulli(), sgp.Gamma(2.0)]
)
def test_the_transform_of_draws_is_uniform(likelihood):
    prediction = predicted(likelihood, 0.5, rows=3000)
    y = prediction.sample(1, seed=1)[0]
    assert stats.kstest(prediction.pit(y, seed=2), "uniform").pvalue > 1e-3


def test_the_transform_of_a_count_is_somewhere_in_its_jump():
    prediction = predicted(sgp.Poisson(), 0.5, rows=500)
    pit = prediction.pit(2, seed=3)
    assert np.all((pit >= prediction.cdf(1)) & (pit <= prediction.cdf(2)))
    assert pit.max() - pit.min() > 0.9 * (prediction.cdf(2) - prediction.cdf(1))[0]
    np.testing.assert_array_equal(pit, prediction.pit(2, seed=3))
    assert np.any(pit != prediction.pit(2, seed=4))
    smooth = predicted(sgp.Gaussian(0.3), 0.5, rows=3)
    np.testing.assert_array_equal(smooth.pit([0.0, 1.0, 2.0]), smooth.cdf([0.0, 1.0, 2.0]))
