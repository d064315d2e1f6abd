import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold
from skpro.metrics import CRPS

from streamgp import (
    RBF,
    VEM,
    ConfigurationError,
    Constant,
    ContinualGP,
    DataError,
    Gaussian,
    Seasonal,
    Trend,
    fixed,
)
from streamgp.adapters.distributions import DRAWS
from streamgp.skpro import ContinualGPRegressor

RNG = np.random.default_rng(0)
X = pd.DataFrame({"x": np.linspace(0, 6, 60), "z": RNG.normal(size=60)}, index=range(100, 160))
Y = pd.DataFrame({"height": np.sin(X["x"]) + 0.1 * RNG.normal(size=60)})


def regressor(**settings):
    return ContinualGPRegressor(**{"learning": None, **settings})


def test_updates_are_those_of_a_stream():
    got = ContinualGPRegressor(seed=2).fit(X[:30], Y[:30]).update(X[30:50], Y[30:50])
    stream = ContinualGP({"height": Gaussian()}, latents=[RBF()], seed=2)
    stream.update(X[:30], Y["height"][:30].to_numpy())
    stream.update(X[30:50], Y["height"][30:50].to_numpy())
    wanted = stream.predict(X[50:])
    np.testing.assert_allclose(got.predict(X[50:])["height"], wanted.mean, rtol=1e-12)
    np.testing.assert_allclose(got.predict_var(X[50:])["height"], wanted.variance, rtol=1e-12)
    assert got.model_.observations == {"height": 50}
    assert got.get_tag("capability:update")
    again = got.fit(X[:10], Y[:10])  # fit starts anew
    assert again.model_.observations == {"height": 10}


def test_updates_are_as_good_as_the_whole():
    settings = {"kernel": RBF(1.0, 1.0), "likelihood": Gaussian(fixed(0.1))}
    whole = regressor(**settings).fit(X[["x"]], Y)
    parts = regressor(**settings).fit(X[["x"]][:20], Y[:20])
    for rows in (slice(20, 40), slice(40, 60)):
        parts.update(X[["x"]][rows], Y[rows])
    np.testing.assert_allclose(parts.predict(X[["x"]]), whole.predict(X[["x"]]), atol=5e-2)


def test_gaussian_outputs_are_normal():
    y = pd.DataFrame({"a": Y["height"], "b": -Y["height"]})
    model = regressor().fit(X, y)
    found = model.predict_proba(X)
    assert type(found).__name__ == "Normal"
    pd.testing.assert_index_equal(found.index, X.index)
    pd.testing.assert_frame_equal(found.mean(), model.predict(X))
    pd.testing.assert_frame_equal(found.var(), model.predict_var(X))
    levels = [0.1, 0.9]
    np.testing.assert_allclose(found.quantile(levels), model.predict_quantiles(X, levels))
    interval = model.predict_interval(X, coverage=0.8)
    np.testing.assert_allclose(interval["b"][0.8]["upper"], found.quantile([0.9])["b"][0.9])
    assert CRPS()(y, found) < 0.3


@pytest.mark.parametrize("family", ["Poisson", "StudentT", "Gamma", "HeteroscedasticGaussian"])
def test_other_outputs_are_draws(family):
    y = np.round(3 + 2 * np.sin(X[["x"]])) + 1
    model = regressor(likelihood=family, seed=4).fit(X, y)
    found = model.predict_proba(X[:8])
    assert type(found).__name__ == "Empirical"
    error = 6 * np.sqrt(model.predict_var(X[:8]) / DRAWS)
    assert np.all(np.abs(found.mean() - model.predict(X[:8])) < error)
    below = [
        (found.spl["x"].xs(row, level=1) <= value).mean()
        for row, value in model.predict_quantiles(X[:8], 0.9)["x"][0.9].items()
    ]
    assert np.all(np.array(below) > 0.9 - 6 * np.sqrt(0.09 / DRAWS))


def test_outputs_of_one_law_differ_in_their_draws():
    y = pd.DataFrame({"a": np.round(5 + Y["height"]), "b": np.round(5 + Y["height"])})
    found = regressor(likelihood="Poisson", latents=1).fit(X, y).predict_proba(X[:5])
    assert np.abs(np.corrcoef(found.spl["a"], found.spl["b"])[0, 1]) < 0.5


def test_an_output_may_be_missing():
    y = pd.DataFrame({"a": Y["height"], "b": 2 * Y["height"]})
    y.iloc[20:, 1] = np.nan
    model = regressor().fit(X, y)
    assert model.model_.observations == {"a": 60, "b": 20}
    assert model.update(X[:3], y[:3] * np.nan).model_.observations == {"a": 60, "b": 20}
    assert model.predict(X).notna().all(axis=None)


def test_settings_reach_the_model():
    model = regressor(
        likelihood=["gaussian", "Poisson"], mean=Constant() + Trend(on="x"), latents=2, budget=7
    ).fit(X, pd.DataFrame({"a": Y["height"], 5: np.ones(60)}))
    assert model.model_.channels == ("a", "y1")
    assert model.model_.input_names == ("x", "z")
    assert model.model_.mean_weights["a"]["weights"].shape == (1, 2)
    assert [len(points) for points in model.model_.inducing_points] == [7, 7]
    unlearned, learned = (regressor(learning=rule).fit(X, Y) for rule in (None, VEM()))
    assert str(learned.model_.hyperparameters) != str(unlearned.model_.hyperparameters)


def test_data_that_do_not_go_on():
    model = regressor().fit(X, Y)
    with pytest.raises(DataError, match="outputs"):
        model.update(X, Y.rename(columns={"height": "width"}))
    with pytest.raises(DataError, match="missing"):
        model.predict(X.mask(X["z"] > 0))
    with pytest.raises(ConfigurationError, match="either"):
        regressor(budget=3, inducing=lambda view: view).fit(X, Y)


def test_it_has_a_place_in_cross_validation():
    from skpro.benchmarking.evaluate import evaluate

    scores = evaluate(regressor(), KFold(3, shuffle=True, random_state=0), X, Y, scoring=CRPS())
    assert scores["test_CRPS"].max() < 0.4


@pytest.mark.parametrize(
    ("package", "missing"), [("sktime", "sktime"), ("sktime", "skpro"), ("skpro", "skpro")]
)
def test_a_missing_library_is_named(package, missing):
    code = (
        "import sys, streamgp\n"
        "assert not {'sktime', 'skpro'} & set(sys.modules)\n"
        f"sys.modules[{missing!r}] = None\n"
        f"import streamgp.{package}\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"pip install 'streamgp[{package}]'" in run.stderr


def test_a_season_that_no_such_rows_can_show():
    month = pd.DataFrame({"day": 30.0 * np.arange(60)})
    mean = Constant() + Seasonal(12)
    with pytest.raises(ConfigurationError, match=r"which is 30; .*seasons=\[360\]"):
        regressor(mean=mean).fit(month, Y.set_axis(month.index))
    regressor(mean=mean).fit(month / 30, Y.set_axis(month.index))
