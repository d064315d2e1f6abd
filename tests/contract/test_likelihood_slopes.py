"""What inference asks of a likelihood: values that are the textbook's, and their exact slopes.

Slopes are compared with differences of the values they are slopes of.
"""

import dataclasses

import numpy as np
import pytest
from scipy import special
from tests.families import FAMILIES, GAPS, started

import streamgp as sgp
from streamgp.likelihoods import class_count
from streamgp.likelihoods.support import OpenInterval
from streamgp.likelihoods.warped import Warp, Warped
from streamgp.numerics import differences
from streamgp.parameters import fixed, free_gradient, free_vector, unwrap, with_free
from streamgp.prediction.quantiles import quantiles

ROWS = 12
CASES = {name: (family.likelihood, family.rows(ROWS)) for name, family in FAMILIES.items()} | {
    # So many latents that nodes are quasi-random.
    "categorical of five": (sgp.Categorical(5), np.arange(ROWS) % 5.0),
    "student, many degrees": (sgp.StudentT(scale=0.3, df=35.0), np.linspace(-2, 30, ROWS)),
}
# By differences of differences, which lose digits.
LOOSE = ("a user's", "a user's, of two latents")


@pytest.fixture(params=CASES)
def name(request) -> str:
    return request.param


def case(name: str) -> tuple[sgp.Likelihood, np.ndarray]:
    likelihood, y = CASES[name]
    return started(likelihood), y


def ordinary(latents: int, count: int = ROWS) -> tuple[np.ndarray, np.ndarray]:
    """Some q(f)."""
    rng = np.random.default_rng(7)
    shape = rng.normal(size=(count, latents, latents)) * 0.6
    covariance = shape @ np.swapaxes(shape, 1, 2) / latents + 0.01 * np.eye(latents)
    return rng.normal(size=(count, latents)), covariance


def centred(name: str, count: int = ROWS) -> tuple[np.ndarray, np.ndarray]:
    """The same about where the family's values are likely."""
    mean, covariance = ordinary(CASES[name][0].latents, count)
    return mean + (FAMILIES[name].centre if name in FAMILIES else 0.0), covariance


def close(actual, expected, rtol, atol=None):
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol if atol is None else atol)


# -- the density ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILIES)
def test_the_density_is_the_textbooks(name):
    family, (likelihood, y) = FAMILIES[name], case(name)
    f, _ = centred(name)
    rows = zip(y, f, strict=True)
    expected = [family.log_density(value, at[None])[0] for value, at in rows]
    close(likelihood.log_density(y, f), expected, 1e-10)


def test_derivatives_of_the_density(name):
    """Also node by node, with y broadcast."""
    likelihood, y = case(name)
    mean, _ = centred(name)
    f = np.stack([mean, mean - 0.7])
    gradient, hessian = likelihood.derivatives(y, f)
    assert gradient.shape == f.shape
    assert hessian.shape == (*f.shape, likelihood.latents)
    digits = 1e-5 if name in LOOSE else 1e-7
    by_differences = differences.gradient(lambda f: likelihood.log_density(y, f), f, 1e-3)
    scale = np.max(np.abs(gradient)) + 1
    close(gradient, by_differences, digits, digits * scale)
    close(likelihood.gradient(y, f), gradient, 1e-12)
    slopes = [
        differences.gradient(lambda f, j=j: likelihood.gradient(y, f)[..., j], f, 1e-3)
        for j in range(likelihood.latents)
    ]
    close(hessian, np.stack(slopes, axis=-2), 10 * digits, 10 * digits * scale)


# -- its expectation -----------------------------------------------------------------------------


