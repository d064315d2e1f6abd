"""Every likelihood keeps the same promises, whether it is shipped or a user's own.

The oracles are written in NumPy and SciPy from the textbook and integrate by brute force, so they
share nothing with the library.
"""

import functools
import itertools
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import paramax
import pytest
from scipy import special, stats

import streamgp as sgp
from streamgp import parameters


class Waiting(sgp.Likelihood):
    """Waiting times with rate exp(f): all that a user has to write."""

    def distribution(self, f):
        return dist.Exponential(jnp.exp(f[..., 0]))


class Regular(sgp.Likelihood):
    """Waiting times of mean exp(f₀) that are the more regular the larger f₁."""

    @property
    def latents(self):
        return 2

    def distribution(self, f):
        shape = jnp.exp(f[..., 1])
        return dist.Gamma(shape, shape * jnp.exp(-f[..., 0]))


class Family(NamedTuple):
    likelihood: sgp.Likelihood
    log_density: Callable  # (y, f of shape (K, J)) → (K,)
    draw: Callable  # (generator, f of shape (..., J)) → (...)
    observed: tuple[float, ...]
    impossible: tuple[float, ...]
    classes: int = 0
    centre: float = 0.0  # of the latent means it is tried at
    width: float = (
        1.0  # of the latent variances; less where y would have no fourth moment to speak of
    )
    ordered: bool = True

    @property
    def indicators(self) -> bool:
        """Whether `mean` and `variance` are those of the classes' indicators."""
        return isinstance(self.likelihood, sgp.Categorical | sgp.Ordinal)

    @property
    def started(self) -> sgp.Likelihood:
        return paramax.unwrap(self.likelihood.start(np.zeros(0)))


def _poisson(y, f):
    return stats.poisson.logpmf(y, np.exp(f[:, 0]))


def _below(f):
    """P(y < k) of the four ordered classes k, and one."""
    cutpoints = np.array([-np.inf, -1.0, -0.3, 1.2, np.inf])
    return special.expit(cutpoints - f[..., :1])


