"""Past rows as cells: what they say, how they are joined, who keeps them."""

import dataclasses
import itertools

import numpy as np
import pytest
from tests._reference import build, families

import streamgp as sgp
from streamgp.inference import cells as cells_module
from streamgp.inference import joining
from streamgp.inference import learner as learner_module
from streamgp.inference.combine import combine, prepare
from streamgp.inference.learner import Learner
from streamgp.inference.vem import VEM
from streamgp.numerics.linalg import NUGGET
from streamgp.parameters import free_vector, with_free

NAMES = ("Gaussian", "Poisson", "Categorical")


def stream(names=NAMES, latents=2, batches=3, rows=10):
    """A learner and its state after some batches over two inputs, hyperparameters held."""
    generator = np.random.default_rng(0)
    parts = families.draw(generator, names, 0, 4, rows, 2)
    learner = Learner(VEM())
    model = families.started(names, latents, parts)
    points = tuple(generator.uniform(0, 5, (7, 2)) for _ in range(sum(model.draws)))
    state, heard = learner.init(model, points), []
    for _ in range(batches):
        heard.append(build.rows(*parts))
        state, _ = learner.step(state, heard[-1], learn=False)
        parts = families.draw(generator, names, 1, 5, rows, 2)
    return learner, state, heard


def other(state, size=0.3):
    """The state's hyperparameters, some way off."""
    theta = free_vector(state.model)
    return with_free(state.model, theta + size * np.random.default_rng(1).normal(size=theta.size))


# -- what cells say --------------------------------------------------------------------------------


def test_cells_that_were_never_joined_say_what_the_sums_say():
    _, state, _ = stream()
    for got, wanted in zip(state.seen_again().past.arrays(), state.past.arrays(), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)


def test_under_other_kernels_the_past_is_that_of_all_rows():
    """A Gaussian channel: as if all batches were learned at once under those kernels."""
    learner, state, heard = stream(("Gaussian",))
    elsewhere = other(state)
    nothing = heard[0].take(slice(0))
    moved, _ = learner.step(state, nothing, elsewhere, learn=False)
    fresh = learner.init(elsewhere, state.points)
    for rows in heard:
        fresh, _ = learner.step(fresh, rows, learn=False)
    for got, wanted in zip(moved.past.arrays(), fresh.past.arrays(), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)


def test_at_other_points_the_posterior_is_that_of_the_sparse_model_of_all_rows():
    """Against a dense formula: Titsias' posterior at points that no row was seen through."""
    learner, state, heard = stream(("Gaussian",), latents=1)
    points = tuple(z + 0.7 for z in state.points)
    moved = learner.move(state, points)
    model, (kernel,), (z,) = state.plain, state.plain.latent_kernels, points
    x = np.concatenate([rows.x for rows in heard])
    y = np.concatenate([rows.y[:, 0] for rows in heard])
    channel = model.channels[0]
    gram = kernel.matrix(z - model.origin, z - model.origin)
    gram += NUGGET * np.diag(np.diag(gram))
    loading, noise = float(channel.loadings[0, 0]), float(channel.likelihood.noise)
    at = loading * kernel.matrix(x - model.origin, z - model.origin) @ np.linalg.inv(gram)
    level = channel.spread[0, 0] ** 2
    features = np.column_stack([at, np.ones(len(x))])
    before = np.zeros((len(z) + 1, len(z) + 1))
    before[:-1, :-1], before[-1, -1] = np.linalg.inv(gram), 1 / level
    precision = before + features.T @ features / noise**2
    mean = np.linalg.solve(precision, features.T @ (y - channel.offset[0]) / noise**2)
    there = np.array([[1.0, 1.5], [3.0, 2.0]])
    design = loading * kernel.matrix(there - model.origin, z - model.origin) @ np.linalg.inv(gram)
    wanted = channel.offset[0] + np.column_stack([design, np.ones(2)]) @ mean
    got, _ = learner.predict(moved, there, 0)
    np.testing.assert_allclose(got[:, 0], wanted, rtol=1e-6)


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


# -- joining ---------------------------------------------------------------------------------------


def test_joined_cells_keep_what_was_said_in_all():
    _, state, _ = stream()
    fewer = joining.with_few_cells(state, 40)
    assert fewer.cells.size == 40 < state.cells.size
    for d in range(3):
        mine, theirs = (s.cells.channel == d for s in (fewer, state))
        for field in ("linear", "precision"):
            got, wanted = getattr(fewer.cells, field)[mine], getattr(state.cells, field)[theirs]
            np.testing.assert_allclose(got.sum(axis=0), wanted.sum(axis=0))
        mass, before = fewer.cells.mass[mine], state.cells.mass[theirs]
        np.testing.assert_allclose(
            mass @ fewer.cells.x[mine], before @ state.cells.x[theirs], rtol=1e-9
        )
    np.testing.assert_array_equal(fewer.cells.count, state.cells.count)