def test_slopes_of_the_expectation(name):
    """By mean and by covariance: of the number itself, whatever nodes it was taken at."""
    likelihood, y = case(name)
    mean, covariance = centred(name)
    value, by_mean, by_covariance = likelihood.expected(y, mean, covariance)
    assert value.shape == (ROWS,)
    scale = np.max(np.abs(by_mean)) + 1
    by_differences = differences.gradient(
        lambda m: likelihood.expected(y, m, covariance).value, mean, 1e-3
    )
    close(by_mean, by_differences, 1e-6 if name in LOOSE else 1e-7, 1e-7 * scale)
    move = np.random.default_rng(8).normal(size=covariance.shape)
    move = 1e-5 * (move + np.swapaxes(move, 1, 2))

    def along(step):
        return likelihood.expected(y, mean, covariance + step * move).value

    slope = (8 * (along(1) - along(-1)) - along(2) + along(-2)) / 12
    close(np.sum(by_covariance * move, axis=(1, 2)) / 1e-5, slope / 1e-5, 1e-5, 1e-5 * scale)
    close(by_covariance, np.swapaxes(by_covariance, 1, 2), 0)


def test_the_expectation_at_a_point(name):
    """Without variance: the density itself, and half its Hessian (Price's theorem)."""
    likelihood, y = case(name)
    mean, covariance = centred(name)
    value, by_mean, by_covariance = likelihood.expected(y, mean, 0 * covariance)
    close(value, likelihood.log_density(y, mean), 1e-9)
    gradient, hessian = likelihood.derivatives(y, mean)
    close(by_mean, gradient, 1e-9)
    close(by_covariance, 0.5 * hessian, 1e-7)


def summed(tree, axes):
    return {
        key: summed(part, axes) if isinstance(part, dict) else np.sum(part, axis=axes)
        for key, part in tree.items()
    }


def test_slopes_by_the_parameters(name):
    """Through the free vector, as an optimiser sees them."""
    likelihood, y = case(name)
    mean, covariance = centred(name)
    model = CASES[name][0].start(np.zeros(0))
    free = free_vector(model)
    gradient = free_gradient(model, likelihood.expected_parameter_gradient(y, mean, covariance))
    pointwise = summed(likelihood.parameter_gradient(y, np.stack([mean, mean])), (0, 1))

    def total(vector):
        return np.sum(unwrap(with_free(model, vector)).expected(y, mean, covariance).value)

    def density(vector):
        return 2 * np.sum(unwrap(with_free(model, vector)).log_density(y, mean))

    for function, slopes in ((total, gradient), (density, free_gradient(model, pointwise))):
        assert slopes.shape == free.shape
        for slope, step in zip(slopes, 1e-3 * np.eye(len(free)), strict=True):
            near = function(free + step) - function(free - step)
            far = function(free + 2 * step) - function(free - 2 * step)
            close(slope, (8 * near - far) / 12e-3, 1e-7)


def test_a_fixed_parameter_has_no_slope():
    model = sgp.StudentT().start(np.zeros(0))
    gradient = unwrap(model).expected_parameter_gradient(np.zeros(ROWS), *ordinary(1))
    assert free_gradient(model, gradient).shape == (1,)
    assert fixed(1.0).free.size == 0


# -- sites ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "likelihood",
    [
        sgp.Gaussian(0.5),
        sgp.LogNormal(0.5),
        sgp.Gaussian(0.5, error=True),
        sgp.Weighted(sgp.Gaussian(0.5)),
        sgp.Weighted(sgp.Gaussian(0.5, error=True)),
    ],
    ids=repr,
)
def test_exact_sites_by_the_parameters(likelihood):
    """A conjugate family's site does not depend on q(f), and says how it depends on the noise."""
    assert likelihood.conjugate
    model, rng = likelihood.start(np.zeros(0)), np.random.default_rng(6)
    width = likelihood.observation_dim
    y = rng.uniform(0.2, 2.0, size=(ROWS, width) if width > 1 else ROWS)
    offset, linear, precision = (rng.normal(size=(ROWS, *[1] * n)) for n in (1, 1, 2))

    def total(vector):
        sites = unwrap(with_free(model, vector)).curvature(y, offset, np.zeros((ROWS, 1, 1)))
        return np.vdot(sites[0], linear) + np.vdot(sites[1], precision)

    free, step = free_vector(model), 1e-3
    near = total(free + step) - total(free - step)
    far = total(free + 2 * step) - total(free - 2 * step)
    gradient = unwrap(model).site_gradient(y, offset, linear, precision)
    close(free_gradient(model, gradient), [(8 * near - far) / (12 * step)], 1e-8)
    narrow, wide = (
        unwrap(model).curvature(y, offset, np.full((ROWS, 1, 1), v)) for v in (0.1, 3.0)
    )
    for a, b in zip(narrow, wide, strict=True):
        close(a, b, 1e-14)


