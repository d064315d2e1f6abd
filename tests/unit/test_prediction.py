"""What a prediction can be asked, for every family; draws of functions."""

import numpy as np
import pytest
from scipy import stats

import streamgp as sgp
from streamgp.parameters import unwrap
from streamgp.prediction.predictor import Predictions

X = np.linspace(0, 6, 9)
# The contract suite asks every family for everything; these are one of each form.
FAMILIES = {
    "gaussian": sgp.Gaussian(),
    "poisson": sgp.Poisson(),
    "bernoulli": sgp.Bernoulli(),
    "categorical": sgp.Categorical(4),
    "ordinal": sgp.Ordinal(4),
}


def ready(likelihood):
    return unwrap(likelihood.start(np.zeros(0)))


def prediction_of(likelihood, rows=5, spread=0.3, centre=0.0):
    rng = np.random.default_rng(0)
    j = likelihood.latents
    mean = centre + rng.normal(size=(rows, j))
    return sgp.Prediction(ready(likelihood), mean, np.tile(spread**2 * np.eye(j), (rows, 1, 1)))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_makes_a_frame(family):
    prediction = prediction_of(FAMILIES[family])
    frame = prediction.to_frame(0.8)
    if family in ("bernoulli", "categorical", "ordinal"):
        np.testing.assert_allclose(frame.iloc[:, :-1].sum(axis=1), 1.0)
        best = frame.iloc[:, :-1].to_numpy().argmax(axis=1)
        np.testing.assert_array_equal(frame["label"], best)
        return
    assert list(frame.columns) == ["mean", "std", "lower", "upper"]
    lower, upper = prediction.interval(0.8)
    np.testing.assert_array_equal(frame["lower"], lower)
    np.testing.assert_array_equal(frame["upper"], upper)
    np.testing.assert_array_equal(prediction.to_frame(0.8, backend="polars")["mean"], frame["mean"])


def test_no_rows_at_all():
    empty = prediction_of(sgp.Poisson(), rows=0)
    assert empty.mean.shape == (0,)
    assert empty.quantile(0.3).shape == (0,)
    assert len(empty.to_frame()) == 0
    assert empty.log_density([]).shape == (0,)


def test_no_rows_of_a_model():
    model = sgp.ContinualGP({"a": sgp.Gaussian(), "b": sgp.Categorical(3)}, learning=None)
    model.update({"a": (X, np.sin(X)), "b": (X, np.arange(9) % 3)})
    nowhere = model.predict([])
    assert nowhere["b"].probabilities.shape == (0, 3)
    assert len(nowhere.to_frame()) == 0
    for joint in (False, True):
        assert nowhere["a"].sample(4, joint=joint).shape == (4, 0)
        assert nowhere.sample(4, joint=joint)["b"].shape == (4, 0)


@pytest.mark.parametrize(
    "likelihood", [sgp.Multinomial(3), sgp.Dirichlet(3)], ids=["counts", "shares"]
)
def test_observations_of_several_numbers(likelihood):
    prediction = prediction_of(likelihood)
    frame = prediction.to_frame()
    names = prediction.likelihood.columns
    assert list(frame.columns) == [f"{name}_{what}" for name in names for what in ("mean", "std")]
    np.testing.assert_array_equal(frame[f"{names[1]}_mean"], prediction.mean[:, 1])
    assert prediction.mean.shape == prediction.std.shape == (5, 3)
    np.testing.assert_allclose(prediction.mean.sum(axis=1), 1.0)
    draws = prediction.sample(7)
    assert draws.shape == (7, 5, 3)
    same, each = prediction.log_density(draws[0, 0]), prediction.log_density(draws[0])
    assert same[0] == each[0]
    for wrong in (0.5, [0.5, 0.5], np.ones((4, 3)), "many", draws):
        with pytest.raises(sgp.DataError, match=r"numbers of shape \(5, 3\) or \(3,\)"):
            prediction.log_density(wrong)
    with pytest.raises(sgp.DataError, match="support"):
        prediction.log_density([1.0, -1.0, 1.0])
    with pytest.raises(sgp.DataError, match="ordered"):
        prediction.interval()


def test_a_frame_of_an_unknown_library():
    with pytest.raises(sgp.ConfigurationError, match="'pandas' or 'polars'"):
        prediction_of(sgp.Gaussian()).to_frame(backend="excel")


