"""Random streams: whatever comes in whatever order, the posterior behaves like one."""

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests._reference import build

import streamgp as sgp
from streamgp.data import pack
from streamgp.learner import Learner

FAMILIES = {"real": sgp.Gaussian(), "binary": sgp.Bernoulli(), "count": sgp.Poisson()}
WEIGHTS = {"real": [[1.0, 0.5]], "binary": [[-1.0, 0.7]], "count": [[0.2, -0.6]]}
VALUES = {
    "real": st.floats(-100, 100),
    "binary": st.booleans().map(float),
    "count": st.integers(0, 50).map(float),
}
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
def batches(draw, channels=tuple(FAMILIES)):
    """One to eight rows, of any of the channels, in any order: one padded size."""
    rows = draw(st.lists(st.sampled_from(channels), min_size=1, max_size=8))
    names = draw(st.permutations(sorted(set(rows))))
    return {
        name: (
            np.array([draw(INPUTS) for _ in range(rows.count(name))]),
            np.array([draw(VALUES[name]) for _ in range(rows.count(name))]),
        )
        for name in names
    }


def streams(*channels):
    return st.lists(batches(channels or tuple(FAMILIES)), min_size=1, max_size=5)


# -- any stream ----------------------------------------------------------------------------------

STRATEGIES = {
    "fixed": sgp.Fixed(INDUCING),
    "growing": sgp.Growing(lambda update: 2 + 2 * update),
    "adaptive": sgp.Adaptive(tolerance=1e-2),
    "crowded": sgp.Adaptive(tolerance=1e-2, budget=5),
}


@pytest.mark.parametrize("inducing", STRATEGIES.values(), ids=STRATEGIES)
@ROUNDS
@given(stream=streams())
def test_all_numbers_are_sound(inducing, stream):
    model = sgp.ContinualGP(FAMILIES, latents=2, inducing=inducing, learning=None)
    for batch in stream:
        report = model.update(batch)
        assert np.isfinite(report.bound)
        assert all(np.isfinite(rows).all() for rows in report.log_predictive_rows.values())
        for prediction in model.predict(TEST).values():
            assert np.isfinite(prediction.latent_mean).all()
            assert np.isfinite(prediction.latent_variance).all()
            assert np.all(prediction.latent_variance >= 0)
            assert np.isfinite(prediction.mean).all()
            assert np.isfinite(prediction.variance).all()
            assert np.all(prediction.variance >= 0)
    for name in FAMILIES:
        assert model.observations[name] == sum(len(b[name][0]) for b in stream if name in b)


@ROUNDS
@given(stream=streams())
def test_data_never_add_uncertainty(stream):
    """At fixed inducing points and hyperparameters, whichever channel they come from."""
    model = sgp.ContinualGP(FAMILIES, latents=2, inducing=STRATEGIES["fixed"], learning=None)
    model.update({"real": ([3.0], [0.5])})  # the channel has its scale from here on
    before = model.predict(TEST, "real").latent_variance
    for batch in stream:
        model.update(batch)
        after = model.predict(TEST, "real").latent_variance
        assert np.all(after <= before * (1 + 1e-9))
        before = after


@ROUNDS
@given(stream=streams())
def test_the_order_of_channels_does_not_matter(stream):
    first, second = (
        sgp.ContinualGP(
            {name: FAMILIES[name] for name in names},
            latents=2,
            inducing=STRATEGIES["fixed"],
            learning=None,
            mixing={name: sgp.fixed(WEIGHTS[name]) for name in names},
        )
        for names in (("real", "binary", "count"), ("count", "real", "binary"))
    )
    for batch in stream:
        first.update(batch)
        second.update(dict(reversed(batch.items())))
    for name in FAMILIES:
        one, other = first.predict(TEST, name), second.predict(TEST, name)
        np.testing.assert_allclose(one.latent_mean, other.latent_mean, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(one.latent_variance, other.latent_variance, rtol=1e-8, atol=1e-8)


# -- Gaussian streams ------------------------------------------------------------------------------

LEARNER = Learner(learning=None)
CHANNELS = ("real", "other")
VALUES["other"] = st.floats(-3, 3)


def folded(stream: list[dict]) -> tuple[np.ndarray, np.ndarray]:
    """Latent moments of both channels after a stream, by the functional core."""
    channels = [
        build.channel(build.gaussian(0.3), [[1.0, 0.4]], offset=0.2),
        build.channel(build.gaussian(0.5), [[-0.3, 0.8]], scale=2.0),
    ]
    model = build.model(channels, lengthscales=(1.0, 0.6))
    state = LEARNER.init(model, build.inducing(INDUCING, INDUCING))
    for batch in stream:
        rows = [(CHANNELS.index(name), x[:, None], y) for name, (x, y) in batch.items()]
        state, _ = build.step(LEARNER, state, pack(rows))
    moments = [build.predict(LEARNER, state, TEST[:, None], d) for d in range(len(CHANNELS))]
    return tuple(np.stack(part) for part in zip(*moments, strict=True))


@ROUNDS
@given(data=st.data(), stream=streams(*CHANNELS))
def test_the_order_of_batches_does_not_matter(data, stream):
    order = data.draw(st.permutations(range(len(stream))))
    for one, other in zip(folded(stream), folded([stream[i] for i in order]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)


@ROUNDS
@given(stream=streams(*CHANNELS))
def test_one_row_at_a_time_is_the_same(stream):
    rows = [
        {name: (x[i : i + 1], y[i : i + 1])}
        for batch in stream
        for name, (x, y) in batch.items()
        for i in range(len(x))
    ]
    for one, other in zip(folded(stream), folded(rows), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)
