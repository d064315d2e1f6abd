"""What kept rows are for: everything that is learned later is applied to the past."""

import dataclasses

import numpy as np
import pytest
from tests._reference import build, families

import streamgp as sgp
from streamgp.data.batch import Rows
from streamgp.inference.combine import combine, prepare
from streamgp.inference.dense.joining import limited
from streamgp.inference.dense.learner import DenseLearner
from streamgp.inference.kept import ROOM
from streamgp.inference.vem import VEM
from streamgp.parameters import free_vector, with_free

NAMES = ("Gaussian", "Poisson", "Categorical")
LEARNER = DenseLearner(VEM(), 200, 1e-10, weight_uncertainty=True)


def stream(names=NAMES, latents=2, batches=3, rows=10):
    """A state after some batches over two inputs, hyperparameters held, and the batches."""
    generator = np.random.default_rng(0)
    parts = families.draw(generator, names, 0, 4, rows, 2)
    state, heard = LEARNER.begin(families.started(names, latents, parts), 2), []
    for _ in range(batches):
        heard.append(build.rows(*parts))
        state, _ = LEARNER.step(state, heard[-1], learn=False)
        parts = families.draw(generator, names, 1, 5, rows, 2)
    return state, heard


def assert_same_predictions(got, wanted, tolerance=1e-8):
    x = np.random.default_rng(5).uniform(0, 5, (12, 2))
    for d in range(len(wanted.model.channels)):
        pairs = zip(LEARNER.predict(got, x, d), LEARNER.predict(wanted, x, d), strict=True)
        for mine, theirs in pairs:
            np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance)


# -- other hyperparameters -------------------------------------------------------------------------


@pytest.mark.parametrize(("names", "tolerance"), [(("Gaussian",), 1e-8), (NAMES, 1e-4)])
def test_under_other_hyperparameters_the_past_is_that_of_all_rows(names, tolerance):
    """As if all batches had been learned at once under those."""
    state, heard = stream(names)
    theta = free_vector(state.model)
    shift = 0.3 * np.random.default_rng(1).normal(size=theta.size)
    elsewhere = with_free(state.model, theta + shift)
    moved, _ = LEARNER.step(state, heard[0].take(slice(0)), elsewhere, learn=False)
    every = Rows(*(np.concatenate([getattr(r, n) for r in heard]) for n in ("x", "y", "channel")))
    fresh, _ = LEARNER.step(LEARNER.begin(elsewhere, 2), every, learn=False)
    assert_same_predictions(moved, fresh, tolerance)


def test_a_permutation_of_the_channels_changes_nothing():
    rng = np.random.default_rng(0)
    x, channels = rng.uniform(0, 3, (2, 60, 2)), {"a": sgp.Gaussian(), "b": sgp.Poisson()}
    data = {
        "a": (x[0], np.sin(x[0]).sum(axis=1)),
        "b": (x[1], rng.poisson(np.exp(np.cos(x[1][:, 0])))),
    }
    answers = []
    for names in (("a", "b"), ("b", "a")):
        model = sgp.ContinualGP(
            {name: channels[name] for name in names},
            latents=[sgp.RBF([1.0, 1.0])],
            mixing={"a": sgp.fixed([[1.0]]), "b": sgp.fixed([[0.5]])},
        )
        for part in (slice(None, 30), slice(30, None)):
            model.update({name: (data[name][0][part], data[name][1][part]) for name in names})
        answers.append(model.predict(x[0][:5], "a").mean)
    np.testing.assert_allclose(*answers, rtol=2e-3)


def test_a_lengthscale_that_shortens_late_is_learned_from_early_rows_too():
    """A drifting stream whose first ground is flat; as good as if all rows had come at once."""

    def held_out(batches):
        rng = np.random.default_rng(0)
        x = rng.uniform(0, 1, (900, 3))
        x = x[np.argsort(x[:, 0])]
        f = np.sin(12 * x[:, 1]) * np.minimum(3 * x[:, 0], 1) + x[:, 2]
        y = f + 0.1 * rng.normal(size=900)
        test = rng.uniform(size=900) < 0.2
        model = sgp.ContinualGP(sgp.Gaussian(), keep=512)
        for part in np.array_split(np.arange(900), batches):
            own = part[~test[part]]
            model.update(x[own], y[own])
        return float(np.sqrt(np.mean((model.predict(x[test]).mean - f[test]) ** 2)))

    assert held_out(12) < 1.1 * held_out(1)