# -- quantiles -----------------------------------------------------------------------------------


def poisson_cdf(y, mean, deviation):
    """P(Y ≤ y) for log rates N(mean, deviation²), by a sum over a hundred thousand of them."""
    f = mean + deviation * np.linspace(-9, 9, 100_001)
    weights = stats.norm.pdf(np.linspace(-9, 9, 100_001))
    return np.sum(weights * stats.poisson.cdf(y, np.exp(f))) / np.sum(weights)


@pytest.mark.parametrize("level", [1e-4, 0.025, 0.975])
def test_quantiles_of_counts_are_exact(level):
    """Also where the nodes have to be many, and where counts are too large to be added up."""
    rows = [(0.0, 0.1), (3.0, 1.0), (4.0, 1.4), (9.0, 0.01), (9.0, 1.0)]
    mean, deviation = np.array(rows).T
    prediction = sgp.Prediction(sgp.Poisson(), mean[:, None], deviation[:, None, None] ** 2)
    found = prediction.quantile(level)
    np.testing.assert_array_equal(found, np.floor(found))
    assert (found[:3] < 1024).all()
    assert (found[3:] > 100).all()
    # In the last, components are narrower than the finest nodes are apart.
    slack = min(level, 1 - level) * np.array([1e-6, 1e-6, 1e-6, 1e-6, 0.05])
    for (m, s), quantile, more in zip(rows, found, slack, strict=True):
        assert poisson_cdf(quantile, m, s) >= level - more
        assert poisson_cdf(quantile - 1, m, s) <= level + more


@pytest.mark.parametrize("likelihood", [sgp.Gamma(), sgp.StudentT(), sgp.HeteroscedasticGaussian()])
def test_intervals_are_levels_of_the_distribution_function(likelihood):
    prediction = prediction_of(likelihood, spread=0.8)
    for end, level in zip(prediction.interval(0.9), (0.05, 0.95), strict=True):
        below = prediction.cdf(end)
        np.testing.assert_allclose(below, level, atol=1e-7)


@pytest.mark.parametrize("rows", [1, 7, 128, 129])
def test_as_many_answers_as_rows(rows):
    prediction = prediction_of(sgp.Poisson(), rows)
    assert len(prediction.interval()[0]) == len(prediction.mean) == rows
    assert len(prediction.log_density(np.ones(rows))) == rows


def test_many_rows_are_the_rows_one_by_one():
    """Over the border of a chunk."""
    many = prediction_of(sgp.LogNormal(), rows=2500)
    rows = [0, 1023, 1024, 2047, 2048, 2499]
    few = sgp.Prediction(many.likelihood, many._mean[rows], many._covariance[rows])
    for ask in (
        lambda p: p.mean,
        lambda p: p.std,
        lambda p: p.quantile(0.3),
        lambda p: p.log_density(1.0),
    ):
        np.testing.assert_allclose(ask(many)[rows], ask(few), rtol=1e-9)


# -- draws ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pair():
    model = sgp.ContinualGP(
        {"a": sgp.Gaussian(noise=0.01), "b": sgp.Gaussian(noise=0.01)},
        latents=[sgp.RBF(1.0)],
        mixing={"a": [[1.0]], "b": [[-2.0]]},
        inducing=sgp.Fixed(X),
        learning=None,
        mean=None,  # levels of their own would set the channels apart
    )
    model.update({"a": (X[:3], np.sin(X[:3]))})
    return model


def test_joint_draws_are_functions(pair):
    """Neighbours agree within a draw, draws do not; each input has the marginal distribution."""
    grid = np.linspace(2, 9, 60)
    prediction = pair.predict(grid, "a")
    draws = prediction.sample(4000, joint=True)
    assert draws.shape == (4000, 60)
    step = np.diff(draws[:, -10:], axis=1)
    assert np.std(step) < 0.25 * np.std(draws[:, -10:])
    independent = np.diff(prediction.sample(200)[:, -10:], axis=1)
    assert np.std(independent) > 1.2 * np.std(draws[:, -10:])
    np.testing.assert_allclose(draws.mean(axis=0), prediction.mean, atol=0.08)
    np.testing.assert_allclose(draws.std(axis=0), prediction.std, rtol=0.08, atol=0.01)
    np.testing.assert_array_equal(draws[:5], prediction.sample(4000, joint=True)[:5])


