"""Every likelihood keeps the same promises, whether it is shipped or a user's own.

The oracles are the textbook's densities, integrated by brute force (tests/families.py).
"""

import functools
import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from scipy import special, stats
from tests.families import FAMILIES, Family, Row, below, started

import streamgp as sgp

QUADRATURE = 1e-3  # what the library's few nodes may miss of a logarithm at these marginals


@pytest.fixture(params=FAMILIES)
def family(request) -> Family:
    return FAMILIES[request.param]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def marginals(family: Family) -> list[tuple[np.ndarray, np.ndarray]]:
    """Some q(f) = N(mean, covariance); a point mass at zero is where formulas have their kinks."""
    latents = family.likelihood.latents
    shape = np.random.default_rng(1).normal(size=(latents, latents)) / np.sqrt(latents)
    spread = shape @ shape.T / np.trace(shape @ shape.T) * latents  # variances of one on average
    steps = np.linspace(-1.0, 1.0, latents) if latents > 1 else np.zeros(1)
    return [
        (family.centre + middle + steps, variance * family.width * spread)
        for middle, variance in [(-1.0, 0.3), (0.3, 1.0), (0.0, 0.0), (1.0, 0.1)]
    ]


def cases(family: Family) -> list[tuple[Row, np.ndarray, np.ndarray]]:
    return [(y, *q) for y, q in itertools.product(family.observed, marginals(family))]


def evaluate(method: Callable, family: Family):
    """The library's answer in every case."""
    return method(*(np.asarray(column, float) for column in zip(*cases(family), strict=True)))


@functools.cache
def nodes(latents: int) -> tuple[np.ndarray, np.ndarray]:
    """The trapezoidal rule under a standard normal, which converges spectrally."""
    side = np.linspace(-9, 9, 6001) if latents == 1 else np.linspace(-6.5, 6.5, 240 // latents**2)
    points = np.stack(np.meshgrid(*[side] * latents, indexing="ij"), axis=-1).reshape(-1, latents)
    weights = np.exp(-0.5 * np.sum(points**2, axis=-1))
    return points, weights / np.sum(weights)


def spread(mean: np.ndarray, covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    points, weights = nodes(len(mean))
    values, vectors = np.linalg.eigh(covariance)
    return mean + points @ (vectors * np.sqrt(np.maximum(values, 0.0))).T, weights


def expectation(family: Family, y, mean, covariance) -> float:
    f, weights = spread(mean, covariance)
    return weights @ family.log_density(y, f)


def log_predictive(family: Family, y, mean, covariance) -> float:
    f, weights = spread(mean, covariance)
    weight = y[-1] if isinstance(family.likelihood, sgp.Weighted) else 1.0
    if weight == 0:
        return 0.0
    return weight * special.logsumexp(family.log_density(y, f) / weight, b=weights)


def derivatives(function: Callable, at: np.ndarray, step=2e-3) -> tuple[np.ndarray, np.ndarray]:
    """Gradient and Hessian by central differences."""
    moves = step * np.eye(len(at))
    gradient = [(function(at + e) - function(at - e)) / (2 * step) for e in moves]
    hessian = np.empty((len(at), len(at)))
    for (i, a), (j, b) in itertools.combinations_with_replacement(enumerate(moves), 2):
        up = function(at + a + b) - function(at + a - b)
        down = function(at - a + b) - function(at - a - b)
        hessian[i, j] = hessian[j, i] = (up - down) / (4 * step**2)
    return np.array(gradient), hessian


# -- inference ---------------------------------------------------------------------------------


def test_expected_log_density(family):
    expected = [expectation(family, *case) for case in cases(family)]
    actual = evaluate(family.started.expected, family).value
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=QUADRATURE)


def test_curvature(family):
    """∂E/∂m and −∂²E/∂m²: Bonnet's and Price's theorems, by differences of brute force."""
    gradients, precisions = evaluate(family.started.curvature, family)
    compared = 0
    for (y, mean, covariance), gradient, precision in zip(
        cases(family), gradients, precisions, strict=True
    ):
        slope, hessian = derivatives(
            lambda m, y=y, s=covariance: expectation(family, y, m, s), mean
        )
        np.testing.assert_allclose(gradient, slope, rtol=1e-4, atol=1e-3)
        eigenvalues = np.linalg.eigvalsh(-hessian)
        # Otherwise it is made so, each family in its way. Zero may come out on either side of zero.
        if eigenvalues[0] >= -1e-6 * eigenvalues[-1]:
            np.testing.assert_allclose(precision, -hessian, rtol=1e-4, atol=1e-3)
            compared += 1
    assert compared >= 2


def test_log_predictive(family):
    expected = [log_predictive(family, *case) for case in cases(family)]
    actual = evaluate(family.started.log_predictive, family)
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=QUADRATURE)


