"""States that are copied or pickled, as river and scikit-learn do."""

import copy
import pickle

import jax
import numpy as np
import pytest
from tests._reference import build

import streamgp as sgp
from streamgp.inference.learner import Learner

X = np.linspace(0, 6, 20)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_a_copied_state_keeps_its_precision(copied):
    points = build.inducing(np.linspace(-2, 2, 4))
    state = Learner(learning=None).init(build.one_gaussian(), points)
    with jax.enable_x64(False):
        again = copied(state)
    assert jax.tree.structure(again) == jax.tree.structure(state)
    for got, wanted in zip(jax.tree.leaves(again), jax.tree.leaves(state), strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(got, wanted)


COPIES = [copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing))]


@pytest.fixture(scope="module")
def model():
    with jax.enable_x64(True):
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
