"""Random streams: whatever comes in whatever order, the posterior behaves like one."""

import itertools

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests._reference import build

import streamgp as sgp
from streamgp.inference.sparse.learner import Learner

FAMILIES = {"real": sgp.Gaussian(), "binary": sgp.Bernoulli(), "count": sgp.Poisson()}
GAUSSIAN = ("real", "other")
MILD = {
    "real": st.floats(-3, 3),
    "other": st.floats(-3, 3),
    "binary": st.booleans().map(float),
    "count": st.integers(0, 9).map(float),
}
WILD = {**MILD, "real": st.floats(-100, 100), "count": st.integers(0, 1000).map(float)}
INPUTS = st.integers(-10, 70).map(lambda tenths: tenths / 10)  # so that some come twice
INDUCING = np.linspace(0, 6, 10)
TEST = np.linspace(-2, 8, 21)
ROUNDS = settings(
    deadline=None,
    max_examples=12,
    derandomize=True,
    phases=(Phase.generate, Phase.shrink),  # explaining traces every line: minutes
)


@st.composite
def batches(draw, channels, values):
    """One to eight rows, of any of the channels, in any order."""
    rows = draw(st.lists(st.sampled_from(channels), min_size=1, max_size=8))
    names = draw(st.permutations(sorted(set(rows))))
    return {
        name: (
            np.array([draw(INPUTS) for _ in range(rows.count(name))]),
            np.array([draw(values[name]) for _ in range(rows.count(name))]),
        )
        for name in names
    }


def streams(channels=tuple(FAMILIES), values=MILD):
    return st.lists(batches(channels, values), min_size=1, max_size=5)


# -- any stream ----------------------------------------------------------------------------------

STRATEGIES = {
    "fixed": sgp.Fixed(INDUCING),
    "growing": sgp.Growing(lambda update: 2 + 2 * update),
    "adaptive": sgp.Adaptive(tolerance=1e-2),
    "crowded": sgp.Adaptive(tolerance=1e-2, budget=5),
}


@pytest.mark.parametrize("inducing", STRATEGIES.values(), ids=STRATEGIES)
@ROUNDS
@given(stream=streams(values=WILD))
def test_all_numbers_are_sound(inducing, stream):
    model = sgp.ContinualGP(FAMILIES, latents=2, inducing=inducing, learning=None)
    for batch in stream:
        report = model.update(batch)
        assert np.isfinite(report.bound)
        assert not any(np.isnan(rows).any() for rows in report.log_predictive_rows.values())
        for prediction in model.predict(TEST).values():
            assert np.isfinite(prediction.latent_mean).all()
            assert np.isfinite(prediction.latent_variance).all()
            assert np.all(prediction.latent_variance >= 0)
            assert np.isfinite(prediction.mean).all()
            assert np.isfinite(prediction.variance).all()
            assert np.all(prediction.variance >= 0)
    for name in FAMILIES:
        assert model.observations[name] == sum(len(b[name][0]) for b in stream if name in b)


@pytest.mark.parametrize("y", [39.0, 400.0, 5000.0])
def test_a_surprise_is_settled(y):
    """No event where the other channel has just put a huge rate: the sites must not stay there.

    A posterior that ignored the other channel, of noise 0.15, would have half this bound.
    """
    model = sgp.ContinualGP(FAMILIES, latents=2, inducing=STRATEGIES["fixed"], learning=None)
    model.update({"real": ([3.0], [0.5])})
    report = model.update({"real": ([2.8], [y]), "count": ([2.6], [0.0])})
    assert report.bound > -((y / 0.15) ** 2)
    assert model.predict([2.6], "count").latent_mean < 20


# -- fixed hyperparameters -------------------------------------------------------------------------

WEIGHTS = {"real": [[1.0, 0.5]], "binary": [[-1.0, 0.7]], "count": [[0.2, -0.6]]}


def steady(*names: str) -> sgp.ContinualGP:
    """A model whose noise and weights do not come from its first data."""
    families = {**FAMILIES, "real": sgp.Gaussian(noise=sgp.fixed(0.3))}
    return sgp.ContinualGP(
        {name: families[name] for name in names},
        latents=2,
        inducing=STRATEGIES["fixed"],
        learning=None,
        mixing={name: sgp.fixed(WEIGHTS[name]) for name in names},
    )


@ROUNDS
@given(stream=streams())
def test_data_never_add_uncertainty(stream):
    """Whichever channel they come from."""
    model = steady("real", "binary", "count")
    variances = []
    for batch in stream:
        model.update(batch)
        variances.append(model.predict(TEST, "real").latent_variance)
    for before, after in itertools.pairwise(variances):
        assert np.all(after <= before * (1 + 1e-9))


@ROUNDS
@given(stream=streams())
def test_the_order_of_channels_does_not_matter(stream):
    first, second = steady("real", "binary", "count"), steady("count", "real", "binary")
    for batch in stream:
        first.update(batch)
        second.update(dict(reversed(batch.items())))
    for name in FAMILIES:
        one, other = first.predict(TEST, name), second.predict(TEST, name)
        np.testing.assert_allclose(one.latent_mean, other.latent_mean, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(one.latent_variance, other.latent_variance, rtol=1e-8, atol=1e-8)


# -- Gaussian streams ------------------------------------------------------------------------------

LEARNER = Learner(learning=None)


def folded(stream: list[dict]) -> tuple[np.ndarray, np.ndarray]:
    """Latent moments of both channels after a stream, by the functional core."""
    channels = [
        build.channel(build.gaussian(0.3), [[1.0, 0.4]], offset=0.2),
        build.channel(build.gaussian(0.5), [[-0.3, 0.8]], scale=2.0),
    ]
    model = build.model(channels, lengthscales=(1.0, 0.6))
    state = LEARNER.init(model, build.points(INDUCING, INDUCING))
    for batch in stream:
        rows = build.rows(*[(GAUSSIAN.index(name), x, y) for name, (x, y) in batch.items()])
        state, _ = LEARNER.step(state, rows)
    moments = [LEARNER.predict(state, TEST[:, None], d) for d in range(len(GAUSSIAN))]
    return tuple(np.stack(part) for part in zip(*moments, strict=True))


@ROUNDS
@given(data=st.data(), stream=streams(GAUSSIAN))
def test_the_order_of_batches_does_not_matter(data, stream):
    order = data.draw(st.permutations(range(len(stream))))
    for one, other in zip(folded(stream), folded([stream[i] for i in order]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)


@ROUNDS
@given(stream=streams(GAUSSIAN))
def test_one_row_at_a_time_is_the_same(stream):
    rows = [
        {name: (x[i : i + 1], y[i : i + 1])}
        for batch in stream
        for name, (x, y) in batch.items()
        for i in range(len(x))
    ]
    for one, other in zip(folded(stream), folded(rows), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)