def test_many_latents_by_draws(rng):
    """With more than three, nodes are quasi-random; here they meet random ones."""
    family, count = sgp.Categorical(5), 300_000
    mean, root = 0.5 * np.arange(5.0), 0.4 * rng.normal(size=(5, 5))
    f = mean + rng.normal(size=(count, 5)) @ root.T
    log_shares = f - special.logsumexp(f, axis=-1)[:, None]
    rows = np.arange(5.0), np.tile(mean, (5, 1)), np.tile(root @ root.T, (5, 1, 1))
    expected, predicted = family.expected(*rows).value, family.log_predictive(*rows)
    np.testing.assert_allclose(expected, np.mean(log_shares, axis=0), atol=0.005)
    np.testing.assert_allclose(np.exp(predicted), np.mean(np.exp(log_shares), axis=0), atol=0.002)
    gradient, precision = family.curvature(*rows)
    np.testing.assert_allclose(gradient, np.eye(5) - np.exp(predicted), atol=0.002)
    p = np.exp(log_shares)
    np.testing.assert_allclose(precision[0], np.diag(p.mean(0)) - p.T @ p / count, atol=0.002)


def test_precision_is_positive_semi_definite_anywhere(family, rng):
    """Also far from the data, where a first guess may well be."""
    latents, count = family.likelihood.latents, 200
    root = rng.normal(size=(count, latents, latents)) * rng.uniform(0, 3, size=(count, 1, 1))
    mean = rng.uniform(-25, 25, size=(count, latents))
    covariance = root @ np.swapaxes(root, -1, -2)
    gradient, precision = family.started.curvature(family.rows(count), mean, covariance)
    assert np.isfinite(gradient).all()
    eigenvalues = np.linalg.eigvalsh(precision)
    assert np.all(eigenvalues >= -1e-12 * np.maximum(1.0, eigenvalues[:, -1:]))


@pytest.mark.parametrize("name", [name for name in FAMILIES if "user" not in name])
def test_values_that_cannot_be_do_no_harm(name):
    """Whatever the value is, what is learned from it stays finite."""
    family = FAMILIES[name].started
    if family.observation_dim > 1:
        return
    y = np.array([-1e4, -1.0, 0.0, 0.5, 1.0, 30.0, 1e4])
    mean = np.repeat(np.clip(y, -1e4, 30.0)[:, None], family.latents, axis=1)
    covariance = np.tile(0.1 * np.eye(family.latents), (len(y), 1, 1))
    _, by_mean, by_covariance = family.expected(y, mean, covariance)
    assert np.isfinite(by_mean).all()
    assert np.isfinite(by_covariance).all()
    for slopes in family.expected_parameter_rows(y, mean, covariance).values():
        assert np.isfinite(slopes).all()


# -- support -----------------------------------------------------------------------------------


def test_draws_are_valid(family, rng):
    if family.draw is None:
        assert family.started.valid(family.rows(20)).all()
        return
    f = family.centre + rng.normal(size=(500, family.likelihood.latents))
    assert family.started.valid(family.draw(rng, f).astype(float)).all()


def test_what_cannot_be_is_not_valid(family):
    for number in (np.nan, np.inf, -np.inf):
        assert not family.started.valid(np.full_like(family.rows(2), number)).any()
    if family.impossible:
        assert not family.started.valid(np.asarray(family.impossible, float)).any()


def test_it_says_what_an_observation_is(family):
    y, likelihood = family.rows(12), family.started
    assert likelihood.observation_dim == len(likelihood.columns) == (y.shape[1:] or (1,))[0]
    offset, scale = family.likelihood.location(y)
    assert offset.shape == scale.shape == (likelihood.latents,)
    assert np.isfinite(offset).all()
    assert np.all(scale > 0)
    bare = likelihood.bare
    assert bare.bare is bare


# -- prediction --------------------------------------------------------------------------------

DRAWS = 200_000
LEVELS = (0.001, 0.025, 0.5, 0.9, 0.999)


class Case(NamedTuple):
    family: Family
    prediction: sgp.Prediction
    draws: np.ndarray  # (DRAWS, N, …), by the oracle
    twins: np.ndarray  # the same, drawn again from the same f

    def columns(self, y: np.ndarray) -> np.ndarray:
        """What `mean` and `variance` speak of: y, or the indicators of the classes."""
        if not self.family.indicators:
            return y.astype(float)
        return (y[..., None] == np.arange(self.family.classes)).astype(float)


@pytest.fixture(scope="module", params=[name for name, f in FAMILIES.items() if f.draw])
def case(request) -> Case:
    family = FAMILIES[request.param]
    mean, covariance = (np.stack(column) for column in zip(*marginals(family), strict=True))
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    rng = np.random.default_rng(2)
    f = mean + np.einsum("njk,snk->snj", root, rng.normal(size=(DRAWS, *mean.shape)))
    return Case(
        family,
        sgp.Prediction(family.started, mean, covariance),
        np.asarray(family.draw(rng, f)),
        np.asarray(family.draw(rng, f)),
    )


