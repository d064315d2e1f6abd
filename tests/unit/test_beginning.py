"""Models that begin with single values: the first few tell their scale, not the first alone."""

import numpy as np
import pandas as pd
import pytest
from streamgp.online.beginning import Beginning, heard, kept

import streamgp as sgp
from streamgp.data.batch import Rows

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


# -- sums of the first values ----------------------------------------------------------------------


def rows_of(*values, channel=0):
    y = np.array(values, float)[:, None]
    return Rows(np.zeros(y.shape), y, np.full(len(y), channel), ("a", "b"))


def test_sums_are_those_of_all_values_however_they_came():
    one_by_one = Beginning(1e6)
    for value in 1e6 + NOISE:
        one_by_one = one_by_one.seen(np.array([value]))
    at_once = Beginning(1e6).seen(1e6 + NOISE)
    np.testing.assert_allclose(one_by_one, at_once)
    assert at_once.centre == pytest.approx(1e6 + NOISE.mean())


def test_many_values_tell_their_deviation_and_few_a_larger_one():
    y = 50 + 3 * np.random.default_rng(0).normal(size=4000)
    assert Beginning(y[0]).seen(y).scale == pytest.approx(np.std(y), rel=1e-3)
    few = Beginning(50.0).seen(np.array([50.0, 49.0, 51.0]))
    assert 1.0 < few.scale < 3.0


@pytest.mark.parametrize("values", [[7.0], [7.0, 8.0], [7.0, 7.0, 7.0], [0.0, 0.0, 0.0]])
def test_a_single_value_or_two_tell_no_scale(values):
    assert Beginning(values[0]).seen(np.array(values)).scale is None


def test_sums_are_kept_until_enough_values_were_learned_from():
    first = kept(None, 0, rows_of(1.0), learned=True)
    assert first == Beginning(1.0, 1)
    assert kept(first, 1, rows_of(2.0, channel=1), learned=True) == first
    more = kept(first, 1, rows_of(2.0, 3.0, 4.0, 5.0), learned=False)
    assert more.values == 5
    assert kept(more, 5, rows_of(6.0), learned=True) is None
    assert heard(None, 6, rows_of(7.0)) is None


def test_a_first_batch_has_no_beginning():
    model = sgp.ContinualGP(sgp.Gaussian())
    model.update(np.arange(5.0), NOISE[:5])
    assert model._version.progress.beginning is None


def test_a_file_has_the_beginning():
    model = sgp.ContinualGP(sgp.Gaussian())
    for t in range(2):
        model.update([float(t)], [20 + NOISE[t]])
    copy = sgp.from_bytes(model.to_bytes())
    assert copy._version.progress.beginning == model._version.progress.beginning
    assert copy._version.progress.beginning.values == 2
    for each in (model, copy):
        each.update([2.0], [20 + NOISE[2]])
    assert copy.predict([3.0]).variance == model.predict([3.0]).variance