FAMILIES = {
    "gaussian": Family(
        sgp.Gaussian(noise=0.5),
        lambda y, f: stats.norm.logpdf(y, f[:, 0], 0.5),
        lambda rng, f: rng.normal(f[..., 0], 0.5),
        observed=(-1.0, 0.2, 3.0),
        impossible=(),
    ),
    "bernoulli": Family(
        sgp.Bernoulli(),
        lambda y, f: special.log_expit((2 * y - 1) * f[:, 0]),
        lambda rng, f: rng.uniform(size=f.shape[:-1]) < special.expit(f[..., 0]),
        observed=(0.0, 1.0),
        impossible=(-1.0, 0.5, 2.0),
        classes=2,
    ),
    "probit": Family(
        sgp.Bernoulli(link="probit"),
        lambda y, f: stats.norm.logcdf((2 * y - 1) * f[:, 0]),
        lambda rng, f: rng.normal(size=f.shape[:-1]) < f[..., 0],
        observed=(0.0, 1.0),
        impossible=(-1.0, 0.5, 2.0),
        classes=2,
    ),
    "poisson": Family(
        sgp.Poisson(),
        _poisson,
        lambda rng, f: rng.poisson(np.exp(f[..., 0])),
        observed=(0.0, 1.0, 6.0),
        impossible=(-1.0, 0.5),
    ),
    # The rate's uncertainty here is far wider than a Poisson of that rate: a hard case for nodes.
    "poisson-large": Family(
        sgp.Poisson(),
        _poisson,
        lambda rng, f: rng.poisson(np.exp(f[..., 0])),
        observed=(600.0, 1100.0, 2000.0),
        impossible=(-1.0, 1100.5),
        centre=7.0,
    ),
    "categorical": Family(
        sgp.Categorical(3),
        lambda y, f: special.log_softmax(f, axis=-1)[:, int(y)],
        lambda rng, f: np.argmax(f + rng.gumbel(size=f.shape), axis=-1),
        observed=(0.0, 1.0, 2.0),
        impossible=(-1.0, 0.5, 3.0),
        classes=3,
        ordered=False,
    ),
    "heteroscedastic": Family(
        sgp.HeteroscedasticGaussian(),
        lambda y, f: stats.norm.logpdf(y, f[:, 0], np.exp(f[:, 1])),
        lambda rng, f: rng.normal(f[..., 0], np.exp(f[..., 1])),
        observed=(-1.8, -0.2, 3.0),
        impossible=(),
        width=0.3,
    ),
    "student": Family(
        sgp.StudentT(scale=0.5, df=5.0),
        lambda y, f: stats.t.logpdf(y, 5.0, f[:, 0], 0.5),
        lambda rng, f: f[..., 0] + 0.5 * rng.standard_t(5.0, f.shape[:-1]),
        observed=(-1.0, 0.2, 3.0, 30.0),
        impossible=(),
    ),
    # Far narrower than the latent is known: nodes that follow q(f) miss it.
    "student-narrow": Family(
        sgp.StudentT(scale=0.03),
        lambda y, f: stats.t.logpdf(y, 4.0, f[:, 0], 0.03),
        lambda rng, f: f[..., 0] + 0.03 * rng.standard_t(4.0, f.shape[:-1]),
        observed=(-0.3, 0.2, 1.0),
        impossible=(),
    ),
    "exponential": Family(
        sgp.Exponential(),
        lambda y, f: stats.expon.logpdf(y, scale=np.exp(f[:, 0])),
        lambda rng, f: rng.exponential(np.exp(f[..., 0])),
        observed=(0.1, 1.0, 4.0),
        impossible=(-1.0, 0.0),
        width=0.5,
    ),
    "gamma": Family(
        sgp.Gamma(shape=2.5),
        lambda y, f: stats.gamma.logpdf(y, 2.5, scale=np.exp(f[:, 0]) / 2.5),
        lambda rng, f: rng.gamma(2.5, np.exp(f[..., 0]) / 2.5),
        observed=(0.1, 1.0, 4.0),
        impossible=(-1.0, 0.0),
        width=0.5,
    ),
    "beta": Family(
        sgp.Beta(concentration=30.0),
        lambda y, f: stats.beta.logpdf(
            y, 30.0 * special.expit(f[:, 0]), 30.0 * special.expit(-f[:, 0])
        ),
        lambda rng, f: rng.beta(30.0 * special.expit(f[..., 0]), 30.0 * special.expit(-f[..., 0])),
        observed=(0.1, 0.5, 0.9),
        impossible=(-1.0, 0.0, 1.0, 2.0),
    ),
    "binomial": Family(
        sgp.Binomial(7),
        lambda y, f: stats.binom.logpmf(y, 7, special.expit(f[:, 0])),
        lambda rng, f: rng.binomial(7, special.expit(f[..., 0])),
        observed=(0.0, 2.0, 7.0),
        impossible=(-1.0, 0.5, 8.0),
    ),
    "negative-binomial": Family(
        sgp.NegativeBinomial(concentration=3.0),
        lambda y, f: stats.nbinom.logpmf(y, 3.0, 3.0 / (3.0 + np.exp(f[:, 0]))),
        lambda rng, f: rng.negative_binomial(3.0, 3.0 / (3.0 + np.exp(f[..., 0]))),
        observed=(0.0, 1.0, 6.0),
        impossible=(-1.0, 0.5),
        width=0.5,
    ),
    "ordinal": Family(
        sgp.Ordinal(4, first=-1.0, gaps=np.array([0.7, 1.5])),
        lambda y, f: np.log(np.diff(_below(f), axis=-1)[:, int(y)]),
        lambda rng, f: np.sum(rng.uniform(size=(*f.shape[:-1], 1)) > _below(f)[..., 1:], axis=-1),
        observed=(0.0, 1.0, 2.0, 3.0),
        impossible=(-1.0, 0.5, 4.0),
        classes=4,
    ),
    "log-normal": Family(
        sgp.LogNormal(noise=0.5),
        lambda y, f: stats.lognorm.logpdf(y, 0.5, scale=np.exp(f[:, 0])),
        lambda rng, f: np.exp(rng.normal(f[..., 0], 0.5)),
        observed=(0.1, 1.0, 4.0),
        impossible=(-1.0, 0.0),
        width=0.3,
    ),
    "a user's": Family(
        Waiting(),
        lambda y, f: stats.expon.logpdf(y, scale=np.exp(-f[:, 0])),
        lambda rng, f: rng.exponential(np.exp(-f[..., 0])),
        observed=(0.1, 1.0, 4.0),
        impossible=(-1.0,),
    ),
    "a user's, of two latents": Family(
        Regular(),
        lambda y, f: stats.gamma.logpdf(y, np.exp(f[:, 1]), scale=np.exp(f[:, 0] - f[:, 1])),
        lambda rng, f: rng.gamma(np.exp(f[..., 1]), np.exp(f[..., 0] - f[..., 1])),
        observed=(0.1, 1.0, 4.0),
        impossible=(-1.0, 0.0),
        width=0.3,
    ),
}


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