def test_rows_at_one_place_are_joined_without_any_loss():
    """The same 20 inputs twice: 20 cells say what 40 rows do, of the noise too."""
    learner = Learner(VEM())
    generator = np.random.default_rng(0)
    x = generator.uniform(0, 4, (20, 2))
    channel = build.channel(build.gaussian(0.3, trainable=True), [[1.0]])
    model = build.model([channel], trainable=True, width=2)
    state = learner.init(model, (x[:6],))
    for _ in range(2):
        rows = build.rows((0, x, generator.normal(size=20)))
        state, _ = learner.step(state, rows, learn=False)
    fewer = joining.with_few_cells(state, 20)
    assert fewer.cells.size == 20
    pairs = zip(fewer.seen_again().past.arrays(), state.past.arrays(), strict=True)
    for got, wanted in pairs:
        np.testing.assert_allclose(got, wanted, rtol=1e-8, atol=1e-8)


def test_what_the_function_explains_of_a_cell_is_not_called_noise():
    """Rows on a steep line: joined, they still tell a small noise."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (600, 2))
    y = 10 * x[:, 0] + 0.1 * rng.normal(size=600)
    noises = []
    for cells in (1024, 60):
        model = sgp.ContinualGP(sgp.Gaussian(), learning=sgp.VEM(cells=cells))
        for part in np.array_split(np.arange(600), 6):
            model.update(x[part], y[part])
        assert model.state.cells.size <= joining.ROOM * cells
        noises.append(float(model.state.plain.channels[0].likelihood.noise))
    assert noises[1] < 1.5 * noises[0] < 0.18


def _on_a_slope():
    """Many rows on a line with little noise, and the same as few cells."""
    learner, rng = Learner(VEM()), np.random.default_rng(0)
    x = rng.uniform(0, 4, (200, 2))
    y = 2 * x[:, 0] - x[:, 1] + 0.1 * rng.normal(size=200)
    channel = build.channel(build.gaussian(0.1), [[1.0]])
    model = build.of_kernels([sgp.RBF(sgp.fixed([9.0, 9.0]), sgp.fixed(50.0))], [channel], width=2)
    state, _ = learner.step(learner.init(model, (x[:20],)), build.rows((0, x, y)))
    return state, joining.with_few_cells(state, 40)


def test_what_is_left_for_the_noise_is_what_q_expects_of_each_row():
    """Σ(y − E f)² + Var f over rows is that over cells and what is left within them."""
    state, fewer = _on_a_slope()
    left = []
    for own in (state, fewer):
        mean, covariance = Learner().predict(state, own.cells.x, 0)
        mass = own.cells.mass
        fitted = 2 * own.cells.linear[:, 0] @ mean[:, 0] - mass @ (mean**2 + covariance[:, 0])[:, 0]
        left.append(own.energy_left[0] - fitted)
    np.testing.assert_allclose(left[1], left[0], rtol=0.02)
    assert fewer.cells.energy[0] - fewer.energy_left[0] > 10 * left[0]


def test_a_function_that_has_become_flat_explains_nothing_within_cells():
    _, fewer = _on_a_slope()
    flat = build.of_kernels(
        [sgp.RBF(sgp.fixed([9e4, 9e4]), sgp.fixed(50.0))], fewer.plain.channels, width=2
    )
    flat = fewer.replace(model=flat).seen_again()
    within = fewer.cells.explained.sum()
    assert fewer.energy_left[0] < fewer.cells.energy[0] - 0.9 * within
    again = flat.seen_again()  # under the posterior of the flat kernel
    assert again.energy_left[0] > fewer.cells.energy[0] - 0.1 * within


def test_inputs_that_do_not_matter_do_not_keep_cells_apart():
    """Cells are joined along the second input, whose lengthscale is endless."""
    learner, x = Learner(VEM()), np.stack(np.meshgrid(np.arange(6.0), np.arange(6.0)), -1)
    x = x.reshape(-1, 2)
    kernel = sgp.RBF(sgp.fixed([0.5, 1e6]), sgp.fixed(1.0))
    model = build.of_kernels([kernel], [build.channel(build.gaussian(0.3), [[1.0]])], width=2)
    state, _ = learner.step(learner.init(model, (x[:6],)), build.rows((0, x, x[:, 0])))
    fewer = joining.with_few_cells(state, 6).cells
    np.testing.assert_allclose(np.sort(fewer.x[:, 0]), np.arange(6.0), atol=1e-9)


def test_mean_functions_that_differ_keep_cells_apart():
    """Rows at one place but at other phases of a season are joined last."""
    _, state, _ = stream(("Gaussian",), latents=1)
    channel = state.plain.channels[0]
    own = np.flatnonzero(state.cells.channel == 0)
    basis = state.cells.basis.copy()
    basis[own[0]] += 1.0
    apart = dataclasses.replace(state.cells, basis=basis)
    before, after = (joining._costs(state.plain, c, own) for c in (state.cells, apart))
    mass = channel.likelihood.strength * state.cells.mass[own]
    common = mass[0] * mass[1:] / (mass[0] + mass[1:])
    np.testing.assert_allclose(
        after[0, 1:] - before[0, 1:], common * np.sum(channel.spread**2), rtol=1e-9
    )
    np.testing.assert_array_equal(after[1:, 1:], before[1:, 1:])


def test_many_cells_are_compared_in_blocks(monkeypatch):
    """Blocks are split where the function changes, and every cell is in one of them."""
    learner, x = Learner(VEM()), np.random.default_rng(0).uniform(0, 6, (50, 2))
    kernel = sgp.RBF(sgp.fixed([1e6, 0.5]), sgp.fixed(1.0))
    model = build.of_kernels([kernel], [build.channel(build.gaussian(0.3), [[1.0]])], width=2)
    state, _ = learner.step(learner.init(model, (x[:6],)), build.rows((0, x, x[:, 0])))
    monkeypatch.setattr(joining, "_BLOCK", 8)
    blocks = list(joining._neighbourhoods(state.plain, state.cells))
    np.testing.assert_array_equal(np.sort(np.concatenate(blocks)), np.arange(50))
    assert max(map(len, blocks)) <= 8
    ends = [(x[block, 1].min(), x[block, 1].max()) for block in blocks]
    assert all(high <= low for (_, high), (low, _) in itertools.pairwise(sorted(ends)))


def test_a_channel_with_one_cell_keeps_it():
    _, state, _ = stream(rows=1, batches=1)
    assert joining.with_few_cells(state, 1).cells.size == 3


# -- who keeps cells -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("learner", "columns", "kept"),
    [
        (Learner(), 2, True),
        (Learner(), 1, True),
        (Learner(VEM(cells=0)), 2, False),
        (Learner(None), 2, False),
    ],
)
def test_who_keeps_cells(learner, columns, kept):
    state = learner.begin(build.one_gaussian(width=columns), columns)
    assert (state.cells is not None) == kept


@pytest.mark.parametrize(("channels", "kept"), [(4, True), (5, False)])
def test_models_of_many_channels_keep_none(channels, kept):
    model = sgp.ContinualGP({f"y{d}": sgp.Gaussian() for d in range(channels)}, engine="dense")
    x = np.linspace(0, 1, 9)
    model.update({"y0": (x, np.sin(x))})
    assert (model.state.cells is not None) == kept


def test_channels_have_cells_for_all_inducing_points():
    """However small the limit is, what points can resolve is not averaged away."""
    rng = np.random.default_rng(0)
    x, noises = rng.uniform(0, 6, (800, 2)), []
    y = np.sin(3 * x[:, 0]) * np.cos(3 * x[:, 1]) + 0.1 * rng.normal(size=800)
    for cells in (10, 1024):
        model = sgp.ContinualGP(
            sgp.Gaussian(), inducing=sgp.Adaptive(budget=64), learning=sgp.VEM(cells=cells)
        )
        for part in np.array_split(np.arange(800), 8):
            model.update(x[part], y[part])
        noises.append(float(model.state.plain.channels[0].likelihood.noise))
    assert model.state.sizes[0] > 50
    assert noises[0] < 1.4 * noises[1]


def test_their_number_does_not_grow_with_the_stream():
    rng = np.random.default_rng(0)
    model = sgp.ContinualGP(sgp.Gaussian(), learning=sgp.VEM(cells=50))
    for _ in range(30):
        x = rng.uniform(0, 1, (20, 3))
        model.update(x, np.sin(5 * x[:, 0]))
        assert model.state.cells.size <= joining.ROOM * max(50, 4 * model.state.sizes[0])
    assert model.state.cells.size < model.state.cells.count[0] / 2 == 300


def test_samples_one_by_one_are_kept_too():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (300, 2))
    model = sgp.ContinualGP(sgp.Gaussian(), learning=sgp.VEM(cells=100))
    model.update_many(x, x[:, 0])
    assert model.state.cells.count[0] == 300
    assert model.state.cells.size <= joining.ROOM * 100


def test_a_large_batch_is_kept_once():
    """Its parts are gone through several times."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (500, 2))
    model = sgp.ContinualGP(sgp.Bernoulli(), batch_rows=200)
    model.update(x, x[:, 0] > 0.5)
    assert model.state.cells.count[0] == model.state.cells.size == 500


