"""Scales come from the first batch, or are what they are said to be; units do not matter."""

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import streamgp as sgp
from streamgp.model import initial_scales
from streamgp.parameters import unwrap

T = np.linspace(0, 6, 8)
Y = np.sin(T)


def started(x=T, y=Y, likelihood=None, **options):
    settings = {"learning": None, "latents": sgp.RBF(), **options}
    model = sgp.ContinualGP(likelihood or sgp.Gaussian(), **settings)
    model.update(x, y)
    return model


def parts(model, channel=0):
    plain = unwrap(model.state.model)
    return plain.kernels[0], plain.channels[channel], plain.origin


@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    phases=(Phase.generate, Phase.shrink),
)
@given(
    x_scale=st.floats(-6, 6).map(lambda power: 10.0**power),
    x_offset=st.floats(-1e5, 1e5),
    y_scale=st.floats(-6, 6).map(lambda power: 10.0**power),
    y_offset=st.floats(-1e5, 1e5),
    rows=st.sampled_from([2, 3, 8]),
)
def test_predictions_follow_the_units(x_scale, x_offset, y_scale, y_offset, rows):
    """f(x) → b + a·f((x − d)/c), whatever the units; offsets as large as 1e5 of them."""
    at = np.linspace(-1, 7, 8)
    plain = started(T[:rows], Y[:rows]).predict(at)
    x, y = (x_scale * (T[:rows] + x_offset), y_scale * (Y[:rows] + y_offset))
    other = started(x, y).predict(x_scale * (at + x_offset))
    np.testing.assert_allclose(other.mean / y_scale - y_offset, plain.mean, atol=1e-5)
    np.testing.assert_allclose(other.std / y_scale, plain.std, rtol=1e-5)


def test_seconds_since_1970_are_as_good_as_hours():
    seconds = 1.7e9 + 3600 * T
    with pytest.warns(sgp.EpochWarning, match="seconds since 1970"):
        stamps = started(x=seconds).predict(seconds + 360)
    hours = started().predict(T + 0.1)
    np.testing.assert_allclose(stamps.mean, hours.mean, atol=1e-5)


@pytest.mark.parametrize("y", [[3.0], [3.0, 3.0, 3.0]], ids=["one sample", "a constant"])
def test_little_to_take_a_scale_from(y):
    x = T[: len(y)]
    for scale in (True, False, {"y": (3.0, 1.0), "inputs": (0.0, 2.0)}):
        prediction = started(x, y, scale=scale).predict(T)
        assert np.isfinite(prediction.mean).all()
        assert (prediction.std > 0).all()


def test_from_the_first_batch():
    kernel, channel, origin = parts(started(100 + 10 * T, 5 + 3 * Y))
    np.testing.assert_allclose(origin, 100 + 10 * np.mean(T))
    np.testing.assert_allclose(channel.offset, 5 + 3 * np.mean(Y))
    np.testing.assert_allclose(kernel.variance, np.var(3 * Y))
    np.testing.assert_allclose(kernel.lengthscale, 0.25 * 10 * np.std(T))


@pytest.mark.parametrize("alone", [True, False])
def test_levels_may_move_far_from_the_first_batch(alone):
    """A hundred times its spread for real values, 3 behind a logarithm or a logit."""
    names = ["a"] if alone else ["a", "b"]
    model = sgp.ContinualGP({name: sgp.Gaussian() for name in names}, learning=None)
    model.update(dict.fromkeys(names, (T, 5 + 3 * Y)))
    for channel in range(len(names)):
        np.testing.assert_allclose(parts(model, channel)[1].spread, 100 * np.std(3 * Y))
    counts = started(y=np.floor(3 + 2 * Y), likelihood=sgp.Poisson())
    assert parts(counts)[1].spread == pytest.approx(3.0)
    told = started(y=5 + 3 * Y, mean=sgp.Constant(spread=0.7))
    assert parts(told)[1].spread == pytest.approx(0.7)


def test_no_scaling():
    kernel, channel, origin = parts(started(100 + 10 * T, 5 + 3 * Y, scale=False))
    assert origin == 0
    assert channel.offset == 0
    assert channel.scale == 1
    assert kernel.variance == pytest.approx(1)
    assert kernel.lengthscale == pytest.approx(0.25)
    assert channel.likelihood.noise == pytest.approx(0.3)


def test_scales_that_are_given():
    """Beside a channel that takes its own from the data."""
    model = sgp.ContinualGP(
        {"a": sgp.Gaussian(), "b": sgp.Gaussian()},
        learning=None,
        inducing=sgp.Fixed(np.zeros((1, 2))),
        scale={"a": (7.0, 5.0), "inputs": ([1.0, 2.0], [3.0, 40.0])},
    )
    x = np.stack([T, T], axis=-1)
    model.update({"a": (x, Y), "b": (x, Y)})
    kernel, told, origin = parts(model)
    np.testing.assert_allclose(origin, [1.0, 2.0])
    np.testing.assert_allclose(kernel.lengthscale, np.sqrt(2) * np.array([3.0, 40.0]))
    np.testing.assert_allclose([told.offset[0], told.scale[0]], [7, 5])
    _, own, _ = parts(model, 1)
    np.testing.assert_allclose(own.offset, np.mean(Y))


@pytest.mark.parametrize(
    ("likelihood", "noise"),
    [
        (sgp.Gaussian(), lambda likelihood, offset: likelihood.noise),
        (sgp.StudentT(), lambda likelihood, offset: likelihood.scale),
        (sgp.HeteroscedasticGaussian(), lambda likelihood, offset: np.exp(offset[1])),
    ],
)
def test_a_given_scale_is_also_the_noises(likelihood, noise):
    ready, offset, scale = initial_scales.of_channel({"y": (7.0, 5.0)}, "y", likelihood, Y)
    assert offset[0] == 7
    assert scale[0] == 5
    assert noise(unwrap(ready), offset) == pytest.approx(0.3 * 5, rel=1e-3)


def test_given_what_the_data_say_nothing_changes():
    told = {"y": (np.mean(Y), np.std(Y)), "inputs": (np.mean(T), np.std(T))}
    one, other = started().predict(T), started(scale=told).predict(T)
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(one.std, other.std, rtol=1e-4)


@pytest.mark.parametrize(
    "scale",
    [
        {"speed": (0.0, 1.0)},
        {"count": (0.0, 1.0)},
        {"y": (0.0, 0.0)},
        {"y": (np.nan, 1.0)},
        {"y": 1.0},
        {"y": ([0.0, 1.0], 1.0)},
        {"inputs": ("a", 1.0)},
        "no",
        None,
    ],
)
def test_scales_that_cannot_be(scale):
    with pytest.raises(sgp.ConfigurationError, match=r"(?s)^expected .+; got .+\. .+"):
        sgp.ContinualGP({"y": sgp.Gaussian(), "count": sgp.Poisson()}, scale=scale)


def test_as_many_scales_as_input_columns():
    model = sgp.ContinualGP(sgp.Gaussian(), scale={"inputs": ([0.0, 0.0], 1.0)})
    with pytest.raises(sgp.ConfigurationError, match="input column"):
        model.update(T, Y)
    assert model.state is None
