"""Keys that learn: each as a model by itself would, whatever becomes of the others."""

import threading

import numpy as np
import pandas as pd
import pytest

import streamgp as sgp
from streamgp.inference.m_step import maximise
from streamgp.parameters import free_vector

KERNELS = {
    "default": None,
    "matern": sgp.Matern32(),
    "sum": sgp.Matern12() + sgp.kernels.Constant(1.0),
    "fixed": sgp.Matern52(sgp.fixed(1.5)),
}


def _model(name, **settings):
    latents = {} if KERNELS[name] is None else {"latents": KERNELS[name]}
    return sgp.ContinualGP(sgp.Gaussian(), **latents, **settings)


def _hill(top):
    return lambda point: (-float(np.sum((point - top) ** 2)), -2 * (point - top))


def test_m_steps_climb_and_those_that_fail_say_so():
    point, count, _ = maximise(_hill(np.ones(2)), np.zeros(2), evaluations=20)
    assert point == pytest.approx([1.0, 1.0])
    assert 1 < count <= 20

    def failing(point):
        raise ValueError("no such hill")

    with pytest.raises(ValueError, match="no such hill"):
        maximise(failing, np.ones(1), evaluations=3)


def _tables(keys, batches):
    rng, now, tables = np.random.default_rng(3), 0.0, []
    for batch in range(batches):
        rows = 15 if batch == 0 else 8
        time = now + np.sort(rng.uniform(0, rows / 3, (keys, rows)))
        y = np.arange(keys)[:, None] + np.sin(time) + 0.1 * rng.normal(size=time.shape)
        key = np.repeat(np.arange(keys), rows)
        tables.append(pd.DataFrame({"key": key, "time": time.ravel(), "y": y.ravel()}))
        now += rows / 3
    return tables


@pytest.mark.parametrize("name", KERNELS)
def test_keys_of_a_fleet_end_as_those_that_learn_alone(name):
    settings = {"learning": sgp.VEM(evaluations=12)}
    fleet, models, learned = sgp.Fleet(_model(name, **settings)), {}, []
    for table in _tables(4, 3):
        learned += fleet.update(table, key="key", inputs="time").learned
        for key, rows in table.groupby("key"):
            own = models.setdefault(key, _model(name, **settings))
            own.update(rows[["time", "y"]], inputs="time")
    assert list(fleet) == [0, 1, 2, 3]  # in the order of the table
    assert sorted(learned) == sorted([0, 1, 2, 3] * 2)
    x = np.linspace(-1, 12, 20)
    for key, model in models.items():
        one, other = fleet[key], model
        theta = free_vector(other.state.model)
        np.testing.assert_allclose(free_vector(one.state.model), theta, rtol=0, atol=1e-9)
        np.testing.assert_allclose(one.predict(x).mean, other.predict(x).mean, atol=1e-9)
        np.testing.assert_allclose(one.predict(x).std, other.predict(x).std, atol=1e-9)


def test_a_first_batch_that_fails_makes_no_key():
    tables = _tables(3, 1)
    tables[0].loc[tables[0]["key"] == 1, "y"] = np.inf
    fleet = sgp.Fleet(_model("matern"))
    report = fleet.update(tables[0], key="key", inputs="time")
    assert set(report.errors) == {1}
    assert set(fleet) == {0, 2}


def test_a_later_batch_whose_learning_fails_leaves_that_key_as_it_was(monkeypatch):
    """And the others learn."""
    first, second = _tables(3, 2)
    fleet = sgp.Fleet(_model("matern"))
    fleet.update(first, key="key", inputs="time")
    before, model = fleet[1].to_bytes(), fleet[1]
    own = sgp.ContinualGP._keep

    def failing(self, *others):
        if self is model:
            raise np.linalg.LinAlgError("no")
        return own(self, *others)

    monkeypatch.setattr(sgp.ContinualGP, "_keep", failing)
    report = fleet.update(second, key="key", inputs="time")
    assert set(report.errors) == {1}
    assert fleet[1].to_bytes() == before
    assert sorted(report.learned) == [0, 2]


def test_keys_that_change_while_the_fleet_learns_lose_nothing():
    """Another thread updates a model of the fleet by itself."""
    tables = _tables(2, 6)
    fleet = sgp.Fleet(_model("matern", learning=sgp.VEM(evaluations=3)))
    fleet.update(tables[0], key="key", inputs="time")
    begun, failed = threading.Event(), []

    def beside():
        try:
            begun.wait(30)
            for k in range(12):
                fleet[0].update([0.4 * k + 0.1], [1.0], learn=False)
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=beside)
    thread.start()
    begun.set()
    for table in tables[1:]:
        assert not fleet.update(table, key="key", inputs="time").errors
    thread.join(60)
    assert not failed
    assert fleet[0].observations == {"y": 15 + 5 * 8 + 12}
    assert fleet[1].observations == {"y": 15 + 5 * 8}
    assert fleet[0].state.size == 15 + 5 * 8 + 12