def test_cells_of_a_large_batch_are_joined_part_by_part(monkeypatch):
    """There are never more than those of one part beside those that there may be."""
    sizes, joined = [], joining.with_few_cells

    def watched(state, limit):
        sizes.append((state.cells.size, limit))
        return joined(state, limit)

    monkeypatch.setattr(learner_module, "with_few_cells", watched)
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (1500, 2))
    model = sgp.ContinualGP(sgp.Bernoulli(), batch_rows=200, learning=sgp.VEM(cells=60))
    model.update(x, x[:, 0] > 0.5)
    assert len(sizes) > 7
    assert all(size <= joining.ROOM * limit + 200 for size, limit in sizes)
    assert model.state.cells.size <= joining.ROOM * sizes[-1][1]
    assert model.state.cells.count[0] == 1500


def test_forgetting_fades_cells():
    learner, state, _ = stream()
    faded = learner.tempered(state, 0.25)
    for got, wanted in zip(faded.seen_again().past.arrays(), faded.past.arrays(), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)


def test_a_further_channel():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 3, (40, 2))
    model = sgp.ContinualGP({"a": sgp.Gaussian()})
    model.update({"a": (x, x[:, 0])})
    model.add_channel("b", sgp.Categorical(3))
    model.update({"a": (x, x[:, 0]), "b": (x, rng.integers(0, 3, 40))})
    np.testing.assert_array_equal(model.state.cells.count, [80, 40])
    assert np.all(np.isfinite(model.predict(x, "b").mean))


