import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from streamgp import (
    RBF,
    VEM,
    Adaptive,
    Bernoulli,
    ConfigurationError,
    Fixed,
    Gaussian,
    HeteroscedasticGaussian,
    Linear,
    Matern32,
    Poisson,
    fixed,
)
from streamgp.sklearn import ContinualGPClassifier, ContinualGPRegressor

KERNEL = RBF(lengthscale=1.0, variance=1.0)
X = np.linspace(0, 6, 40)[:, None]
Y = np.sin(X[:, 0])


def regressor(**settings):
    return ContinualGPRegressor(
        **{"kernel": KERNEL, "likelihood": Gaussian(fixed(0.1)), "learning": None, **settings}
    )


def test_parts_are_as_good_as_the_whole():
    whole = regressor().fit(X, Y)
    parts = regressor()
    for rows in np.split(np.random.default_rng(0).permutation(40), 4):
        parts.partial_fit(X[rows], Y[rows])
    for got, wanted in zip(
        parts.predict(X, return_std=True), whole.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_allclose(got, wanted, atol=5e-3)
    again = parts.fit(X[:10], Y[:10])  # fit starts anew
    assert again.model_.observations == {"y0": 10}


def test_covariance_is_positive_and_its_diagonal_the_variance():
    model = regressor().fit(X[::2], Y[::2])
    _, covariance = model.predict(X, return_cov=True)
    _, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(np.diag(covariance), std**2)
    assert np.min(np.linalg.eigvalsh(covariance)) > 0.1**2 * (1 - 1e-6)
    assert covariance[0, 1] > 0.5 * (covariance[0, 0] - 0.1**2)  # neighbours go together
    with pytest.raises(ValueError, match="both"):
        model.predict(X, return_std=True, return_cov=True)


def test_covariance_where_the_noise_is_a_function_too():
    """It is that of the first latent parameter."""
    model = regressor(likelihood=HeteroscedasticGaussian(), random_state=0).fit(X[::2], Y[::2])
    mean, covariance = model.predict(X, return_cov=True)
    _, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(np.diag(covariance), std**2)
    draws = model.model_.predict(X).sample(20_000, joint=True)
    between = np.cov(draws.T)
    off = ~np.eye(len(X), dtype=bool)
    error = 6 * np.sqrt(np.outer(np.diag(between), np.diag(between)) / 20_000)
    assert np.all(np.abs(between - covariance)[off] < error[off])
    np.testing.assert_array_equal(mean, model.predict(X))


def test_covariance_needs_a_likelihood_around_f():
    model = regressor(likelihood=Poisson()).fit(X, np.round(3 + Y))
    with pytest.raises(ValueError, match="Poisson"):
        model.predict(X, return_cov=True)


def test_outputs_may_have_holes_and_inform_each_other():
    y = np.stack([Y, -Y], axis=1)
    y[10:30, 1] = np.nan
    model = ContinualGPRegressor(budget=20, latents=1, random_state=0).fit(X, y)
    assert model.model_.observations == {"y0": 40, "y1": 20}
    mean, std = model.predict(X, return_std=True)
    assert mean.shape == std.shape == (40, 2)
    np.testing.assert_allclose(mean[10:30, 1], -Y[10:30], atol=0.15)
    assert model.score(X, y) > 0.98
    with pytest.raises(ValueError, match=r"2 output\(s\)"):
        model.partial_fit(X, Y)


def test_each_output_may_have_its_likelihood():
    y = np.stack([Y, Y > 0], axis=1)
    model = regressor(likelihood=[Gaussian(), Bernoulli()], latents=2, random_state=0).fit(X, y)
    assert np.all((model.predict(X)[:, 1] > 0) & (model.predict(X)[:, 1] < 1))
    with pytest.raises(ValueError, match=r"2 likelihood\(s\)"):
        regressor(likelihood=[Gaussian()]).fit(X, y)


def test_one_output_has_no_holes():
    y = Y.copy()
    y[3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        regressor().fit(X, y)


def test_a_pipeline_in_a_search():
    pipeline = make_pipeline(StandardScaler(), regressor(kernel=None))
    kernels = [RBF(lengthscale=fixed(0.4)), RBF(lengthscale=fixed(30.0))]
    grid = {"continualgpregressor__kernel": kernels}
    rows = np.random.default_rng(0).permutation(40)
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(X[rows], Y[rows])
    assert search.best_params_["continualgpregressor__kernel"] is kernels[0]
    assert search.best_score_ > 0.95


def test_a_clone_has_the_settings_and_no_model():
    model = regressor(budget=7).fit(X[:8], Y[:8])
    copy = clone(model)
    assert copy.budget == 7
    with pytest.raises(NotFittedError):
        copy.predict(X)


def test_learning_is_a_name_a_rule_or_none():
    with pytest.raises(ValueError, match="'vem'"):
        regressor(learning="adam").fit(X, Y)


# -- the words of ContinualGP ----------------------------------------------------------------------


def kinds(model):
    return [kernel["kind"] for kernel in model.hyperparameters["latents"]]


def test_latents_may_be_kernels():
    bare = {"likelihood": Gaussian(fixed(0.1)), "learning": None}
    named = ContinualGPRegressor(latents=KERNEL, **bare).fit(X, Y)
    same = ContinualGPRegressor(KERNEL, **bare).fit(X, Y)
    np.testing.assert_array_equal(named.predict(X), same.predict(X))
    several = ContinualGPRegressor(latents=[RBF(), Matern32()], **bare).fit(X, np.stack([Y, Y], 1))
    assert kinds(several.model_) == ["RBF", "Matern32"]
    assert kinds(regressor(kernel=Linear(), latents=2).fit(X, Y).model_) == ["Linear", "Linear"]
    classifier = ContinualGPClassifier(latents=Matern32(), learning=None).fit(X, Y > 0)
    assert kinds(classifier.model_) == ["Matern32"]
    with pytest.raises(ConfigurationError, match="either in `kernel` or in `latents`; got both"):
        regressor(latents=[RBF()]).fit(X, Y)
    with pytest.raises(ConfigurationError, match="at least one latent"):
        regressor(kernel=None, latents=[]).fit(X, Y)


def test_inducing_may_be_a_strategy():
    model = regressor(inducing=Fixed(X[::8])).fit(X, Y)
    np.testing.assert_array_equal(model.model_.inducing_points[0], X[::8])
    named = regressor(inducing=Adaptive(tolerance=0.05, budget=6)).fit(X, Y)
    same = regressor(tolerance=0.05, budget=6).fit(X, Y)
    np.testing.assert_array_equal(named.predict(X), same.predict(X))
    for plain in ({"budget": 6}, {"tolerance": 0.05}):
        with pytest.raises(ConfigurationError, match="either `inducing`, or `budget`"):
            regressor(inducing=Adaptive(), **plain).fit(X, Y)


def test_the_words_survive_a_clone_and_a_search():
    model = regressor(kernel=None, latents=[RBF()], inducing=Adaptive(budget=6), learning=VEM())
    copy = clone(model)
    assert copy.get_params()["inducing"] == Adaptive(budget=6)
    assert len(copy.latents) == 1
    grid = {"inducing": [Fixed(X[:1]), Fixed(X[::4])]}
    rows = np.random.default_rng(0).permutation(40)
    search = GridSearchCV(regressor(), grid, cv=2, error_score="raise").fit(X[rows], Y[rows])
    assert search.best_params_["inducing"] == Fixed(X[::4])


@pytest.mark.parametrize("labels", [["no", "yes"], ["low", "high", "middle"]])
def test_probabilities_follow_the_classes(labels):
    levels = np.digitize(Y, [0.0] if len(labels) == 2 else [-0.4, 0.4])
    order = labels if len(labels) == 2 else ["low", "middle", "high"]
    y = np.array(order)[levels]
    model = ContinualGPClassifier(KERNEL, learning=None, random_state=0)
    model.partial_fit(X[::2], y[::2], classes=labels).partial_fit(X[1::2], y[1::2])
    assert model.classes_.tolist() == sorted(labels)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert model.score(X, y) > 0.8
    for label, column in zip(model.classes_, probabilities.T, strict=True):
        assert column[y == label].mean() > column[y != label].mean() + 0.15


def test_classes_are_named_at_first():
    model = ContinualGPClassifier(KERNEL, learning=None)
    with pytest.raises(ValueError, match="Pass `classes=`"):
        model.partial_fit(X, Y > 0)
    model.partial_fit(X, (Y > 0).astype(int), classes=[0, 1])
    with pytest.raises(ValueError, match="labels among"):
        model.partial_fit(X[:2], [0, 2])
    with pytest.raises(ValueError, match="Leave `classes` out"):
        model.partial_fit(X[:2], [0, 1], classes=[0, 1, 2])