# -- joining ---------------------------------------------------------------------------------------


def test_what_the_function_explains_of_joined_rows_is_not_called_noise():
    """Rows on a steep line: joined, they still tell a small noise."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (600, 2))
    y = 10 * x[:, 0] + 0.1 * rng.normal(size=600)
    noises = []
    for keep in (1024, 60):
        model = sgp.ContinualGP(sgp.Gaussian(), keep=keep)
        for part in np.array_split(np.arange(600), 6):
            model.update(x[part], y[part])
        assert model.kept_rows <= ROOM * keep
        noises.append(float(model.state.plain.channels[0].likelihood.noise))
    assert noises[1] < 1.5 * noises[0] < 0.18


def test_inputs_that_do_not_matter_do_not_keep_rows_apart():
    """Rows are joined along the second input, whose lengthscale is endless."""
    x = np.stack(np.meshgrid(np.arange(6.0), np.arange(6.0)), -1).reshape(-1, 2)
    kernel = sgp.RBF(sgp.fixed([0.5, 1e6]), sgp.fixed(1.0))
    model = build.of_kernels([kernel], [build.channel(build.gaussian(0.3), [[1.0]])], width=2)
    state, _ = LEARNER.step(LEARNER.begin(model, 2), build.rows((0, x, x[:, 0])), learn=False)
    fewer = limited(state, 6).kept
    np.testing.assert_allclose(np.sort(fewer.x[:, 0]), np.arange(6.0), atol=1e-9)
    np.testing.assert_array_equal(fewer.count, 6.0)


def test_mean_functions_that_differ_keep_rows_apart():
    """At opposite phases of a season that no kernel knows of, and all else alike."""
    rng = np.random.default_rng(0)
    x = np.column_stack([0.5 * rng.integers(0, 40, 400), rng.uniform(0, 1, 400)])
    y = 3 * np.cos(2 * np.pi * x[:, 0]) + 0.1 * rng.normal(size=400)
    kernel = sgp.RBF(sgp.fixed([1e3, 1e3]), sgp.fixed(1.0))
    few, every = (
        sgp.ContinualGP(
            sgp.Gaussian(0.1), latents=kernel, mean=sgp.Constant() + sgp.Seasonal(1.0, 1),
            learning=None, keep=keep,
        )
        for keep in (8, None)
    )  # fmt: skip
    for part in np.split(np.arange(400), 8):
        for model in (few, every):
            model.update(x[part], y[part])
    assert few.kept_rows <= 10
    at = np.column_stack([0.5 * np.arange(10), np.full(10, 0.5)])
    one, other = (model.predict(at) for model in (few, every))
    np.testing.assert_allclose(one.mean, other.mean, atol=0.01)


def test_a_channel_with_one_row_keeps_it():
    state, _ = stream(rows=1, batches=1)
    assert limited(state, 1).size == 3


# -- who keeps rows --------------------------------------------------------------------------------


def test_their_number_does_not_grow_with_the_stream():
    rng = np.random.default_rng(0)
    model = sgp.ContinualGP(sgp.Gaussian(), keep=50)
    for _ in range(30):
        x = rng.uniform(0, 1, (20, 3))
        model.update(x, np.sin(5 * x[:, 0]))
        assert model.kept_rows <= ROOM * 50
    assert model.state.kept.count.sum() == pytest.approx(600)


def test_samples_one_by_one_are_kept_too():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (300, 2))
    model = sgp.ContinualGP(sgp.Gaussian(), keep=100)
    model.update_many(x, x[:, 0])
    assert model.state.kept.count.sum() == pytest.approx(300)
    assert model.kept_rows <= ROOM * 100


@pytest.mark.parametrize("likelihood", [sgp.Gaussian(), sgp.Bernoulli()], ids=["real", "binary"])
def test_rows_of_a_large_batch_are_joined_part_by_part(monkeypatch, likelihood):
    """There are never more than those of one part beside those that there may be."""
    monkeypatch.setattr(DenseLearner, "pace", DenseLearner.pace._replace(rows=200))
    sizes, following = [], type(stream()[0]).following

    def watched(state, rows, *others, **changes):
        sizes.append(rows.size)
        return following(state, rows, *others, **changes)

    monkeypatch.setattr(type(stream()[0]), "following", watched)
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (1100, 2))
    model = sgp.ContinualGP(likelihood, keep=80)
    model.update(x, x[:, 0] > 0.5)
    assert max(sizes) <= ROOM * 80 + 200
    assert model.kept_rows <= ROOM * 80
    assert model.state.kept.count.sum() == pytest.approx(1100)


def test_forgetting_fades_rows():
    state, _ = stream()
    faded = LEARNER.tempered(state, 0.25)
    assert faded.kept.count.sum() == pytest.approx(0.25 * state.kept.count.sum())
    assert faded.count == pytest.approx(0.25 * state.count)
    x = np.random.default_rng(5).uniform(0, 5, (12, 2))
    for d in range(3):
        (_, wide), (_, narrow) = (LEARNER.outlook(own, d, x) for own in (faded, state))
        assert np.all(np.diagonal(wide, axis1=1, axis2=2) > np.diagonal(narrow, axis1=1, axis2=2))


def test_a_further_channel():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 3, (40, 2))
    model = sgp.ContinualGP({"a": sgp.Gaussian()})
    model.update({"a": (x, x[:, 0])})
    before = model.predict(x, "a")
    model.add_channel("b", sgp.Categorical(3))
    np.testing.assert_allclose(model.predict(x, "a").mean, before.mean, atol=1e-9)
    model.update({"a": (x, x[:, 0]), "b": (x, rng.integers(0, 3, 40))})
    kept = model.state.kept
    counts = [kept.count[kept.channel == d].sum() for d in range(2)]
    np.testing.assert_allclose(counts, [80, 40])
    assert np.all(np.isfinite(model.predict(x, "b").mean))


# -- files and merging -----------------------------------------------------------------------------


def test_files_have_rows():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 3, (40, 2))
    model = sgp.ContinualGP(sgp.Gaussian())
    model.update(x, x[:, 0])
    again = sgp.from_bytes(model.to_bytes())
    pairs = zip(again.state.kept.columns(), model.state.kept.columns(), strict=True)
    for got, wanted in pairs:
        np.testing.assert_array_equal(got, wanted)
    for one in (model, again):
        one.update(x + 1, x[:, 0])
    np.testing.assert_array_equal(again.predict(x).mean, model.predict(x).mean)


@pytest.mark.parametrize("field", ["x", "channel", "y", "count", "energy"])
def test_a_file_with_rows_of_other_sizes_is_refused(field):
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 3, (40, 2))
    model = sgp.ContinualGP(sgp.Gaussian())
    model.update(x, x[:, 0])
    [rows] = model.state.blocks
    broken = dataclasses.replace(rows, **{field: getattr(rows, field)[:-1]})
    updater, progress = model._version
    progress = dataclasses.replace(progress, state=model.state.replace(blocks=(broken,)))
    model._version = model._version._replace(updater=updater, progress=progress)
    with pytest.raises(sgp.StreamGPError):
        model.to_bytes()


def test_merged_copies_have_the_rows_of_both():
    state, heard = stream(("Gaussian",))
    merged = combine(state, [prepare(LEARNER, state, rows) for rows in heard[:2]])
    assert merged.size == state.size + heard[0].size + heard[1].size
    wanted = state
    for rows in heard[:2]:
        wanted, _ = LEARNER.step(wanted, rows, learn=False)
    assert_same_predictions(merged, wanted)