def assert_within_sampling_error(draws: np.ndarray, mean: np.ndarray):
    error = np.std(draws, axis=0) / np.sqrt(len(draws))
    np.testing.assert_array_less(np.abs(np.mean(draws, axis=0) - mean), 5 * error + 1e-9)


def test_mean_and_variance(case):
    y = case.columns(case.draws)
    assert_within_sampling_error(y, case.prediction.mean)
    assert_within_sampling_error((y - case.prediction.mean) ** 2, case.prediction.variance)
    np.testing.assert_allclose(case.prediction.std**2, case.prediction.variance)


def test_what_knowing_f_would_leave_of_the_variance(case):
    """Two draws from one f differ by noise alone, and have in common what is open about f."""
    one, two = case.columns(case.draws), case.columns(case.twins)
    found, mean = case.prediction, case.prediction.mean
    assert_within_sampling_error(0.5 * (one - two) ** 2, found.aleatoric)
    assert_within_sampling_error((one - mean) * (two - mean), found.epistemic)
    np.testing.assert_allclose(found.aleatoric + found.epistemic, found.variance, rtol=1e-12)


def test_sample(case):
    sample, again, other = (case.prediction.sample(50_000, seed=seed) for seed in (3, 3, 4))
    assert sample.shape == (50_000, *case.draws.shape[1:])
    assert np.array_equal(sample, again)
    assert not np.array_equal(sample, other)
    flat = sample.reshape(-1, *sample.shape[2:]).astype(float)
    assert case.family.started.valid(flat).all()
    y = case.columns(sample)
    assert_within_sampling_error(y, case.prediction.mean)
    assert_within_sampling_error((y - case.prediction.mean) ** 2, case.prediction.variance)


def test_log_density(case):
    for y in case.family.observed:
        expected = [log_predictive(case.family, y, *q) for q in marginals(case.family)]
        actual = case.prediction.log_density(y)
        np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=QUADRATURE)


def test_log_density_refuses_the_impossible(case):
    with pytest.raises(sgp.DataError, match="support"):
        case.prediction.log_density(np.full(np.shape(case.family.observed[0]), np.nan))


@pytest.mark.parametrize("level", LEVELS)
def test_quantile(case, level):
    """P(Y < q) ≤ level ≤ P(Y ≤ q), which defines a quantile of discrete families too."""
    if not case.family.ordered:
        with pytest.raises(sgp.DataError, match="ordered"):
            case.prediction.quantile(level)
        return
    quantile = case.prediction.quantile(level)
    below, at_most = np.mean(case.draws < quantile, axis=0), np.mean(case.draws <= quantile, axis=0)
    error = 5 * np.sqrt(level * (1 - level) / DRAWS) + min(1e-3, 0.1 * min(level, 1 - level))
    assert np.all(below <= level + error)
    assert np.all(at_most >= level - error)


def test_cdf(case):
    """P(Y ≤ y), against the share of draws."""
    y = case.family.observed[0]
    if not case.family.ordered:
        with pytest.raises(sgp.DataError, match="ordered"):
            case.prediction.cdf(y)
        return
    share = np.mean(case.draws <= y, axis=0)
    error = 5 * np.sqrt(share * (1 - share) / DRAWS) + 1e-3
    assert np.all(np.abs(case.prediction.cdf(y) - share) <= error)
    with pytest.raises(sgp.DataError, match="support"):
        case.prediction.cdf(np.nan)


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_interval_covers(case, level):
    if not case.family.ordered:
        pytest.skip("classes have no intervals")
    lower, upper = case.prediction.interval(level)
    covered = np.mean((case.draws >= lower) & (case.draws <= upper), axis=0)
    inside = np.mean((case.draws > lower) & (case.draws < upper), axis=0)
    assert np.all(covered >= level - 5e-3)
    assert np.all(inside <= level + 5e-3)


def test_probabilities(case):
    if not case.family.classes:
        with pytest.raises(sgp.DataError, match="classes"):
            _ = case.prediction.probabilities
        return
    hits = case.draws
    if hits.ndim == 2:
        hits = (hits[..., None] == np.arange(case.family.classes)).astype(float)
    assert_within_sampling_error(hits, case.prediction.probabilities)
    np.testing.assert_allclose(np.sum(case.prediction.probabilities, axis=-1), 1.0)


# -- from data -----------------------------------------------------------------------------------

COUNT, GRID = 2000, np.linspace(0.2, 5.8, 50)


def _truth(x):
    """Of each latent parameter: a sine, and for a second one something slower."""
    return np.stack([np.sin(1.5 * x), 0.5 * np.cos(x) - 1.0], axis=-1)


