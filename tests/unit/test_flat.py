"""Data that begin with one value only: nothing to learn from, and no trap for what follows."""

import dataclasses

import numpy as np
import pytest

import streamgp as sgp
from streamgp.data.batch import Rows
from streamgp.online.progress import Progress
from streamgp.online.schedule import Schedule

X = np.linspace(0, 1, 12)


POINTS = {"inducing": sgp.Adaptive(budget=30)}


def flat_then_jump(likelihood, past):
    model = sgp.ContinualGP(likelihood, **past)
    for part in (X[::2], X[1::2]):
        model.update(part, np.ones(6))
    return model


@pytest.mark.parametrize(
    ("likelihood", "past"),
    [
        pytest.param(sgp.Gaussian(), POINTS, id="real"),
        pytest.param(sgp.Gamma(), {"engine": "dense"}, id="amount"),
        pytest.param(sgp.Gamma(), POINTS, id="amount at points"),
    ],
)
def test_a_jump_after_constant_data_is_learned_and_they_are_kept(likelihood, past):
    model = flat_then_jump(likelihood, past)
    kernel = model.hyperparameters["latents"][0]
    assert kernel["lengthscale"] < 0.2  # as it started: constant data would have any length
    for part in (X[::2], X[1::2]):
        model.update(1.1 + part, 100 + np.sin(9 * part))
    assert model.predict([1.6]).mean == pytest.approx(100, rel=0.1)
    assert model.predict([0.5]).mean == pytest.approx(1, abs=2)
    assert model.predict([0.5]).std < 20


def test_samples_one_by_one_are_the_same_as_updates():
    one, other = (sgp.ContinualGP(sgp.Gaussian()) for _ in range(2))
    y = np.append(np.ones(10), [1.5, 2.0])
    one.update_many(X, y)
    for x, value in zip(X, y, strict=True):
        other.update([x], [value])
    for a, b in zip(one.inducing_points, other.inducing_points, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(one.predict(X).mean, other.predict(X).mean, rtol=1e-6)
    np.testing.assert_allclose(one.predict(X).std, other.predict(X).std, rtol=1e-6)


def rows(y, channel=0):
    y = np.asarray(y, float)
    return Rows(np.zeros((len(y), 1)), y[:, None], np.full(len(y), channel), ("0", "1"))


@pytest.mark.parametrize(
    ("likelihoods", "seen", "new", "flat"),
    [
        ([sgp.Gaussian()], [], rows([2.0, 2.0]), True),
        ([sgp.Gaussian()], [rows([2.0])], rows([2.0]), True),
        ([sgp.Gaussian()], [rows([2.0])], rows([2.0, 2.1]), False),
        ([sgp.Gaussian()], [rows([2.0, 2.1])], rows([2.1]), False),
        ([sgp.Gaussian(), sgp.Gaussian()], [rows([2.0])], rows([3.0], 1), True),
        ([sgp.Gaussian(), sgp.Gaussian()], [rows([2.0, 1.0])], rows([3.0], 1), False),
        ([sgp.Poisson()], [], rows([0.0, 0.0]), False),  # probabilities have a bound
    ],
)
def test_flat_is_one_value_of_a_continuum_in_every_channel(likelihoods, seen, new, flat):
    model = sgp.ContinualGP({str(i): likelihood for i, likelihood in enumerate(likelihoods)})
    progress = Progress(dict.fromkeys(model.channels, 0))
    for past in seen:
        progress = dataclasses.replace(progress, levels=progress.levels_with(past))
    schedule = Schedule(sgp.VEM(), sgp.Forgetting(), model.likelihoods)
    assert schedule._is_flat(progress, new) is flat
