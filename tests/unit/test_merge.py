"""merge and combine: what shards say apart adds up to what they say together."""

import copy

import numpy as np
import pytest

import streamgp as sgp
from streamgp.data.batch import Rows
from streamgp.inference.combine import combine, prepare

_NOISY = np.random.default_rng(0)
# Four stretches with little gaps between them.
_X = np.sort(_NOISY.uniform(0, 9, (4, 60)), axis=1).ravel() + np.repeat([0.0, 10.0, 20.0, 30.0], 60)
_Y = np.sin(_X) + 0.1 * _NOISY.normal(size=240)
_GRID = np.linspace(-2, 45, 40)


def _ancestor(engine, channels=None, learning=None, **options):
    placed = {"inducing": sgp.Fixed(np.linspace(0, 40, 60))} if engine == "sparse" else {}
    model = sgp.ContinualGP(
        channels or sgp.Gaussian(), engine=engine, learning=learning, **placed, **options
    )
    model.update(_X[:60], np.abs(np.round(_Y[:60])) if channels else _Y[:60])
    return model


def _same(one, other, tolerance=1e-8):
    a, b = one.predict(_GRID), other.predict(_GRID)
    assert np.allclose(a.mean, b.mean, rtol=0, atol=tolerance)
    assert np.allclose(a.variance, b.variance, rtol=0, atol=tolerance)


@pytest.mark.parametrize("learning", [None, sgp.VEM(evaluations=5)])
@pytest.mark.parametrize("engine", ["chain", "dense", "sparse"])
def test_shards_merged_equal_one_pass(engine, learning):
    first = _ancestor(engine, learning=learning)
    whole, shards = copy.deepcopy(first), [copy.deepcopy(first) for _ in range(3)]
    for shard, rows in zip(shards, np.split(np.arange(60, 240), 3), strict=True):
        for part in np.split(rows, 2):
            shard.update(_X[part], _Y[part], learn=False)
            whole.update(_X[part], _Y[part], learn=False)
    merged = sgp.merge(first, shards)
    _same(merged, whole)
    assert merged.observations == whole.observations == {"y": 240}
    assert merged._version.progress.updates == whole._version.progress.updates
    _same(sgp.merge(first, shards[::-1]), whole)  # in any order
    _same(sgp.from_bytes(merged.to_bytes()), whole)
    assert first.observations == {"y": 60}
    for model in (merged, whole):  # and they go on alike
        model.update(_X[-5:] + 5, _Y[-5:], learn=False)
    _same(merged, whole)
    if learning is not None:
        for model in (merged, whole):
            model.refine()
        _same(merged, whole, 1e-3)


@pytest.mark.parametrize("engine", ["dense", "sparse"])
def test_rows_may_be_anywhere(engine):
    first = _ancestor(engine)
    whole, shards = copy.deepcopy(first), [copy.deepcopy(first) for _ in range(2)]
    for i, shard in enumerate(shards):
        rows = np.arange(60 + i, 240, 2)
        shard.update(_X[rows], _Y[rows], learn=False)
        whole.update(_X[rows], _Y[rows], learn=False)
    _same(sgp.merge(first, shards), whole)


def test_rows_over_time_may_be_anywhere():
    first = _ancestor("chain")
    learner, state = first.learner, first.state
    rows = Rows(_X[60:, None], _Y[60:, None], np.zeros(180, int), ("y",))
    parts = [prepare(learner, state, rows.take(slice(i, None, 3))) for i in range(3)]
    combined, (once, _) = combine(state, parts), learner.step(state, rows, learn=False)
    for i in range(2):
        got, wished = (learner.predict(s, _GRID[:, None], 0)[i] for s in (combined, once))
        assert np.allclose(got, wished, rtol=0, atol=1e-8)
    assert combined.count == once.count == 240
    assert combine(state, []) is state


def test_rows_that_are_equal_all_count():
    """The same observation is new in each shard, and may have been there before."""
    first = _ancestor("chain")
    whole, shards = copy.deepcopy(first), [copy.deepcopy(first) for _ in range(2)]
    for shard in shards:
        for _ in range(2):
            shard.update(_X[[3, 70]], _Y[[3, 70]], learn=False)
            whole.update(_X[[3, 70]], _Y[[3, 70]], learn=False)
    merged = sgp.merge(first, shards)
    assert merged.observations == {"y": 68}
    assert merged.state.size == whole.state.size == 68
    _same(merged, whole)


def test_rows_that_were_joined_are_not_counted_twice():
    """Where a shard has joined rows of the ancestor with its own, nobody can tell what is new."""
    first = _ancestor("chain", keep=60)
    shards = [copy.deepcopy(first) for _ in range(2)]
    for shard, rows in zip(shards, np.split(np.arange(60, 240), 2), strict=True):
        shard.update(_X[rows], _Y[rows], learn=False)
        assert shard.state.size < 100
    with pytest.raises(sgp.ConfigurationError, match="keep"):
        sgp.merge(first, shards)


def test_other_families_add_up_closely():
    first = _ancestor("chain", sgp.Poisson())
    whole, shards = copy.deepcopy(first), [copy.deepcopy(first) for _ in range(2)]
    counts = _NOISY.poisson(np.exp(np.sin(_X))).astype(float)
    for shard, rows in zip(shards, np.split(np.arange(60, 240), 2), strict=True):
        shard.update(_X[rows], counts[rows], learn=False)
        whole.update(_X[rows], counts[rows], learn=False)
    merged, before = sgp.merge(first, shards).predict(_GRID), first.predict(_GRID)
    once = whole.predict(_GRID)
    assert np.allclose(merged.latent_mean, once.latent_mean, rtol=0, atol=0.02)
    assert np.allclose(merged.latent_variance, once.latent_variance, rtol=0.02)
    assert np.max(np.abs(before.latent_mean - once.latent_mean)) > 0.5  # from which they moved


def test_what_does_not_fit_is_refused():
    first = _ancestor("chain", learning=sgp.VEM(evaluations=3))
    one, other = copy.deepcopy(first), copy.deepcopy(first)
    one.update(_X[60:120], _Y[60:120], learn=False)
    other.update(_X[120:], _Y[120:])
    with pytest.raises(sgp.ConfigurationError, match="same hyperparameters"):
        sgp.merge(first, [one, other])
    blank = sgp.ContinualGP(sgp.Gaussian())
    with pytest.raises(sgp.ConfigurationError, match="an ancestor with data"):
        sgp.merge(blank, [one])
    with pytest.raises(sgp.ConfigurationError, match="went on from the ancestor"):
        sgp.merge(one, [first])
    sparse = _ancestor("sparse")
    moved = sgp.ContinualGP(sgp.Gaussian(), engine="sparse", learning=None)
    moved.update(_X[:60], _Y[:60])
    grown = copy.deepcopy(moved)
    grown.update(_X[60:], _Y[60:], learn=False)
    with pytest.raises(sgp.ConfigurationError, match="same inducing points"):
        sgp.merge(moved, [grown])
    chain = _ancestor("chain")
    chain.update(_X[60:], _Y[60:], learn=False)
    for other in (sparse, _ancestor("dense")):
        with pytest.raises(sgp.ConfigurationError):
            sgp.merge(other, [chain])
