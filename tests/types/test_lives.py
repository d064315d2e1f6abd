"""Shapes and types are as annotated, through short lives of models of every kind.

python -m pytest -o addopts= -p tests.checking tests/types
"""

import numpy as np
import pytest
from jaxtyping import TypeCheckError
from tests.families import FAMILIES

import streamgp as sgp
from streamgp.numerics import linalg


def _live(model, x, y):
    """A batch, a sample, and what can be asked of a model of any family."""
    model.update(x[:-1], y[:-1])
    model.update(x[-1:], y[-1:])
    prediction = model.predict(x)
    assert len(prediction.mean) == len(prediction.sample(2)[0]) == len(x)
    return prediction


def _rows(name):
    observed = np.array(FAMILIES[name].observed, float)
    return np.arange(6.0), np.resize(observed, (6, *observed.shape[1:]))


def test_a_wrong_shape_is_noticed():
    with pytest.raises(TypeCheckError, match="parameters of streamgp"):
        linalg.cholesky(np.zeros(3))


def test_a_wrong_type_is_noticed():
    with pytest.raises(TypeCheckError, match="parameters of streamgp"):
        sgp.ContinualGP(sgp.Gaussian(), engine=3)


@pytest.mark.parametrize("name", FAMILIES)
def test_families(name):
    _live(sgp.ContinualGP(FAMILIES[name].likelihood, learning=None), *_rows(name))


@pytest.mark.parametrize("name", ["gaussian", "categorical", "heteroscedastic", "censored"])
@pytest.mark.parametrize("engine", ["dense", "sparse"])
def test_other_engines(engine, name):
    _live(sgp.ContinualGP(FAMILIES[name].likelihood, engine=engine), *_rows(name))


@pytest.mark.parametrize("name", ["gaussian", "poisson", "gamma", "beta"])
def test_intervals_and_scores(name):
    x, y = _rows(name)
    model = sgp.ContinualGP(FAMILIES[name].likelihood)
    prediction = _live(model, x, y)
    assert sgp.from_bytes(model.to_bytes()).channels == model.channels
    assert np.shape(prediction.interval(0.9)) == (2, 6)
    assert prediction.log_density(y).shape == prediction.crps(y).shape == (6,)


def test_several_inputs():
    x = np.random.default_rng(0).normal(size=(20, 3))
    _live(sgp.ContinualGP(sgp.Gaussian()), x, x[:, 0] ** 2)


@pytest.mark.parametrize("engine", ["sparse", "dense", "chain"])
def test_several_channels(engine):
    model = sgp.ContinualGP({"level": sgp.Gaussian(), "events": sgp.Poisson()}, engine=engine)
    x = np.arange(8.0)
    model.update({"level": (x, np.sin(x)), "events": (x[::2], np.ones(4))})
    model.update({"level": (x + 8, np.sin(x))})
    assert model.predict(x)["events"].mean.shape == (8,)
