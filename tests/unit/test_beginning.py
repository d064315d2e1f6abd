"""Models that begin with single values: the first few tell their scale, not the first alone."""

import numpy as np
import pandas as pd
import pytest

import streamgp as sgp

NOISE = np.random.default_rng(1).normal(size=12)


def deviations(model, y, learn_one):
    """The predictive deviation before each value, from the second on."""
    found = []
    for t, value in enumerate(y):
        x = np.array([float(t)])
        if t:
            found.append(float(np.sqrt(model.predict(x).variance[0])))
        learn_one(model, x, np.array([value]))
    return np.array(found)


def by_update(model, x, y):
    model.update(x, y)


def by_sample(model, x, y):
    model.update_many(x, y)


@pytest.mark.parametrize("learn_one", [by_update, by_sample])
@pytest.mark.parametrize("level", [20.0, -1000.0])
def test_a_stream_of_single_values_is_soon_as_sure_as_its_noise(level, learn_one):
    found = deviations(sgp.ContinualGP(sgp.Gaussian()), level + NOISE, learn_one)
    assert found[0] > 20  # of one value, only its size is known
    assert np.all(found[2:] < 6)
    assert np.all(found[2:] > 0.3)


def test_so_is_a_new_key_of_a_fleet():
    fleet = sgp.Fleet(sgp.ContinualGP(sgp.Gaussian()))
    for t in range(4):
        table = pd.DataFrame({"key": ["a", "b"], "t": float(t), "y": 1000 + NOISE[[t, t + 4]]})
        fleet.update(table, key="key", inputs="t")
    assert fleet["a"].predict(np.array([4.0])).variance[0] < 36


def test_units_do_not_matter():
    def sure(unit):
        model = sgp.ContinualGP(sgp.Gaussian())
        return deviations(model, unit * (20 + NOISE), by_update) / unit

    np.testing.assert_allclose(sure(1e-3), sure(1.0), rtol=0.05)


def test_hyperparameters_that_are_not_learned_stay_where_they_start():
    model = sgp.ContinualGP(sgp.Gaussian(), learning=None)
    model.update([0.0, 1.0], [1000.0, 1002.0])
    start = model.hyperparameters
    for t, y in enumerate([1001.0, 1000.5, 999.0], 2):
        model.update([float(t)], [y])
    assert model.hyperparameters == start


def test_a_scale_that_was_given_is_where_a_stream_starts():
    def learned(level):
        model = sgp.ContinualGP(sgp.Gaussian(), scale={"y": (level, 3.0)})
        return deviations(model, level + NOISE[:6], by_update)

    np.testing.assert_allclose(learned(1000.0), learned(0.0), rtol=0.01)


def test_a_file_goes_on_as_the_model_it_is_of():
    """While it is not clear yet what a usual value is."""
    model = sgp.ContinualGP(sgp.Gaussian())
    for t in range(2):
        model.update([float(t)], [20 + NOISE[t]])
    copy = sgp.from_bytes(model.to_bytes())
    for t in range(2, 6):
        for each in (model, copy):
            each.update([float(t)], [20 + NOISE[t]])
        assert copy.predict([t + 1.0]).variance == pytest.approx(model.predict([t + 1.0]).variance)