@functools.cache
def _inputs():
    return np.random.default_rng(4).uniform(0, 6, COUNT)


def _learned(likelihood, y):
    gp = sgp.ContinualGP(likelihood, inducing=sgp.Fixed(np.linspace(0, 6, 20)))
    gp.update(_inputs(), y)
    return gp.predict(GRID)


# What is asked is about twice the error that so many samples leave; the function's own deviation
# is 0.7. Parameters are left out, so that these are learned as well.
@pytest.mark.parametrize(
    ("name", "blank", "bound"),
    [
        ("heteroscedastic", sgp.HeteroscedasticGaussian(), 0.08),
        ("student", sgp.StudentT(), 0.06),
        ("exponential", sgp.Exponential(), 0.12),
        ("gamma", sgp.Gamma(), 0.08),
        ("beta", sgp.Beta(), 0.04),
        ("binomial", sgp.Binomial(7), 0.1),
        ("negative-binomial", sgp.NegativeBinomial(), 0.12),
        ("log-normal", sgp.LogNormal(), 0.08),
    ],
)
def test_recovers_a_known_function(name, blank, bound, rng):
    truth = _truth(_inputs())[:, : blank.latents]
    y = FAMILIES[name].draw(rng, truth).astype(float)
    prediction = _learned(blank, y)
    found = prediction.latent_mean.reshape(len(GRID), -1)
    errors = found - _truth(GRID)[:, : blank.latents]
    assert np.sqrt(np.mean(errors**2)) < bound
    for field in ("noise", "scale", "shape", "concentration"):  # within a fifth of what it was
        if hasattr(blank, field):
            true = getattr(FAMILIES[name].likelihood, field)
            assert abs(np.log(getattr(prediction.likelihood, field) / true)) < np.log(1.2)


def test_recovers_ordered_classes(rng):
    """By their probabilities: a shift of the latent is one of the cutpoints too."""
    family = FAMILIES["ordinal"]
    prediction = _learned(sgp.Ordinal(4), family.draw(rng, _truth(_inputs())[:, :1]).astype(float))
    errors = prediction.probabilities - np.diff(below(_truth(GRID)[:, :1]), axis=-1)
    assert np.sqrt(np.mean(errors**2)) < 0.03
    assert np.all(np.diff(prediction.likelihood.cutpoints) > 0)


def test_student_t_shrugs_off_gross_outliers(rng):
    clean = rng.normal(np.sin(1.5 * _inputs()), 0.2)
    y = clean + np.where(rng.uniform(size=COUNT) < 0.05, rng.choice([30.0, 1e4], COUNT), 0.0)
    with_them, without = (_learned(sgp.StudentT(), values) for values in (y, clean))
    assert np.all(with_them.latent_variance > 0)
    difference = with_them.latent_mean - without.latent_mean
    assert np.sqrt(np.mean(difference**2)) < 0.03  # of 0.7; a mean would move by more than 200


# -- wrong settings ------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, -1, 2.5, "3"])
@pytest.mark.parametrize(
    "family", [sgp.Binomial, sgp.Ordinal, sgp.Categorical, sgp.Multinomial, sgp.Dirichlet]
)
def test_counts_that_cannot_be(family, count):
    with pytest.raises(sgp.ConfigurationError, match="at least"):
        family(count)


@pytest.mark.parametrize(
    "likelihood",
    [
        sgp.StudentT(scale=-1.0),
        sgp.StudentT(df=0.0),
        sgp.Gamma(shape=-1.0),
        sgp.Beta(concentration=0.0),
        sgp.NegativeBinomial(concentration=np.nan),
        sgp.LogNormal(noise=0.0),
        sgp.Ordinal(4, gaps=np.array([1.0, -1.0])),
        sgp.Ordinal(4, gaps=np.array([1.0])),
        sgp.Dirichlet(3, concentration=-1.0),
        sgp.Weighted(sgp.Beta(concentration=0.0)),
        sgp.Censored(sgp.Gaussian(noise=0.0)),
    ],
    ids=repr,
)
def test_parameters_that_cannot_be(likelihood):
    with pytest.raises(sgp.ConfigurationError):
        likelihood.start(np.zeros(0))


def test_quantiles_without_moments():
    """Student's with one degree of freedom has neither mean nor variance: Cauchy's quantiles."""
    likelihood = started(sgp.StudentT(scale=2.0, df=1.0))
    prediction = sgp.Prediction(likelihood, np.array([[5.0]]), np.zeros((1, 1, 1)))
    for level in (1e-6, 0.1, 0.5, 0.999):
        expected = stats.cauchy.ppf(level, 5.0, 2.0)
        np.testing.assert_allclose(prediction.quantile(level), expected, rtol=1e-6)
