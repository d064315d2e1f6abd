import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from river import compose, preprocessing, proba

from streamgp import RBF, Adaptive, ConfigurationError, DataError, Fixed, Gaussian, Matern32, fixed
from streamgp.river import ContinualGPClassifier, ContinualGPRegressor

CHEAP = {"kernel": RBF(lengthscale=1.0, variance=1.0), "learning": None}


def regressor(rows=40, **settings):
    model = ContinualGPRegressor(likelihood=Gaussian(fixed(0.1)), **CHEAP, **settings)
    for t in np.linspace(0, 6, rows):
        model.learn_one({"t": t}, np.sin(t))
    return model


def test_it_predicts_from_the_first_sample_on():
    model = ContinualGPRegressor(**CHEAP)
    assert model.predict_one({"t": 0.0}) == 0.0
    assert model.predict_one({"t": 0.0}, with_dist=True).sigma == 1.0
    model.learn_one({"t": 0.0}, 3.0)
    assert model.predict_one({"t": 0.0}) == pytest.approx(3.0)


def test_it_learns_a_curve_and_says_how_well():
    model = regressor()
    near, far = (model.predict_one({"t": t}, with_dist=True) for t in (3.0, 30.0))
    assert isinstance(near, proba.Gaussian)
    assert near.mu == pytest.approx(np.sin(3.0), abs=0.05)
    assert model.predict_one({"t": 3.0}) == near.mu
    assert 0.1 < near.sigma < 0.15
    assert far.sigma > 0.9


def test_a_missing_feature_takes_its_mean_and_a_new_one_is_ignored():
    model = regressor()
    at_mean = model.predict_one({"t": 3.0})
    for sample in ({}, {"t": None}, {"t": float("nan")}):
        assert model.predict_one(sample) == pytest.approx(at_mean)
    assert model.predict_one({"t": 3.0, "new": 1e9}) == at_mean
    model.learn_one({"new": 1.0}, 0.5)
    with pytest.raises(DataError, match="OneHotEncoder"):
        model.predict_one({"t": "late"})


def test_data_frames_are_their_rows_in_order():
    t = np.linspace(0, 6, 45)
    frame = pd.DataFrame({"t": t}, index=range(100, 145))
    many = ContinualGPRegressor(likelihood=Gaussian(fixed(0.1)), **CHEAP)
    many.learn_many(frame, pd.Series(np.sin(t)))
    predicted = many.predict_many(frame)
    assert predicted.index.equals(frame.index)
    one = regressor(45)
    np.testing.assert_allclose(predicted, [one.predict_one({"t": v}) for v in t], rtol=1e-6)


def test_classes_may_appear_at_any_time():
    model = ContinualGPClassifier(**CHEAP)
    assert model.predict_proba_one({"t": 0.0}) == {}
    assert model.predict_one({"t": 0.0}) is None
    model.learn_one({"t": 0.0}, "a")
    assert model.predict_proba_one({"t": 0.0}) == {"a": 1.0}
    for i in range(39):
        model.learn_one({"t": i % 5 - 2.0}, "a" if i % 5 < 2 else "b")
    assert len(model._questions) == 1  # two classes are one model
    for i in range(30):
        model.learn_one({"t": i % 10 - 2.0}, "a" if i % 10 < 2 else "b" if i % 10 < 5 else "c")
    for t, label in ((-2.0, "a"), (1.5, "b"), (6.0, "c")):
        probabilities = model.predict_proba_one({"t": t})
        assert list(probabilities) == ["a", "b", "c"]
        assert sum(probabilities.values()) == pytest.approx(1.0)
        assert model.predict_one({"t": t}) == label
    frame = model.predict_proba_many(pd.DataFrame({"t": [6.0]}, index=["row"]))
    assert frame.loc["row"].to_dict() == pytest.approx(model.predict_proba_one({"t": 6.0}))


def test_the_words_of_continual_gp_are_taken_too():
    noise = Gaussian(fixed(0.1))
    model = ContinualGPRegressor(
        likelihood=noise, learning=None, latents=CHEAP["kernel"], inducing=Adaptive(budget=64)
    )
    for t in np.linspace(0, 6, 40):
        model.learn_one({"t": t}, np.sin(t))
    assert model.predict_one({"t": 2.2}) == regressor(budget=64).predict_one({"t": 2.2})
    assert model.clone()._get_params()["inducing"] == Adaptive(budget=64)
    classifier = ContinualGPClassifier(
        learning=None, latents=[Matern32()], inducing=Fixed([[-1.0], [1.0]])
    )
    for t in (-1.0, 1.0, -0.5, 0.5):
        classifier.learn_one({"t": t}, t > 0)
    (question,) = classifier._questions
    assert question.model.hyperparameters["latents"][0]["kind"] == "Matern32"
    np.testing.assert_array_equal(question.model.inducing_points[0], [[-1.0], [1.0]])


@pytest.mark.parametrize("kind", [ContinualGPRegressor, ContinualGPClassifier])
def test_two_words_for_one_thing_are_an_error(kind):
    with pytest.raises(ConfigurationError, match="either in `kernel` or in `latents`; got both"):
        kind(RBF(), latents=[RBF()]).learn_one({"t": 1.0}, 1.0)
    with pytest.raises(ConfigurationError, match="either `inducing`, or `budget`"):
        kind(budget=16, inducing=Adaptive()).learn_one({"t": 1.0}, 1.0)


def test_it_ends_a_pipeline():
    model = compose.Pipeline(preprocessing.StandardScaler(), ContinualGPRegressor(**CHEAP))
    for t in np.random.default_rng(0).uniform(0, 6, 40):
        model.learn_one({"t": t}, t)
    assert model.predict_one({"t": 5.0}) > model.predict_one({"t": 1.0})


@pytest.mark.parametrize(
    ("missing", "extra"), [("river", "streamgp[river]"), ("sklearn", "streamgp[sklearn]")]
)
def test_without_the_package_it_says_what_to_install(missing, extra):
    program = (
        "import sys, streamgp\n"
        "assert not {'river', 'sklearn'} & set(sys.modules)\n"
        f"sys.modules[{missing!r}] = None\n"
        f"try:\n    import streamgp.{missing}\n"
        f"except ImportError as error:\n    assert {extra!r} in str(error)\n"
        "else:\n    raise AssertionError\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)