def test_first_sites_are_finite_and_no_less_than_nothing(name):
    likelihood, y = case(name)
    mean, covariance = ordinary(likelihood.latents)
    for shift in (-40.0, 0.0, 40.0):
        gradient, precision = likelihood.first_site(y, mean + shift, covariance)
        assert gradient.shape == mean.shape
        assert precision.shape == covariance.shape
        assert np.isfinite(gradient).all()
        assert np.all(np.diagonal(precision, axis1=1, axis2=2) >= 0)


@pytest.mark.parametrize(
    ("family", "rows", "far"),
    [
        (sgp.Poisson(), [0.0, 3.0], 30.0),
        (sgp.Poisson(exposure=True), [[0.0, 0.1], [3.0, 2.0]], 30.0),
        (sgp.Exponential(), [0.1, 4.0], -30.0),
        (sgp.Gamma(2.5), [0.1, 4.0], -30.0),
    ],
    ids=lambda part: repr(part) if isinstance(part, sgp.Likelihood) else "",
)
def test_a_first_site_on_the_steep_side_is_near_the_mode(family, rows, far):
    """Newton's steps would come down from there by one log unit per round."""
    likelihood, y = started(family), np.array(rows)
    mean, covariance = np.full((2, 1), far), np.full((2, 1, 1), 4.0)
    gradient, precision = likelihood.first_site(y, mean, covariance)
    after = mean + (gradient / (1 / covariance + precision)[..., 0])
    slope, bend = likelihood.derivatives(y, after)
    step = -(slope - (after - mean) / 4.0) / (bend[..., 0] - 1 / 4.0)
    assert np.all(np.abs(after - mean) > 20)
    assert np.all(np.abs(step) < 6)


# -- families within families --------------------------------------------------------------------


def test_a_multinomial_of_one_trial_is_categorical():
    q, y = ordinary(3), np.arange(ROWS) % 3.0
    one, many = sgp.Categorical(3), sgp.Multinomial(3)
    for method in ("expected", "curvature", "log_predictive"):
        first = getattr(one, method)(y, *q)
        for a, b in zip(first, getattr(many, method)(np.eye(3)[y.astype(int)], *q), strict=True):
            close(a, b, 1e-12)


def test_a_binomial_of_one_trial_is_bernoulli():
    q, y = ordinary(1), np.arange(ROWS) % 2.0
    one, many = sgp.Bernoulli(), sgp.Binomial(None)
    rows = np.stack([y, np.ones(ROWS)], axis=-1)
    for method in ("expected", "curvature"):
        first = getattr(one, method)(y, *q)
        for a, b in zip(first, getattr(many, method)(rows, *q), strict=True):
            close(a, b, 1e-4)  # each with its own nodes


def test_a_dirichlet_of_two_parts_is_beta():
    """With the difference of the two latent parameters for the beta's one."""
    f = np.random.default_rng(0).normal(size=(ROWS, 2))
    y = np.linspace(0.05, 0.95, ROWS)
    shares = np.stack([y, 1 - y], axis=-1)
    two, one = started(sgp.Dirichlet(2, 12.0)), started(sgp.Beta(12.0))
    close(two.log_density(shares, f), one.log_density(y, f[:, :1] - f[:, 1:]), 1e-12)


