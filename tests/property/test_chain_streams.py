"""Random streams on chains: whatever comes in whatever order, the posterior behaves like one."""

import itertools

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import streamgp as sgp

FAMILIES = {
    "real": sgp.Gaussian(noise=0.3),
    "binary": sgp.Bernoulli(),
    "count": sgp.Poisson(),
}
KERNELS = {
    "rough": [sgp.Matern12(0.7), sgp.Matern32(1.5)],
    "smooth": [sgp.Matern52(1.0), sgp.Matern32(0.2) + sgp.Matern52(5.0)],
    "driven": [sgp.SHO(1.5, 4.0) + sgp.CARMA([4.0, 0.5], [1.0]), sgp.RBF(1.0).as_markov()],
    "seasonal": [sgp.Periodic(1.0, period=2.0) * sgp.Matern32(8.0), sgp.Matern32()],
}
GROWING = {
    "lines": [sgp.Linear(), sgp.Linear() + sgp.Matern12(1.0)],
    "lines and seasons": [sgp.Periodic(1.0, period=2.0), sgp.Linear() + sgp.Matern32()],
}
MILD = {
    "real": st.floats(-3, 3),
    "binary": st.booleans().map(float),
    "count": st.integers(0, 9).map(float),
}
WILD = {
    "real": st.floats(-100, 100) | st.floats(-1e-6, 1e-6) | st.just(0.0),
    "binary": st.booleans().map(float),
    "count": st.integers(0, 1000).map(float) | st.integers(0, 3).map(float),
}
NEAR = st.integers(-10, 70).map(lambda tenths: tenths / 10)  # so that some come twice
FAR = NEAR | st.floats(-1e4, 1e4) | st.integers(0, 9).map(lambda k: 1e-9 * k) | st.just(-1e9)
TEST = np.concatenate([[-1e12, -2e4], np.linspace(-3, 9, 13), [2e4, 1e12]])


def rounds(examples):
    return settings(
        deadline=None,
        max_examples=examples,
        derandomize=True,
        phases=(Phase.generate, Phase.shrink),  # explaining traces every line: minutes
    )


@st.composite
def batches(draw, inputs, values):
    """One to eight rows, of any of the channels, in any order."""
    rows = draw(st.lists(st.sampled_from(tuple(FAMILIES)), min_size=1, max_size=8))
    names = draw(st.permutations(sorted(set(rows))))
    return {
        name: (
            np.array([draw(inputs) for _ in range(rows.count(name))]),
            np.array([draw(values[name]) for _ in range(rows.count(name))]),
        )
        for name in names
    }


def streams(inputs, values, most=5):
    return st.lists(batches(inputs, values), min_size=1, max_size=most)


def assert_sound(model, test=TEST):
    for prediction in model.predict(test).values():
        assert np.isfinite(prediction.latent_mean).all()
        assert np.isfinite(prediction.latent_variance).all()
        assert np.all(prediction.latent_variance >= 0)
        assert not np.isnan(prediction.mean).any()
        assert not np.isnan(prediction.variance).any()
        assert np.all(prediction.variance >= 0)


@pytest.mark.parametrize("latents", KERNELS.values(), ids=KERNELS)
@rounds(10)
@given(stream=streams(FAR, WILD))
def test_all_numbers_are_sound(latents, stream):
    model = sgp.ContinualGP(FAMILIES, latents=latents, learning=None, engine="chain")
    for batch in stream:
        report = model.update(batch)
        assert np.isfinite(report.bound)
        assert not any(np.isnan(rows).any() for rows in report.log_predictive_rows.values())
        assert_sound(model)
    for name in FAMILIES:
        assert model.observations[name] == sum(len(b[name][0]) for b in stream if name in b)
    times = model.inducing_points[0][:, 0]
    assert np.all(np.diff(times) > 0)


@pytest.mark.parametrize("latents", GROWING.values(), ids=GROWING)
@rounds(10)
@given(stream=streams(NEAR, MILD))
def test_functions_that_grow_are_sound_where_the_data_are(latents, stream):
    """Far away a straight line has no end, and counts that depend on it none either."""
    model = sgp.ContinualGP(FAMILIES, latents=latents, learning=None, engine="chain")
    for batch in stream:
        assert np.isfinite(model.update(batch).bound)
        assert_sound(model, TEST[2:-2])


@rounds(6)
@given(stream=streams(NEAR, MILD, most=3))
def test_all_numbers_are_sound_while_it_learns(stream):
    model = sgp.ContinualGP(
        FAMILIES, latents=[sgp.Matern32(), sgp.Matern52()], engine="chain",
        learning=sgp.VEM(rounds=1, evaluations=4),
    )  # fmt: skip
    for batch in stream:
        assert np.isfinite(model.update(batch).bound)
        assert_sound(model)
    assert_sound(sgp.from_bytes(model.to_bytes()))


@rounds(10)
@given(stream=streams(FAR, WILD, most=3))
def test_samples_one_at_a_time_are_sound(stream):
    model = sgp.ContinualGP(FAMILIES, latents=sgp.Matern32(1.0), learning=None, engine="chain")
    for batch in stream:
        x = np.concatenate([x for x, _ in batch.values()])
        y = np.concatenate([y for _, y in batch.values()])
        names = np.repeat(list(batch), [len(x) for x, _ in batch.values()])
        report = model.update_many(x, y, names)
        assert not any(np.isnan(rows).any() for rows in report.log_predictive_rows.values())
        assert_sound(model)


def steady():
    """A model whose weights and levels do not come from its first data."""
    return sgp.ContinualGP(
        {"real": sgp.Gaussian(noise=sgp.fixed(0.3)), "other": sgp.Gaussian(noise=sgp.fixed(0.5))},
        latents=[sgp.Matern32(1.0), sgp.Matern52(2.0)], learning=None, engine="chain", scale=False,
        mixing={"real": sgp.fixed([[1.0, 0.5]]), "other": sgp.fixed([[-0.6, 1.6]])},
    )  # fmt: skip


PLACES = np.arange(-4.0, 8.0)  # so far apart that every row has a time of its own


@st.composite
def observed(draw):
    """Rows at some places, several at some of them, in any order and cut anywhere."""
    rows = draw(
        st.lists(
            st.tuples(
                st.sampled_from(["real", "other"]), st.sampled_from(PLACES), st.floats(-3, 3)
            ),
            min_size=2, max_size=12,
        )
    )  # fmt: skip
    cuts = draw(st.lists(st.integers(1, len(rows) - 1), unique=True, max_size=4))
    return rows, sorted(cuts)


def learn(model, rows):
    names = dict.fromkeys(name for name, _, _ in rows)
    own = {name: [(x, y) for n, x, y in rows if n == name] for name in names}
    return model.update(
        {name: tuple(map(np.array, zip(*v, strict=True))) for name, v in own.items()}
    )


@rounds(20)
@given(case=observed())
def test_any_cut_gives_the_same_posterior_and_evidence(case):
    rows, cuts = case
    whole, parts = steady(), steady()
    bound = learn(whole, rows).bound
    edges = [0, *cuts, len(rows)]
    total = sum(learn(parts, rows[a:b]).bound for a, b in itertools.pairwise(edges))
    np.testing.assert_allclose(total, bound, rtol=1e-8, atol=1e-8)
    for name in whole.channels:
        one, other = whole.predict(TEST[2:-2], name), parts.predict(TEST[2:-2], name)
        np.testing.assert_allclose(one.latent_mean, other.latent_mean, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(one.latent_variance, other.latent_variance, rtol=1e-8)
