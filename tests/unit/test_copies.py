"""States that are copied or pickled, as river and scikit-learn do."""

import copy
import pickle

import numpy as np
import pytest
from tests._reference import build

import streamgp as sgp
from streamgp.inference.sparse.learner import Learner
from streamgp.parameters import free_vector

X = np.linspace(0, 6, 20)
COPIES = [copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing))]


@pytest.mark.parametrize("copied", COPIES)
def test_a_copied_state_has_the_same_numbers_and_no_more(copied):
    learner = Learner()
    channel = build.channel(build.gaussian(0.3, trainable=True), [[1.0]])
    state = learner.init(build.model([channel], trainable=True), build.points(X[::4]))
    state, _ = learner.step(state, build.rows((0, X, np.sin(X))))
    again = copied(state)
    assert set(vars(again)) == {"model", "points", "absorbed", "heard"}
    for got, wanted in (
        (free_vector(again.model), free_vector(state.model)),
        (again.points[0], state.points[0]),
        *zip(again.absorbed.arrays(), state.absorbed.arrays(), strict=True),
        (again.heard, state.heard),
    ):
        assert got is not wanted
        assert got.dtype == np.float64
        np.testing.assert_array_equal(got, wanted)
    for got, wanted in zip(
        learner.predict(again, X[:, None], 0), learner.predict(state, X[:, None], 0), strict=True
    ):
        np.testing.assert_allclose(got, wanted, rtol=1e-10)


@pytest.fixture(scope="module")
def model():
    model = sgp.ContinualGP({"a": sgp.Gaussian(), "b": sgp.Poisson()}, latents=2)
    model.update({"a": (X, np.sin(X)), "b": (X[:4], np.arange(4.0))})
    return model


@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_has_the_same_bytes(model, copied):
    data = model.to_bytes()
    again = copied(model)
    assert again.to_bytes() == data
    again.update({"a": (X, np.cos(X))})
    assert again.observations["a"] == 2 * len(X)
    assert model.to_bytes() == data


@pytest.mark.parametrize("copied", COPIES)
def test_predictions_can_be_copied(model, copied):
    predictions = model.predict(X)
    again = copied(predictions)
    np.testing.assert_allclose(again["a"].interval(), predictions["a"].interval())
    for joint in (False, True):
        np.testing.assert_allclose(
            again["a"].sample(2, joint=joint), predictions["a"].sample(2, joint=joint), rtol=1e-9
        )
    np.testing.assert_allclose(
        again.sample(2, joint=True)["b"], predictions.sample(2, joint=True)["b"]
    )