def test_a_weight_is_a_number_of_rows():
    q, y = ordinary(1), np.arange(ROWS) % 4.0
    rows = np.stack([y, np.full(ROWS, 3.0)], axis=-1)
    for method in ("expected", "curvature", "first_site"):
        once = getattr(sgp.Poisson(), method)(y, *q)
        for a, b in zip(once, getattr(sgp.Weighted(sgp.Poisson()), method)(rows, *q), strict=True):
            close(3 * a, b, 1e-14)


@pytest.mark.parametrize(
    ("family", "plain", "column"),
    [
        (sgp.Poisson(exposure=True), sgp.Poisson(), 1.0),
        (sgp.Gaussian(0.5, error=True), sgp.Gaussian(0.5), 0.0),
        (sgp.Weighted(sgp.Gamma(2.5)), sgp.Gamma(2.5), 1.0),
        (sgp.Censored(sgp.StudentT(0.5)), sgp.StudentT(0.5), 0.0),
        (sgp.Censored(sgp.HeteroscedasticGaussian()), sgp.HeteroscedasticGaussian(), 0.0),
    ],
    ids=lambda part: repr(part) if isinstance(part, sgp.Likelihood) else "",
)
def test_a_column_that_says_nothing_changes_nothing(family, plain, column):
    y = 1.0 + np.arange(ROWS) % 3
    rows = np.stack([y, np.full(ROWS, column)], axis=-1)
    q = ordinary(plain.latents)
    one, other = started(family), started(plain)
    for method in ("expected", "curvature", "first_site"):
        for a, b in zip(getattr(one, method)(rows, *q), getattr(other, method)(y, *q), strict=True):
            close(a, b, 1e-12)
    close(one.log_predictive(rows, *q), other.log_predictive(y, *q), 1e-12)
    assert type(one.bare) is type(other)
    assert one.bare.observation_dim == 1


def test_exposures_shift_the_log_rate():
    q, y = ordinary(1), np.arange(ROWS) % 4.0
    exposure = np.linspace(0.1, 9.0, ROWS)
    mean, covariance = q[0] + np.log(exposure)[:, None], q[1]
    rows = np.stack([y, exposure], axis=-1)
    for method in ("expected", "curvature", "log_predictive"):
        shifted = getattr(sgp.Poisson(), method)(y, mean, covariance)
        for a, b in zip(
            getattr(sgp.Poisson(exposure=True), method)(rows, *q), shifted, strict=True
        ):
            close(a, b, 1e-12)


CENSORED = {
    "gaussian": sgp.Gaussian(0.5),
    "student": sgp.StudentT(0.5, 4.0),
    "exponential": sgp.Exponential(),
    "gamma": sgp.Gamma(2.5),
}


@pytest.mark.parametrize("name", CENSORED)
def test_bounds_far_out(name):
    """Where the probability of the bound is too small to be a number, or was a while ago."""
    family = started(sgp.Censored(CENSORED[name]))
    y = np.array([[900.0, 1], [-900.0, -1], [1e6, 1], [0.01, -1]])
    positive = name in ("exponential", "gamma")
    if positive:
        y[1] = 1e-30, -1
    f = np.zeros((4, 1))
    value = family.log_density(y, f)
    gradient, hessian = family.derivatives(y, f)
    assert np.isfinite(value).all()
    assert np.isfinite(gradient).all()
    step = 1e-3 if positive else 0.05
    slopes = differences.gradient(lambda f: family.log_density(y, f), f, step)
    close(gradient, slopes, 1e-5, 1e-6)
    bends = differences.gradient(lambda f: family.derivatives(y, f)[0][..., 0], f, step)
    close(hessian[..., 0], bends, 1e-4, 1e-6)


