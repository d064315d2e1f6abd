"""Keys that learn together: the same M steps as those of one model per key."""

import numpy as np
import pandas as pd
import pytest
from tests._reference import build

import streamgp as sgp
from streamgp.inference import asking
from streamgp.inference.asking import Ask, answered, answered_together
from streamgp.inference.beliefs import Beliefs
from streamgp.inference.chain import many_evidence
from streamgp.inference.chain.evidence import Past
from streamgp.inference.chain.many_evidence import answers
from streamgp.inference.chain.objective import ChainObjective
from streamgp.inference.chain.segments import joined
from streamgp.inference.m_step import maximise, maximising
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


def _asks(name, counts):
    """Objectives of keys with so many rows each, away from where they began."""
    asks = []
    for k, count in enumerate(counts):
        rng, model = np.random.default_rng(k), _model(name)
        x = np.cumsum(rng.uniform(0.1, 1.0, count))
        model.update(x, k + np.sin(x) + 0.2 * rng.normal(size=count), learn=False)
        state = model.state
        beliefs = Beliefs.of(
            state.model, state.model, state.memory, state.heard, new=state.count, past=0.0
        )
        past = Past(joined(state.segments), state.totals)
        theta = free_vector(state.model)
        objective = ChainObjective(past, state.model, beliefs)
        asks.append(Ask(objective, theta + 0.2 * rng.normal(size=len(theta))))
    return asks


@pytest.mark.parametrize("name", KERNELS)
def test_objectives_of_many_keys_are_those_of_each(name):
    asks = _asks(name, [3, 17, 9, 30])
    together = answers(asks)
    assert set(together) == set(range(4))
    for i, (objective, point) in enumerate(asks):
        value, gradient = objective(point)
        assert together[i][0] == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(together[i][1], gradient, rtol=1e-8, atol=1e-9)


def test_the_gradient_of_many_is_that_by_differences():
    asks = _asks("default", [12, 20])

    def value(point):
        return answers([Ask(asks[0].objective, point), asks[1]])[0][0]

    wanted = build.slopes(value, asks[0].point, 1e-4)
    np.testing.assert_allclose(answers(asks)[0][1], wanted, rtol=1e-6, atol=1e-7)


def test_what_cannot_be_stacked_is_left_out():
    periodic = sgp.ContinualGP(sgp.Gaussian(), latents=sgp.Periodic(), engine="chain")
    x = np.arange(12.0)
    periodic.update(x, np.sin(x), learn=False)
    state, (ask, *others) = periodic.state, _asks("matern", [8, 9, 10])
    beliefs = Beliefs.of(state.model, state.model, state.memory, state.heard, new=12, past=0.0)
    alone = ChainObjective(Past(joined(state.segments), state.totals), state.model, beliefs)
    asks = [ask, Ask(alone, free_vector(state.model)), *others, *_asks("default", [8])]
    assert set(answers(asks)) == {0, 2, 3}


def test_a_key_that_fails_leaves_the_others_to_themselves(monkeypatch):
    def fail(self, points):
        raise np.linalg.LinAlgError

    monkeypatch.setattr(many_evidence._Stacked, "evidence", fail)
    assert answers(_asks("matern", [8, 9])) == {}


# -- work that asks --------------------------------------------------------------------------------


def _hill(top):
    return lambda point: (-float(np.sum((point - top) ** 2)), -2 * (point - top))


def test_m_steps_in_turn_take_the_very_same_steps_as_alone():
    tops = [np.array([0.3, float(k)]) for k in range(7)]
    start = np.zeros(2)
    works = [(k, maximising(_hill(top), start, evaluations=9)) for k, top in enumerate(tops)]
    seen = []

    def some(asks):
        seen.append(len(asks))
        return {i: asks[i].objective(asks[i].point) for i in range(0, len(asks), 2)}

    found = dict(answered_together(works, some, most=3))
    assert max(seen) == 3
    for k, top in enumerate(tops):
        point, count = maximise(_hill(top), start, evaluations=9)
        assert np.array_equal(found[k][0], point)
        assert found[k][1] == count


def test_work_that_fails_is_reported_and_the_rest_goes_on():
    def failing(point):
        raise ValueError("no such hill")

    works = [
        ("bad", maximising(failing, np.ones(1), evaluations=3)),
        ("good", maximising(_hill(np.ones(1)), np.zeros(1), evaluations=20)),
    ]
    found = dict(answered_together(works, lambda asks: {}, most=2))
    assert isinstance(found["bad"], ValueError)
    assert found["good"][0] == pytest.approx([1.0])
    with pytest.raises(ValueError, match="no such hill"):
        answered(maximising(failing, np.ones(1), evaluations=3))


# -- fleets ----------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("name", ["default", "matern"])
def test_keys_that_learn_together_end_as_those_that_learn_alone(name, monkeypatch):
    together = []
    monkeypatch.setattr(
        "streamgp.fleet.work.answers",
        lambda asks: together.append(len(asks)) or many_evidence.answers(asks),
    )
    settings = {"learning": sgp.VEM(evaluations=12)}
    fleet, models, learned = sgp.Fleet(_model(name, **settings)), {}, []
    for table in _tables(4, 3):
        learned += fleet.update(table, key="key", inputs="time").learned
        for key, rows in table.groupby("key"):
            own = models.setdefault(key, _model(name, **settings))
            own.update(rows[["time", "y"]], inputs="time")
    assert max(together) == 4
    assert list(fleet) == [0, 1, 2, 3]  # in the order of the table, not that of being done
    assert sorted(learned) == sorted([0, 1, 2, 3] * 2)
    x = np.linspace(-1, 12, 20)
    for key, model in models.items():
        one, other = fleet[key], model
        theta = free_vector(other.state.model)
        np.testing.assert_allclose(free_vector(one.state.model), theta, rtol=0, atol=1e-6)
        np.testing.assert_allclose(one.predict(x).mean, other.predict(x).mean, atol=1e-6)
        np.testing.assert_allclose(one.predict(x).std, other.predict(x).std, atol=1e-6)


def test_a_first_batch_that_fails_makes_no_key():
    tables = _tables(3, 1)
    tables[0].loc[tables[0]["key"] == 1, "y"] = np.inf
    fleet = sgp.Fleet(_model("matern"))
    report = fleet.update(tables[0], key="key", inputs="time")
    assert set(report.errors) == {1}
    assert set(fleet) == {0, 2}


def test_a_model_that_changes_while_others_learn_learns_on_top_of_that(monkeypatch):
    first, second = _tables(2, 2)
    fleet = sgp.Fleet(_model("matern"))
    fleet.update(first, key="key", inputs="time")
    changed = []

    def slow(askings, *others):
        for begun, result in asking.answered_together(askings, *others):
            if begun.key == 0 and not changed:
                fleet[0].update([5.5], [1.0], learn=False)  # as another thread would
                changed.append(True)
            yield begun, result

    monkeypatch.setattr("streamgp.fleet.work.answered_together", slow)
    report = fleet.update(second, key="key", inputs="time")
    assert not report.errors
    assert fleet[0].observations == {"y": 24}
    assert fleet[1].observations == {"y": 23}