def test_joint_draws_agree_across_channels(pair):
    """b = −2·a, both far from the data: only draws that are joint show it."""
    predictions = pair.predict(np.array([20.0, 21.0]))
    assert isinstance(predictions, Predictions)
    joint, apart = predictions.sample(500, joint=True), predictions.sample(500)
    about = {name: predictions[name].mean for name in "ab"}

    def correlation(draws):
        return np.corrcoef(*[draws[name][:, 0] - about[name][0] for name in "ab"])[0, 1]

    assert correlation(joint) < -0.99
    assert abs(correlation(apart)) < 0.2


def test_frames_of_several_channels(pair):
    frame = pair.predict(X).to_frame()
    assert list(frame.columns[:3]) == ["x", "a_mean", "a_std"]
    np.testing.assert_allclose(frame["b_upper"], pair.predict(X, "b").interval()[1], rtol=1e-12)


def test_channels_together_are_what_each_is_alone(pair):
    """So many rows that the second channel begins within a chunk."""
    grid = np.linspace(0, 12, 3000)
    together = pair.predict(grid)
    for name in "ab":
        alone = pair.predict(grid, name)
        np.testing.assert_allclose(together[name].mean, alone.mean, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(together[name].variance, alone.variance, rtol=1e-9)


def test_joint_draws_have_a_limit(pair):
    with pytest.raises(sgp.DataError, match=r"at most 4096 inputs.*; got 5000\. .*fewer"):
        pair.predict(np.linspace(0, 1, 5000), "a").sample(joint=True)
    with pytest.raises(sgp.DataError, match="made by a model"):
        prediction_of(sgp.Gaussian()).sample(joint=True)


def test_draws_are_independent_unless_asked_for_jointly():
    model = sgp.ContinualGP({"a": sgp.Gaussian(), "b": sgp.Gaussian()}, learning=None)
    model.update({"a": (np.arange(4.0), np.arange(4.0))})
    both = model.predict([50.0, 50.0 + 1e-9])  # far off, where the prior has its say
    for draw in (both["a"].sample, lambda *args, **options: both.sample(*args, **options)["a"]):
        apart, together = draw(400), draw(400, joint=True)
        assert np.corrcoef(together.T)[0, 1] > 0.8
        assert abs(np.corrcoef(apart.T)[0, 1]) < 0.3


def test_a_rate_of_nearly_zero_with_a_huge_spread_has_a_variance():
    mean, variance = sgp.Poisson().predictive_moments(
        np.full((1, 1), -1e5), np.full((1, 1, 1), 1e4)
    )
    assert mean[0] == variance[0] == 0.0
    mean, variance = sgp.Poisson().predictive_moments(np.ones((1, 1)), np.full((1, 1, 1), 0.3))
    assert variance[0] == pytest.approx(mean[0] + mean[0] ** 2 * np.expm1(0.3))


def test_what_is_beyond_all_numbers_is_infinite():
    """As a trend of log y far ahead; warnings of NumPy would be errors here."""
    mean = np.array([[0.0], [1e3], [-1e3], [1e5], [-1e5], [1e3]])
    variance = np.array([1.0, 800.0, 800.0, 1e5, 1e5, 0.0])[:, None, None]
    prediction = sgp.Prediction(sgp.LogNormal(0.3), mean, variance)
    total = 0.09 + variance[:, 0, 0]
    expected = [np.exp(0.5 * total[0]), np.inf, np.exp(-1e3 + 0.5 * total[2]), np.inf, 0.0, np.inf]
    np.testing.assert_allclose(prediction.mean, expected, rtol=1e-9)
    for part in (prediction.variance, prediction.std, prediction.aleatoric, prediction.epistemic):
        assert np.isinf(part[[1, 3]]).all()
        assert not np.isnan(part).any()
        assert np.all(part >= 0)
    assert prediction.epistemic[-1] == 0.0  # f is known
    low, high = prediction.interval()
    assert np.all(low <= high)
    assert np.isinf(prediction.sample(3)[:, 3]).any()
    assert not np.isnan(prediction.sample(3)).any()
    assert not np.isnan(prediction.crps(np.ones(6))).any()
