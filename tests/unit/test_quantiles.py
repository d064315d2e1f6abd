"""Counts of any size: special functions against SciPy's, and the quantiles made of them."""

import numpy as np
import pytest
from scipy import integrate, special, stats

import streamgp as sgp
from streamgp.numerics.special import mills, trigamma, upper_gamma
from streamgp.parameters import unwrap
from streamgp.prediction.prediction import Prediction
from streamgp.prediction.quantiles import quantiles

# -- special functions ---------------------------------------------------------------------------


@pytest.mark.parametrize("a", [0.5, 3.0, 999.0, 1001.0, 9999.0, 10001.0, 3e5, 1e7, 1e12])
def test_upper_gamma(a):
    x = np.maximum(a + np.linspace(-4.4, 4.4, 45) * np.sqrt(a), 0)
    x = np.concatenate([x, [0.0, 0.3 * a, 3 * a, 1e6 * a]])
    expected = special.gammaincc(a, x)
    error = 1e-11 + 1e-16 * a**0.5
    np.testing.assert_allclose(upper_gamma(np.full(x.shape, a), x), expected, rtol=0, atol=error)


def test_upper_gamma_where_scipy_stops_early():
    """Five deviations below a large count, by integrating the density of log x."""
    a = 1e9

    def density(t):
        return np.exp(-a * (special.exprel(t) * t - t))

    end = 12 / np.sqrt(a)
    total = integrate.quad(density, -end, end, points=[0.0])[0]
    for z in (-4.6, -5.0, -6.0):
        top = np.log1p(z / np.sqrt(a))
        below = integrate.quad(density, -end, top, epsabs=0, epsrel=1e-12)[0]
        found = 1 - upper_gamma(np.asarray(a), np.asarray(a + z * np.sqrt(a)))
        np.testing.assert_allclose(found, below / total, rtol=1e-4)


def test_trigamma():
    x = np.concatenate([np.geomspace(1e-40, 1e12, 300), np.linspace(0.1, 30, 300)])
    np.testing.assert_allclose(trigamma(x), special.polygamma(1, x), rtol=1e-13)


def test_slope_and_bend_of_a_normal_tail():
    z = np.concatenate([np.linspace(-99, 40, 200), -np.geomspace(90, 1e8, 50)])
    slope, bend = mills(z)
    mild = np.abs(z) < 30
    direct = np.exp(stats.norm.logpdf(z[mild]) - special.log_ndtr(z[mild]))
    np.testing.assert_allclose(slope[mild], direct, rtol=1e-11)
    np.testing.assert_allclose(bend[mild], direct * (direct + z[mild]), rtol=1e-9, atol=1e-12)
    far = z < -50
    asymptotic = -z[far] - 1 / z[far] + 2 / z[far] ** 3
    np.testing.assert_allclose(slope[far], asymptotic, rtol=1e-7)
    np.testing.assert_allclose(bend[far], 1 - 1 / z[far] ** 2, rtol=2e-6)
    assert np.all((bend >= 0) & (bend <= 1))


# -- quantiles -----------------------------------------------------------------------------------


def at(likelihood, log_mean, variance):
    return Prediction(likelihood, np.full((2, 1), log_mean), np.full((2, 1, 1), variance))


@pytest.mark.parametrize("log_mean", [4.0, 7.0, 14.0])
@pytest.mark.parametrize("level", [0.001, 0.05, 0.6, 0.999])
def test_quantiles_of_large_counts(log_mean, level):
    exact = stats.poisson(np.exp(log_mean)).ppf(level)
    assert at(sgp.Poisson(), log_mean, 1e-18).quantile(level)[0] == exact


def test_quantiles_of_many_trials():
    exact = stats.binom(50_000, special.expit(1.0)).ppf(0.9)
    assert at(sgp.Binomial(50_000), 1.0, 1e-18).quantile(0.9)[0] == exact


def test_quantiles_of_wide_counts():
    low, high = at(sgp.NegativeBinomial(10.0), 8.0, 30.0).interval(0.9)
    assert np.all(low <= 10)
    assert np.all((high > 1e7) & (high < 1e8))


@pytest.mark.parametrize("mean", [1.0, 1e5, 1e7, 1e12, 1e20])
@pytest.mark.parametrize("concentration", [0.5, 10.0, 100.0])
def test_counts_of_any_size_have_a_distribution_function(concentration, mean):
    y = np.floor(mean * np.geomspace(1e-4, 20, 40))
    f = np.full((40, 1), np.log(mean))
    found = unwrap(sgp.NegativeBinomial(concentration).start(np.zeros(0))).cdf(y, f)
    share = concentration / (concentration + mean)
    np.testing.assert_allclose(found, special.betainc(concentration, y + 1, share), atol=1e-9)


@pytest.mark.parametrize(
    ("family", "ends"),
    [
        (sgp.Poisson(), (2, 7)),
        (sgp.NegativeBinomial(50.0), (2, 7)),
        (sgp.Binomial(5000), (-1.5, 2)),
    ],
    ids=lambda part: type(part).__name__,
)
@pytest.mark.parametrize("deviation", [0.03, 0.2, 0.7, 1.5])
def test_quantiles_by_waiting_times(family, ends, deviation):
    """Against the average of distribution functions over more nodes than the library has."""
    family = unwrap(family.start(np.zeros(0)))
    points = np.linspace(-7, 7, 8001)
    weights = np.exp(-0.5 * points**2) / np.sum(np.exp(-0.5 * points**2))
    mean, covariance = np.linspace(*ends, 5)[:, None], np.full((5, 1, 1), deviation**2)
    f = mean + deviation * points[:, None, None]
    for level in (0.001, 0.5, 0.975):
        q = quantiles(family, mean, covariance, level)
        slack = 1e-6 * min(level, 1 - level)
        assert np.all(weights @ family.cdf(q, f) >= level - slack)
        assert np.all(weights @ family.cdf(q - 1, f) < level + slack)


def test_quantiles_lie_in_the_support():
    assert np.all(at(sgp.Beta(10.0), 14.0, 1.0).quantile(0.95) <= 1.0)


def test_quantiles_far_below_the_spread():
    """log y is near normal here; the variance of y is 1e135, its lower quantile 1e-7."""
    low, high = at(sgp.Exponential(), 16.0, 345.0).interval(0.9)
    np.testing.assert_allclose(np.log(low), 15.42 - 1.645 * 18.6, atol=0.2)
    np.testing.assert_allclose(np.log(high), 15.42 + 1.645 * 18.6, atol=0.2)