def cases(family: Family) -> list[tuple[float, np.ndarray, np.ndarray]]:
    return [(y, *q) for y, q in itertools.product(family.observed, marginals(family))]


def evaluate(method: Callable, family: Family) -> list:
    """The library's answer in every case."""
    columns = [jnp.asarray(np.stack(column)) for column in zip(*cases(family), strict=True)]
    return jax.jit(jax.vmap(method))(*columns)


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
    return special.logsumexp(family.log_density(y, f), b=weights)


def derivatives(function: Callable, at: np.ndarray, step=2e-3) -> tuple[np.ndarray, np.ndarray]:
    """Gradient and Hessian by central differences."""
    moves = step * np.eye(len(at))
    gradient = [(function(at + e) - function(at - e)) / (2 * step) for e in moves]
    hessian = [
        [
            (
                function(at + a + b)
                - function(at + a - b)
                - function(at - a + b)
                + function(at - a - b)
            )
            / (4 * step**2)
            for b in moves
        ]
        for a in moves
    ]
    return np.array(gradient), np.array(hessian)


# -- inference ---------------------------------------------------------------------------------


def test_expected_log_density(family):
    expected = [expectation(family, *case) for case in cases(family)]
    actual = evaluate(family.started.expected_log_density, family)
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
        if np.linalg.eigvalsh(-hessian)[0] >= 0:  # otherwise it is made so, each family in its way
            np.testing.assert_allclose(precision, -hessian, rtol=1e-4, atol=1e-3)
            compared += 1
    assert compared >= 2


def test_log_predictive(family):
    expected = [log_predictive(family, *case) for case in cases(family)]
    actual = evaluate(family.started.log_predictive, family)
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=QUADRATURE)


def test_precision_is_positive_semi_definite_anywhere(family, rng):
    """Also far from the data, where a first guess may well be."""
    latents, count = family.likelihood.latents, 200
    root = rng.normal(size=(count, latents, latents)) * rng.uniform(0, 3, size=(count, 1, 1))
    mean = rng.uniform(-25, 25, size=(count, latents))
    y = rng.choice(family.observed, count)
    gradient, precision = jax.jit(jax.vmap(family.started.curvature))(
        jnp.asarray(y), jnp.asarray(mean), jnp.asarray(root @ np.swapaxes(root, -1, -2))
    )
    assert np.isfinite(gradient).all()
    eigenvalues = np.linalg.eigvalsh(precision)
    assert np.all(eigenvalues >= -1e-12 * np.maximum(1.0, eigenvalues[:, -1:]))