def test_counts_may_be_bounds():
    """P(Y ≤ y) and P(Y > y) add up to one, for counts too."""
    f = np.linspace(-2, 3, 11)[:, None]
    for family, y in ((sgp.Poisson(), 4.0), (sgp.NegativeBinomial(3.0), 2.0)):
        likelihood = started(sgp.Censored(family))
        below, above = (
            likelihood.log_density(np.tile([y, side], (11, 1)), f) for side in (-1.0, 1.0)
        )
        close(np.exp(below) + np.exp(above), 1.0, 1e-12)


# -- predictions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, (family, _) in CASES.items() if family.ordered])
def test_quantiles_turn_the_distribution_function_round(name):
    likelihood = case(name)[0]
    bare, (mean, covariance) = likelihood.bare, centred(name, 5)
    for level in (0.02, 0.5, 0.97):
        q = quantiles(likelihood, mean, covariance, level)
        at_most = bare.predictive_cdf(q, mean, covariance)
        if bare.support.is_discrete:
            assert np.all(at_most >= level - 1e-7)
            assert np.all(bare.predictive_cdf(q - 1, mean, covariance) < level + 1e-7)
        else:
            close(at_most, level, 1e-7, 0)
    several = quantiles(likelihood, mean, covariance, np.array([[0.02], [0.97]]))
    close(several[1], q, 1e-8)


def test_predictions_are_of_the_value_alone():
    q = ordinary(1)
    for family, plain in (
        (sgp.Poisson(exposure=True), sgp.Poisson()),
        (sgp.Binomial(None), sgp.Binomial(1)),
        (sgp.Gaussian(0.5, error=True), sgp.Gaussian(0.5)),
        (sgp.Weighted(sgp.Censored(sgp.Gamma(2.5))), sgp.Gamma(2.5)),
    ):
        one, other = (sgp.Prediction(started(f).bare, *q) for f in (family, plain))
        np.testing.assert_array_equal(one.mean, other.mean)
        np.testing.assert_array_equal(one.interval(), other.interval())
        np.testing.assert_array_equal(one.sample(3), other.sample(3))


# -- starting ------------------------------------------------------------------------------------

Y = {
    "real": [3.0, 5.0, 1.0, 3.5, 2.0],
    "constant": [7.0, 7.0, 7.0, 7.0],
    "positive": [0.5, 2.0, 7.0, 1.5, 3.0],
    "share": [0.2, 0.5, 0.4, 0.9, 0.3],
    "count": [0.0, 2.0, 5.0, 1.0, 1.0],
    "class": [0.0, 1.0, 1.0, 0.0, 1.0],
    "none": [],
}
LOGIT = 1.0986122887  # of three quarters
# The family, its data; offset and scale of the latent parameters, and the parameters.
STARTS = [
    (sgp.Gaussian(), "real", [2.9], [1.3564659966], [0.406939799]),
    (sgp.Gaussian(), "constant", [7.0], [7.0], [2.1]),
    (sgp.Gaussian(), "none", [0.0], [1.0], [0.3]),
    (sgp.StudentT(), "real", [3.0], [1.1119347665], [0.3335804299, 4.0]),
    (sgp.StudentT(), "constant", [7.0], [7.0], [2.1, 4.0]),
    (sgp.StudentT(), "none", [0.0], [1.0], [0.3, 4.0]),
    (sgp.HeteroscedasticGaussian(), "real", [2.9, -0.8990900185], [1.3564659966, 1.0], []),
    (sgp.HeteroscedasticGaussian(), "constant", [7.0, 0.7419373447], [7.0, 1.0], []),
    (sgp.HeteroscedasticGaussian(), "none", [0.0, -1.2039728043], [1.0, 1.0], []),
    (sgp.Poisson(), "count", [0.5877866649], [1.0], []),
    (sgp.Poisson(), "none", [0.0], [1.0], []),
    (sgp.NegativeBinomial(), "count", [0.5877866649], [1.0], [5.5862068966]),
    (sgp.NegativeBinomial(), "none", [0.0], [1.0], [10.0]),
    (sgp.Bernoulli(), "class", [0.2876820725], [1.0], []),
    (sgp.Bernoulli(), "none", [0.0], [1.0], []),
    (sgp.Bernoulli(link="probit"), "class", [0.1800123698], [1.0], []),
    (sgp.Binomial(7), "count", [-0.993251773], [1.0], []),
    (sgp.Binomial(7), "none", [0.0], [1.0], []),
    (sgp.Categorical(3), "class", [0.2703100721, 0.5579921445, -0.8283022166], [1.0] * 3, []),
    (sgp.Categorical(3), "none", [0.0] * 3, [1.0] * 3, []),
    (sgp.Ordinal(4), "class", [0.0], [1.0], [-0.6931471806, [1.9459101491, 0.8266785732]]),
    (sgp.Ordinal(4), "none", [0.0], [1.0], [-LOGIT, [LOGIT, LOGIT]]),
    (sgp.Exponential(), "positive", [1.0296194172], [1.0], []),
    (sgp.Gamma(), "positive", [1.0296194172], [1.0], [3.0988142292]),
    (sgp.Gamma(), "constant", [1.9459101491], [1.0], [2.0]),
    (sgp.Gamma(), "none", [0.0], [1.0], [2.0]),
    (sgp.LogNormal(), "positive", [0.6899975092], [0.8646780253], [0.2594034076]),
    (sgp.LogNormal(), "constant", [1.9459101491], [1.0], [0.3]),
    (sgp.LogNormal(), "none", [0.0], [1.0], [0.3]),
    (sgp.Beta(), "share", [-0.1603426501], [1.0], [7.5068493151]),
    (sgp.Beta(), "none", [0.0], [1.0], [10.0]),
]