# -- files and merging -----------------------------------------------------------------------------


def test_files_have_cells():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 3, (40, 2))
    model = sgp.ContinualGP(sgp.Gaussian())
    model.update(x, x[:, 0])
    again = sgp.from_bytes(model.to_bytes())
    for got, wanted in zip(again.state.cells.arrays(), model.state.cells.arrays(), strict=True):
        np.testing.assert_array_equal(got, wanted)
    for one in (model, again):
        one.update(x + 1, x[:, 0])
    np.testing.assert_array_equal(again.predict(x).mean, model.predict(x).mean)


@pytest.mark.parametrize("field", ["x", "channel", "linear", "count"])
def test_a_file_with_cells_of_other_sizes_is_refused(field):
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 3, (40, 2))
    model = sgp.ContinualGP(sgp.Gaussian())
    model.update(x, x[:, 0])
    cells = model.state.cells
    broken = dataclasses.replace(cells, **{field: getattr(cells, field)[:-1]})
    updater, progress = model._version
    progress = dataclasses.replace(progress, state=model.state.replace(cells=broken))
    model._version = model._version._replace(updater=updater, progress=progress)
    with pytest.raises(sgp.StreamGPError):
        model.to_bytes()


def test_joined_cells_are_told_from_earlier_ones():
    """The first cell went into another; that those behind it look alike in part says nothing."""
    _, state, _ = stream(("Gaussian",))
    earlier = dataclasses.replace(state.cells, **_first(state.cells, 20))
    assert state.cells.since(earlier).size == 10
    shifted = dataclasses.replace(state.cells, **_first(state.cells, slice(1, 21)))
    assert np.array_equal(shifted.precision, earlier.precision)
    assert state.cells.since(shifted) is None


def _first(cells, which):
    which = slice(which) if isinstance(which, int) else which
    return {name: getattr(cells, name)[which] for name in cells_module._OF_CELLS}


def test_merged_copies_have_the_cells_of_both():
    learner, state, heard = stream(("Gaussian",))
    merged = combine(state, [prepare(learner, state, rows) for rows in heard[:2]])
    assert merged.cells.size == state.cells.size + heard[0].size + heard[1].size
    for got, wanted in zip(merged.seen_again().past.arrays(), merged.past.arrays(), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)


# -- what it is for --------------------------------------------------------------------------------


def test_a_lengthscale_that_shortens_late_is_learned_from_early_rows_too():
    """A drifting stream whose first ground is flat: without cells it stays too smooth there."""

    def held_out(cells):
        rng = np.random.default_rng(0)
        x = rng.uniform(0, 1, (900, 3))
        x = x[np.argsort(x[:, 0])]
        f = np.sin(12 * x[:, 1]) * np.minimum(3 * x[:, 0], 1) + x[:, 2]
        y = f + 0.1 * rng.normal(size=900)
        test = rng.uniform(size=900) < 0.2
        model = sgp.ContinualGP(
            sgp.Gaussian(), inducing=sgp.Adaptive(budget=60), learning=sgp.VEM(cells=cells)
        )
        for part in np.array_split(np.arange(900), 12):
            own = part[~test[part]]
            model.update(x[own], y[own])
        return float(np.sqrt(np.mean((model.predict(x[test]).mean - f[test]) ** 2)))

    assert held_out(512) < 0.75 * held_out(0)