@pytest.mark.parametrize("name", [name for name in FAMILIES if "user" not in name])
def test_another_familys_rows_do_no_harm(name):
    """Rows are evaluated under every family and masked: derivatives must stay finite there too."""
    started = FAMILIES[name].likelihood.start(np.zeros(0))
    trainable, rest = parameters.split(started)
    latents = started.latents

    def total(trainable, mean, y):
        likelihood = paramax.unwrap(eqx.combine(trainable, rest))
        return likelihood.expected_log_density(y, mean, 0.1 * jnp.eye(latents))

    slopes = jax.jit(jax.vmap(jax.grad(total, (0, 1)), (None, 0, 0)))
    values = np.array([-1e4, -1.0, 0.0, 0.5, 1.0, 30.0, 1e4])
    mean = np.repeat(np.clip(values, -1e4, 30.0)[:, None], latents, axis=1)
    assert all(np.isfinite(g).all() for g in jax.tree.leaves(slopes(trainable, mean, values)))


# -- support -----------------------------------------------------------------------------------


def test_draws_are_valid(family, rng):
    f = family.centre + rng.normal(size=(500, family.likelihood.latents))
    assert family.started.valid(family.draw(rng, f).astype(float)).all()


def test_what_cannot_be_is_not_valid(family):
    values = np.array([*family.impossible, np.nan, np.inf, -np.inf])
    assert not family.started.valid(values).any()


# -- prediction --------------------------------------------------------------------------------

DRAWS = 200_000
LEVELS = (0.001, 0.025, 0.5, 0.9, 0.999)


class Case(NamedTuple):
    family: Family
    prediction: sgp.Prediction
    draws: np.ndarray  # (DRAWS, N), by the oracle

    def columns(self, y: np.ndarray) -> np.ndarray:
        """What `mean` and `variance` speak of: y, or the indicators of the classes."""
        if not self.family.indicators:
            return y.astype(float)
        return (y[..., None] == np.arange(self.family.classes)).astype(float)


@pytest.fixture(scope="module", params=FAMILIES)
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
    )


def assert_within_sampling_error(draws: np.ndarray, mean: np.ndarray):
    error = np.std(draws, axis=0) / np.sqrt(len(draws))
    np.testing.assert_array_less(np.abs(np.mean(draws, axis=0) - mean), 5 * error + 1e-9)


def test_mean_and_variance(case):
    y = case.columns(case.draws)
    assert_within_sampling_error(y, case.prediction.mean)
    assert_within_sampling_error((y - case.prediction.mean) ** 2, case.prediction.variance)
    np.testing.assert_allclose(case.prediction.std**2, case.prediction.variance)


def test_sample(case):
    sample, again, other = (case.prediction.sample(50_000, seed=seed) for seed in (3, 3, 4))
    assert sample.shape == (50_000, len(case.prediction))
    assert np.array_equal(sample, again)
    assert not np.array_equal(sample, other)
    assert case.family.started.valid(sample.ravel().astype(float)).all()
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
        case.prediction.log_density(np.nan)


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
    hits = (case.draws[..., None] == np.arange(case.family.classes)).astype(float)
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
    errors = prediction.probabilities - np.diff(_below(_truth(GRID)[:, :1]), axis=-1)
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


@pytest.mark.parametrize("count", [0, -1, 2.5, "3", None])
@pytest.mark.parametrize("family", [sgp.Binomial, sgp.Ordinal])
def test_counts_that_cannot_be(family, count, unchecked):
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
    ],
)
def test_parameters_that_cannot_be(likelihood):
    with pytest.raises(sgp.ConfigurationError):
        likelihood.start(np.zeros(0))


def test_quantiles_without_moments():
    """Student's with one degree of freedom has neither mean nor variance: Cauchy's quantiles."""
    likelihood = paramax.unwrap(sgp.StudentT(scale=2.0, df=1.0).start(np.zeros(0)))
    prediction = sgp.Prediction(likelihood, np.array([[5.0]]), np.zeros((1, 1, 1)))
    for level in (1e-6, 0.1, 0.5, 0.999):
        expected = stats.cauchy.ppf(level, 5.0, 2.0)
        np.testing.assert_allclose(prediction.quantile(level), expected, rtol=1e-6)
