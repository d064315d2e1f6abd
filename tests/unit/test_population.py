"""What a fleet learns of all its keys: pooled starts of new keys, and shared hyperparameters."""

import pickle

import numpy as np
import pytest

import streamgp as sgp
from streamgp.fleet.population import Said, pooled_of, said_of
from streamgp.parameters import free_vector, with_free


def _paths(rng, keys, rows, span=10.0):
    """Matérn-3/2 paths of one lengthscale and noise, each with a level of its own."""
    found = {}
    for key in keys:
        t = np.sort(rng.uniform(0, span, rows))
        r = np.sqrt(3) * np.abs(t[:, None] - t) / 1.5
        chol = np.linalg.cholesky((1 + r) * np.exp(-r) + 1e-9 * np.eye(rows))
        level = 20 + 5 * rng.normal()
        found[key] = (t, level + chol @ rng.normal(size=rows) + 0.3 * rng.normal(size=rows))
    return found


def _fleet(**settings):
    rule = sgp.VEM(evaluations=6)
    return sgp.Fleet(
        sgp.ContinualGP(sgp.Gaussian(), latents=sgp.Matern32(), learning=rule), **settings
    )


def test_pooled_values_are_those_that_keys_were_drawn_from():
    rng = np.random.default_rng(0)
    centre, spread = np.array([0.5, -1.0]), np.array([0.3, 0.6])
    said = []
    for _ in range(2000):
        precision = np.diag(rng.uniform(0.5, 30, 2))
        own = centre + spread * rng.normal(size=2)
        best = own + np.linalg.cholesky(np.linalg.inv(precision)) @ rng.normal(size=2)
        left = best + 0.2 * rng.normal(size=2)  # where learning stopped, short of the best
        said.append(Said(left, precision @ (best - left), precision))
    found, width = pooled_of(said)
    assert found == pytest.approx(centre, abs=0.05)
    assert width == pytest.approx(spread, rel=0.1)


@pytest.mark.parametrize("engine", ["chain", "dense"])
def test_what_data_say_of_hyperparameters_has_the_right_gradient(engine):
    rng = np.random.default_rng(1)
    model = sgp.ContinualGP(
        sgp.Gaussian(), latents=sgp.Matern32(), engine=engine, learning=sgp.VEM(evaluations=5)
    )
    (x, y), *_ = _paths(rng, ["A"], 40).values()
    model.update(x, y)
    learner, state = model.learner, model.state
    theta = free_vector(state.model) + 0.1
    _, gradient = learner.told(state, with_free(state.model, theta))
    for i, step in enumerate(1e-5 * np.eye(len(theta))):
        up, down = (
            learner.told(state, with_free(state.model, theta + s))[0] for s in (step, -step)
        )
        assert gradient[i] == pytest.approx((up - down) / 2e-5, rel=1e-4, abs=1e-4)
    said = said_of(learner, state)
    assert np.all(np.linalg.eigvalsh(said.precision) > 0)


def test_new_keys_start_from_the_population():
    rng = np.random.default_rng(2)
    fleet, alone = _fleet(population=True), _fleet()
    assert fleet.population is None
    old, new = _paths(rng, range(8), 40), _paths(rng, "abcd", 60)
    fleet.update(old)
    found = fleet.population
    assert found.keys >= 8
    lengthscale = found.kernels[0].lengthscale
    assert 0.7 < float(np.exp(lengthscale.log_value[0])) < 3.0
    assert lengthscale.spread < 1.5
    assert found.likelihoods["y"].noise.value == pytest.approx(0.3, rel=0.35)
    assert found.levels["y"][0] == pytest.approx(20, abs=6)
    scores = {}
    for name, each in (("population", fleet), ("alone", alone)):
        for rows in (slice(i, i + 3) for i in range(0, 12, 3)):
            report = each.update({key: (x[rows], y[rows]) for key, (x, y) in new.items()})
            scores.setdefault(name, []).append(report.to_frame()["log_predictive"].mean())
    assert np.mean(scores["population"][1:]) > np.mean(scores["alone"][1:]) + 0.1
    again = sgp.from_bytes(fleet["a"].to_bytes())  # what it starts from is its own
    assert again.predict([1.0]).mean == pytest.approx(fleet["a"].predict([1.0]).mean, abs=1e-9)
    assert pickle.loads(pickle.dumps(fleet)).population.keys == fleet.population.keys


def test_shared_hyperparameters_are_the_same_for_all_keys():
    rng = np.random.default_rng(3)
    fleet = _fleet(shared=True)
    data = _paths(rng, range(8), 40)
    fleet.update({k: (x[:20], y[:20]) for k, (x, y) in data.items()})
    fleet.update({k: (x[20:], y[20:]) for k, (x, y) in data.items()})
    thetas = [free_vector(model.state.model) for model in fleet.values()]
    assert all(np.array_equal(theta, thetas[0]) for theta in thetas)
    assert np.exp(thetas[0][0]) == pytest.approx(1.5, rel=0.5)
    assert fleet[0].state.plain.channels[0].likelihood.noise == pytest.approx(0.3, rel=0.3)
    alone = [sgp.ContinualGP(sgp.Gaussian(), latents=sgp.Matern32()) for _ in data]
    spread = []
    for model, (x, y) in zip(alone, data.values(), strict=True):
        model.update(x, y)
        spread.append(free_vector(model.state.model))
    assert np.std(spread, axis=0).min() > 0.05  # which each alone would not be
    before = thetas[0]
    fleet.update({"new": (np.arange(3.0), np.ones(3))}, learn=False)
    assert np.array_equal(free_vector(fleet["new"].state.model), before)


def test_what_cannot_be_shared_is_refused():
    with pytest.raises(sgp.ConfigurationError, match="`population=True` or `shared=True`"):
        _fleet(population=True, shared=True)
    with pytest.raises(sgp.ConfigurationError, match="that learns"):
        sgp.Fleet(sgp.ContinualGP(sgp.Gaussian(), learning=None), shared=True)
    with pytest.raises(sgp.ConfigurationError, match=r"no chain.*`engine`"):
        sgp.Fleet(sgp.ContinualGP(sgp.Gaussian(), engine="dense"), shared=True)
    fleet = sgp.Fleet(sgp.ContinualGP(sgp.Gaussian(), latents=sgp.RBF()), shared=True)
    with pytest.raises(sgp.ConfigurationError, match="Markov"):
        fleet.update({"A": (np.arange(4.0), np.arange(4.0))})