@pytest.mark.parametrize(("family", "data", "offset", "scale", "parameters"), STARTS)
def test_where_learning_starts(family, data, offset, scale, parameters):
    """The numbers that the first version of the library started from."""
    y = np.array(Y[data])
    close(family.location(y)[0], offset, 1e-9)
    close(family.location(y)[1], scale, 1e-9)
    found = [number for _, number in unwrap(family.start(y)).plain_parameters()]
    assert len(found) == len(parameters)
    for number, expected in zip(found, parameters, strict=True):
        close(number, expected, 1e-9)


def test_where_learning_starts_with_columns():
    """From the values; from rates where there are exposures or trials."""
    y = np.array([0.0, 2.0, 5.0, 1.0, 1.0])
    size = np.array([1.0, 4.0, 9.0, 2.0, 2.0])
    rows = np.stack([y, size], axis=-1)
    close(sgp.Poisson(exposure=True).location(rows)[0], np.log(9 / 18), 1e-12)
    close(sgp.Binomial(None).location(rows)[0], special.logit(10 / 20), 1e-12)
    for family in (sgp.Gaussian(error=True), sgp.Weighted(sgp.Gaussian())):
        close(family.location(rows), sgp.Gaussian().location(y), 1e-12)
    noise = unwrap(sgp.Gaussian().start(y)).noise
    close(unwrap(sgp.Censored(sgp.Gaussian()).start(rows)).base.noise, noise, 1e-12)
    counts = np.array([[3.0, 0, 1], [2, 0, 1]])
    shares = np.log(np.array([6.0, 1, 3]))
    close(sgp.Multinomial(3).location(counts)[0], shares - shares.mean(), 1e-12)
    drawn = np.random.default_rng(0).dirichlet([8.0, 4.0, 2.0], 500)
    blank = sgp.Dirichlet(3)
    close(special.softmax(blank.location(drawn)[0]), [8 / 14, 4 / 14, 2 / 14], 0.05)
    close(unwrap(blank.start(drawn)).concentration, 2 * 14 + 1, 0.1)  # half of it taken for noise


# -- what a user writes --------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, eq=False)
class Soft(sgp.Likelihood):
    """All that has to be written; and one parameter."""

    softness: float = 1.0

    def log_density(self, y, f):
        return -np.sqrt(self.softness**2 + (y - f[..., 0]) ** 2)


def test_a_users_family_with_a_density_only():
    family = Soft(np.asarray(1.0))
    y, (mean, covariance) = np.array([0.2, 3.0, -1.0]), ordinary(1, 3)
    residual = y - mean[:, 0]
    gradient, hessian = family.derivatives(y, mean)
    close(gradient[:, 0], residual / np.sqrt(1 + residual**2), 1e-9)
    close(hessian[:, 0, 0], -((1 + residual**2) ** -1.5), 1e-7)
    by_softness = family.parameter_gradient(y, mean)["softness"]
    close(by_softness, -1 / np.sqrt(1 + residual**2), 1e-9)
    for method in ("expected", "curvature", "log_predictive", "expected_parameter_gradient"):
        getattr(family, method)(y, mean, covariance)
    for call in (
        lambda: family.moments(mean),
        lambda: family.cdf(y, mean),
        lambda: family.sample(mean, np.random.default_rng(0)),
    ):
        with pytest.raises(sgp.ConfigurationError, match="Soft"):
            call()


class Logit(Warp):
    """Shares as log odds."""

    support = OpenInterval(0.0, 1.0)

    def forward(self, y):
        return special.logit(y)

    def inverse(self, z):
        return special.expit(z)

    def log_slope(self, y):
        return -np.log(y) - np.log1p(-y)


class LogitNormal(Warped):
    """Shares whose log odds are normal."""

    warp = Logit()
    base = sgp.Gaussian(np.asarray(0.5))


def test_a_warped_family_is_another_one_on_another_scale():
    family, (mean, covariance) = LogitNormal(), ordinary(1, 3)
    f, y = np.array([[0.4]]), np.linspace(0, 1, 2003)[1:-1, None]
    density = np.exp(family.log_density(y, f))[:, 0]
    close(np.sum(density) * (y[1] - y[0]), 1.0, 1e-9)
    close(np.cumsum(density)[::500] * (y[1] - y[0]), family.cdf(y[::500, 0], f), 2e-3)
    slope = differences.gradient(
        lambda y: family.predictive_cdf(y[:, 0], mean, covariance), np.array([[0.3]] * 3), 1e-3
    )
    value = family.log_predictive(np.full(3, 0.3), mean, covariance)
    close(np.exp(value), slope[:, 0], 1e-6)
    values = quantiles(family, mean, covariance, 0.9)
    close(family.predictive_cdf(values, mean, covariance), 0.9, 1e-9)
    draws = family.sample(np.full((20_000, 1), 0.4), np.random.default_rng(0))
    close(np.mean(draws < values[0]), family.cdf(values[:1], f), 0.01)
    bounds = sgp.Censored(family).log_density(np.array([[0.7, 0.0], [0.7, 1.0]]), f[[0, 0]])
    close(np.exp(bounds[1]), 1 - family.cdf(np.array([0.7]), f)[0], 1e-9)
    close(bounds[0], family.log_density(np.array([0.7]), f)[0], 1e-12)


# -- settings ------------------------------------------------------------------------------------


def test_classes_are_counted():
    assert class_count(sgp.Weighted(sgp.Categorical(4))) == 4
    assert class_count(sgp.Ordinal(4, gaps=GAPS)) == 4
    assert class_count(sgp.Bernoulli()) == 2
    assert class_count(sgp.Multinomial(4)) == class_count(sgp.Poisson()) == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: sgp.Bernoulli("cloglog"),
        lambda: sgp.Weighted(3),
        lambda: sgp.Weighted(sgp.Gaussian),
        lambda: sgp.Censored(sgp.Categorical(3)),
        lambda: sgp.Censored(sgp.Multinomial(3)),
        lambda: sgp.Censored(sgp.Ordinal(3)),
    ],
)
def test_settings_that_cannot_be(make):
    with pytest.raises(sgp.ConfigurationError, match=r"(?s)^expected .+; got .+\. .+"):
        make()
