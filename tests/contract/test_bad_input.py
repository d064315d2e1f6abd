"""What cannot be used is refused in a sentence and changes nothing; what is merely odd works."""

import contextlib

import numpy as np
import pytest
from tests.leaves import leaves

import streamgp as sgp

NAN, INF = float("nan"), float("inf")
X = np.linspace(0, 6, 8)
GRID = sgp.Fixed(X)
FAMILIES = {
    "real": sgp.Gaussian(),
    "binary": sgp.Bernoulli(),
    "count": sgp.Poisson(),
    "class": sgp.Categorical(3),
}
GOOD = {
    "real": (X, np.sin(X)),
    "binary": (X, X > 3),
    "count": (X, np.arange(8)),
    "class": (X, np.arange(8) % 3),
}


@pytest.fixture(scope="module")
def trained() -> sgp.ContinualGP:
    model = sgp.ContinualGP(FAMILIES, inducing=GRID, learning=None)
    model.update(GOOD)
    return model


@pytest.fixture(scope="module")
def single() -> sgp.ContinualGP:
    model = sgp.ContinualGP(sgp.Gaussian(), inducing=GRID, learning=None)
    model.update(*GOOD["real"])
    return model


def snapshot(model: sgp.ContinualGP) -> tuple:
    """Every bit of what the model knows."""
    bits = [(leaf.dtype, leaf.shape, leaf.tobytes()) for leaf in leaves(model.state)]
    return bits, model.observations, model.channels, repr(model)


@contextlib.contextmanager
def refused(model: sgp.ContinualGP, expected: str, got: str):
    before = snapshot(model)
    with pytest.raises(sgp.StreamGPError, match=r"(?s)^expected .+; got .+\. .+") as caught:
        yield
    wanted, _, came = str(caught.value).partition("; got ")
    assert expected in wanted
    assert got in came
    assert snapshot(model) == before


# -- bad input -----------------------------------------------------------------------------------

# The batch, what the message says was expected, what it says came.
BAD = {
    "NaN input": ({"real": ([0.0, NAN], [1.0, 2.0])}, "finite inputs of channel 'real'", "row 1"),
    "infinite input": ({"real": ([INF, 0.0], [1.0, 2.0])}, "finite inputs", "1 value that is NaN"),
    "NaN y": (
        {"real": ([0.0, 1.0], [NAN, NAN])},
        "finite observations",
        "2 values that are NaN, infinite or larger, the first in row 0",
    ),
    "infinite y": ({"count": ([0.0, 1.0], [1.0, INF])}, "finite observations", "row 1"),
    "None among y": ({"real": ([0.0, 1.0], [1.0, None])}, "finite observations", "row 1"),
    "half a yes": ({"binary": ([0.0, 1.0], [1.0, 0.5])}, "support of Bernoulli", "0.5"),
    "two for a yes": ({"binary": ([0.0], [2])}, "support of Bernoulli", "2.0"),
    "minus one for a no": (
        {"binary": ([0.0, 1.0, 2.0], [-1, 1, -1])},
        "observations of channel 'binary' as classes numbered 0 and 1",
        "-1.0 in row 0 and 1 more. Convert −1 and 1 to 0 and 1 with `(y + 1) / 2`, or give labels",
    ),
    "one and two": (
        {"binary": ([0.0, 1.0], [1, 2])},
        "as classes numbered 0 and 1",
        "2.0 in row 1. Convert them with `y - 1`, or give labels",
    ),
    "classes from one": (
        {"class": ([0.0, 1.0, 2.0], [1, 2, 3])},
        "as classes numbered from 0 to 2",
        "3.0 in row 2. Convert them with `y - 1`, or give labels",
    ),
    "negative count": ({"count": ([0.0, 1.0], [-1, 4])}, "support of Poisson", "-1.0"),
    "fractional count": ({"count": ([0.0], [1.5])}, "support of Poisson", "1.5"),
    "class too many": ({"class": ([0.0], [3])}, "support of Categorical", "3.0"),
    "unknown channel": ({"speed": ([0.0], [1.0])}, "among ['real', 'binary'", "'speed'"),
    "empty dictionary": ({}, "at least one observation", "empty"),
    "empty arrays": ({"real": ([], []), "count": ([], [])}, "at least one observation", "empty"),
    "fewer y": ({"real": ([0.0, 1.0, 2.0], [1.0, 2.0])}, "3 observations", "(2,)"),
    "more y": ({"real": ([0.0], [1.0, 2.0])}, "1 observation,", "(2,)"),
    "y of two columns": ({"real": ([0.0, 1.0], np.ones((2, 2)))}, "2 observations", "(2, 2)"),
    "words for inputs": (
        {"real": (["noon"], [1.0])},
        "inputs of channel 'real' as numbers or times",
        "'noon' in row 0",
    ),
    "words for y": ({"real": ([0.0], ["high"])}, "observations of channel 'real' as num", "high"),
    "complex inputs": ({"real": ([1j], [1.0])}, "inputs of channel 'real' as numbers", "complex"),
    "complex y": ({"real": ([0.0], [1j])}, "observations of channel 'real' as num", "complex"),
    "ragged inputs": ({"real": ([[0.0], [1.0, 2.0]], [1.0, 2.0])}, "as numbers", "list"),
    "3-D inputs": ({"real": (np.ones((2, 1, 1)), [1.0, 2.0])}, "(N,) or (N, P)", "(2, 1, 1)"),
    "no input columns": ({"real": (np.ones((2, 0)), [1.0, 2.0])}, "(N,) or (N, P)", "(2, 0)"),
    "no y": ({"real": ([0.0, 1.0],)}, "a pair (x, y) for channel 'real'", "tuple"),
    "triple": ({"real": ([0.0], [1.0], [2.0])}, "a pair (x, y) for channel 'real'", "tuple"),
    "number for a pair": ({"real": 1.0}, "a pair (x, y) for channel 'real'", "float"),
    "nothing for a pair": ({"real": None}, "a pair (x, y) for channel 'real'", "NoneType"),
    "good beside bad": ({**GOOD, "class": ([0.0], [-1])}, "support of Categorical", "-1.0"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_batch(trained, kind):
    batch, expected, got = BAD[kind]
    with refused(trained, expected, got):
        trained.update(batch)


@pytest.mark.parametrize("kind", BAD)
def test_bad_first_batch(kind):
    model = sgp.ContinualGP(FAMILIES, inducing=GRID, learning=None)
    batch, expected, got = BAD[kind]
    with refused(model, expected, got):
        model.update(batch)
    assert model.state is None


def test_wrong_width(trained):
    with refused(trained, "1 column,", "2"):
        trained.update({"real": (np.ones((3, 2)), np.ones(3))})


def test_widths_that_differ():
    model = sgp.ContinualGP(FAMILIES, inducing=GRID, learning=None)
    with refused(model, "1 column,", "2"):
        model.update({"real": (np.ones((3, 1)), [1, 2, 3]), "count": (np.ones((3, 2)), [1, 2, 3])})


def test_inducing_points_of_another_width():
    model = sgp.ContinualGP(sgp.Gaussian(), inducing=GRID, learning=None)
    with refused(model, "column", "1"):
        model.update(np.ones((8, 2)), X)


def test_several_channels_need_names(trained):
    with refused(trained, "{name: (x, y)}", "ndarray"):
        trained.update(X, X)


@pytest.mark.parametrize("data", [X, (X, X), None], ids=["inputs", "pair", "nothing"])
def test_missing_y(single, data):
    with refused(single, "inputs and observations", "inputs only"):
        single.update(data)


def test_predict_before_update():
    model = sgp.ContinualGP(FAMILIES)
    with refused(model, "a model with data", "without"):
        model.predict(X, "real")


@pytest.mark.parametrize(
    ("x", "channel", "expected", "got"),
    [
        (X, "speed", "a channel among ['real', 'binary'", "'speed'"),
        (np.ones((2, 3)), "real", "1 column,", "3"),
        (np.ones((2, 1, 1)), "real", "(N,) or (N, P)", "(2, 1, 1)"),
        ([0.0, NAN], "real", "finite inputs", "row 1"),
        ([-INF], "real", "finite inputs", "row 0"),
        (["noon"], "real", "as numbers", "noon"),
    ],
    ids=["channel", "width", "3-D", "NaN", "infinite", "words"],
)
def test_bad_prediction(trained, x, channel, expected, got):
    with refused(trained, expected, got):
        trained.predict(x, channel)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, 95.0, NAN])
def test_bad_level(trained, level):
    prediction = trained.predict(X, "real")
    for method in (prediction.quantile, prediction.interval):
        with refused(trained, "a probability between 0 and 1", repr(level)):
            method(level)


@pytest.mark.parametrize(
    ("y", "expected", "got"),
    [
        ([-1.0] * 8, "support of Poisson", "-1.0"),
        (NAN, "support of Poisson", "nan"),
        ([1.0, 2.0], "8", "2"),
        ("many", "number", "many"),
    ],
    ids=["support", "NaN", "length", "words"],
)
def test_bad_y_to_score(trained, y, expected, got):
    prediction = trained.predict(X, "count")
    with refused(trained, expected, got):
        prediction.log_density(y)


def test_channel_that_exists(trained):
    with refused(trained, "a new channel name", "'real'"):
        trained.add_channel("real", sgp.Poisson())


def test_wrong_new_channel(trained):
    with refused(trained, "a likelihood for channel 'new'", "Poisson"):
        trained.add_channel("new", sgp.Poisson)
    with refused(trained, "mixing weights of channel 'new' of shape (1, 3)", "(2, 2)"):
        trained.add_channel("new", sgp.Poisson(), weights=np.ones((2, 2)))


def test_a_dictionary_and_y(trained):
    with refused(trained, "alone", "a dictionary and y"):
        trained.update(GOOD, X)


def test_masked_values(trained):
    masked = np.ma.masked_array([1.0, 2.0], [False, True])
    with refused(trained, "as numbers", "masked"):
        trained.update({"real": ([0.0, 1.0], masked)})


WRONG_SETTINGS = {
    "link": lambda: sgp.Bernoulli(link="x"),
    "classes": lambda: sgp.Categorical(1),
    "tolerance": lambda: sgp.Adaptive(tolerance=2.0),
    "noise": lambda: sgp.ContinualGP(sgp.Gaussian(noise=-1.0)).update(X, X),
    "lengthscale": lambda: sgp.ContinualGP(
        sgp.Gaussian(), latents=[sgp.RBF(lengthscale=-1.0)]
    ).update(X, X),
    "class of a likelihood": lambda: sgp.ContinualGP(sgp.Gaussian),
    "class of a kernel": lambda: sgp.ContinualGP(sgp.Gaussian(), latents=[sgp.RBF]),
    "NaN points": lambda: sgp.ContinualGP(sgp.Gaussian(), inducing=sgp.Fixed([0.0, NAN])).update(
        X, X
    ),
    "weights of nobody": lambda: sgp.ContinualGP(FAMILIES, mixing={"speed": np.ones((1, 3))}),
    "weights' shape": lambda: sgp.ContinualGP(FAMILIES, mixing={"real": np.ones((2, 3))}),
    "no channel": lambda: sgp.ContinualGP({}),
}


@pytest.mark.parametrize("setting", WRONG_SETTINGS)
def test_wrong_settings(setting):
    with pytest.raises(sgp.ConfigurationError, match=r"(?s)^expected .+; got .+\. .+"):
        WRONG_SETTINGS[setting]()


@pytest.mark.parametrize("ask", ["quantile", "interval", "sample", "channel"])
def test_wrong_questions(trained, ask):
    prediction = trained.predict(X, "real")
    questions = {
        "quantile": lambda: prediction.quantile("a"),
        "interval": lambda: prediction.interval(None),
        "sample": lambda: prediction.sample(-1),
        "channel": lambda: trained.predict(X, ["real"]),
    }
    with pytest.raises(sgp.DataError, match=r"(?s)^expected .+; got .+\. .+"):
        questions[ask]()


# -- odd input -----------------------------------------------------------------------------------


def assert_sound(prediction: sgp.Prediction):
    assert np.isfinite(prediction.mean).all()
    assert np.isfinite(prediction.variance).all()
    assert np.all(prediction.variance >= 0)
    assert np.all(prediction.latent_variance >= 0)


def learned(x, y) -> sgp.ContinualGP:
    """As a user would, with every default."""
    model = sgp.ContinualGP(sgp.Gaussian())
    assert np.isfinite(model.update(x, y).bound)
    return model


def started(x, y, **settings) -> sgp.ContinualGP:
    """As it stands before any hyperparameter is learned."""
    model = sgp.ContinualGP(sgp.Gaussian(), learning=None, **settings)
    assert np.isfinite(model.update(x, y).bound)
    return model


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([0.3], [0.7]),
        ([0.3], [0.0]),
        ([0.3, 0.3], [0.7, 0.7]),
        ([0.1] * 7, [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.5]),
        ([3e9 + 0.1] * 7, [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.5]),
        (X, [0.1] * 8),
        (X, [0.0] * 8),
    ],
    ids=["one", "one zero", "twice the same", "one place", "one far place", "constant", "zeros"],
)
def test_little_to_go_by(x, y):
    """Inputs at one place say nothing of the scale, and rounding of their spread must not."""
    model = learned(x, y)
    at, nearby = model.predict(x), model.predict(np.asarray(x) + 1e-3)
    assert_sound(at)
    assert_sound(nearby)
    np.testing.assert_allclose(at.mean, np.mean(y), atol=1e-3)
    np.testing.assert_allclose(nearby.mean, at.mean, atol=1e-3)
    np.testing.assert_allclose(nearby.latent_variance, at.latent_variance, rtol=1.0, atol=1e-6)


@pytest.mark.parametrize(
    ("x_scale", "x_offset", "y_scale"),
    [
        (1.0, 0.0, 1.0),
        (1.0, 0.0, 1e8),
        (1.0, 0.0, 1e-8),
        (1e8, 0.0, 1.0),
        (1e-8, 0.0, 1.0),
        (1.0, 3e9, 1.0),
        (1e-3, -1e9, 1e8),
    ],
)
def test_units_do_not_matter(x_scale, x_offset, y_scale):
    t = np.linspace(0, 4, 8)
    between = 0.5 * (t[1:] + t[:-1])
    model = learned(x_offset + x_scale * t, y_scale * np.sin(t))
    prediction = model.predict(x_offset + x_scale * between)
    assert_sound(prediction)
    np.testing.assert_allclose(prediction.mean / y_scale, np.sin(between), atol=0.02)
    assert np.all(prediction.std < 0.1 * y_scale)


@pytest.mark.parametrize("y_offset", [1e8, -1e-8])
def test_an_offset_of_y_does_not_matter(y_offset):
    t = np.linspace(0, 4, 8)
    scale = abs(y_offset) * 1e-3
    prediction = learned(t, y_offset + scale * np.sin(t)).predict(t)
    assert_sound(prediction)
    np.testing.assert_allclose((prediction.mean - y_offset) / scale, np.sin(t), atol=0.01)


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e-3])
def test_a_stream_may_begin_with_one_sample(scale):
    """The first batch tells nothing of the inputs' scale then; the others have to."""
    t = np.random.default_rng(0).permutation(np.linspace(0, 6, 25))
    between = np.linspace(0.125, 5.875, 24)
    model = learned(scale * t[:1], np.sin(t[:1]))
    for part in np.split(t[1:], 3):
        model.update(scale * part, np.sin(part))
    prediction = model.predict(scale * between)
    assert_sound(prediction)
    assert np.sqrt(np.mean((prediction.mean - np.sin(between)) ** 2)) < 0.1


def test_a_stream_may_begin_with_rounding_noise():
    """sin(π) is 1e-16 in floating point: no scale for y."""
    t = np.random.default_rng(0).permutation(np.linspace(0, 6, 24))
    model = learned([np.pi], [np.sin(np.pi)])
    for part in np.split(t, 3):
        model.update(part, np.sin(part))
    prediction = model.predict(t)
    assert_sound(prediction)
    assert np.sqrt(np.mean((prediction.mean - np.sin(t)) ** 2)) < 0.1


def test_columns_of_different_scales():
    t = np.random.default_rng(1).uniform(-1, 1, size=(8, 2))
    y = np.sin(2 * t[:, 0]) + t[:, 1]
    units = np.array([1e6, 1e-6])
    plain, scaled = started(t, y).predict(t + 0.1), started(t * units, y).predict((t + 0.1) * units)
    assert_sound(scaled)
    np.testing.assert_allclose(scaled.mean, plain.mean, rtol=1e-6)
    np.testing.assert_allclose(scaled.variance, plain.variance, rtol=1e-6)


def test_a_column_that_never_moves():
    t = np.linspace(0, 4, 7)
    x = np.stack([t, np.full(7, 0.1)], axis=-1)
    model = started(x, np.sin(t))
    at, nearby = model.predict(x), model.predict(x + np.array([0.0, 1e-3]))
    assert_sound(at)
    np.testing.assert_allclose(at.mean, np.sin(t), atol=0.2)
    np.testing.assert_allclose(nearby.mean, at.mean, atol=1e-3)


def level_variances(model):
    """What is left to be known of the level of each latent parameter, by channel."""
    state, spreads = model.state, model.state.plain.basis_spreads()[:, 0]
    variances = spreads**2 * np.diag(state.posterior.covariance)[-len(spreads) :]
    assert np.all(variances < 0.5 * spreads**2)  # the data say something
    return dict(
        zip(model.channels, np.split(variances, state.plain.outputs.first[1:]), strict=True)
    )


def test_far_from_everything(trained):
    """Nothing is known there but the prior, and what the data say of the channels' levels."""
    far = np.array([1e3, -1e6, 1e12, -1e99])
    levels = level_variances(trained)
    for name, prediction in trained.predict(far).items():
        assert_sound(prediction)
        weights = trained.hyperparameters["channels"][name]["weights"]
        prior = np.sum(weights**2, axis=-1)
        variance = np.reshape(prediction.latent_variance, (4, -1))
        np.testing.assert_allclose(variance, np.tile(prior + levels[name], (4, 1)), rtol=1e-9)
        assert np.all(prediction.latent_mean == prediction.latent_mean[0])


def test_learning_far_from_everything():
    model = learned(X, np.sin(X))
    model.update([1e6, -1e6], [0.5, -0.5])
    prediction = model.predict([X[3], 1e6, -1e6])
    assert_sound(prediction)
    np.testing.assert_allclose(prediction.mean, [np.sin(X[3]), 0.5, -0.5], atol=0.05)


class Foreign:
    """An array of another library, which NumPy can read."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (np.arange(8), np.arange(8) % 3),
        (list(range(8)), [0, 1, 2, 0, 1, 2, 0, 1]),
        (tuple(range(8)), tuple(i % 3 for i in range(8))),
        (np.arange(8.0)[:, None], (np.arange(8.0) % 3)[:, None]),
        (np.arange(8, dtype=np.float32), (np.arange(8) % 3).astype(np.uint8)),
        (Foreign(np.arange(8)), Foreign(np.arange(8) % 3)),
    ],
    ids=["integers", "lists", "tuples", "columns", "small types", "another library"],
)
def test_any_container_of_numbers(x, y):
    plain = np.arange(8.0)
    expected = started(plain, plain % 3, inducing=GRID).predict(plain)
    actual = started(x, y, inducing=GRID).predict(x)
    assert_sound(actual)
    np.testing.assert_array_equal(actual.mean, expected.mean)


def test_booleans_for_yes_and_no():
    answers = [X > 3, (X > 3).astype(float), [int(x > 3) for x in X], [bool(x > 3) for x in X]]
    models = [sgp.ContinualGP(FAMILIES, inducing=GRID, learning=None) for _ in answers]
    for model, y in zip(models, answers, strict=True):
        model.update({**GOOD, "binary": (X, y)})
    assert all(snapshot(model) == snapshot(models[0]) for model in models)
    probability = models[0].predict(X, "binary").mean
    assert probability[0] < 0.5 < probability[-1]


def test_one_observation_as_two_numbers():
    for number in (float, np.array, np.float32, lambda value: Foreign(np.array(value))):
        model = started(number(0.3), number(0.7), inducing=GRID)
        assert model.observations == {"y": 1}
        assert_sound(model.predict(number(0.3)))


@pytest.mark.parametrize("width", [1, 2])
def test_a_channel_may_have_nothing(width):
    families = {"other": sgp.Gaussian(), "real": sgp.Gaussian()}
    x = np.stack([X] * width, axis=-1)
    model = sgp.ContinualGP(families, latents=1, inducing=sgp.Fixed(x), learning=None)
    report = model.update({"other": ([], []), "real": (x, np.sin(X))})
    assert report.observations == {"real": 8}
    assert model.observations == {"other": 0, "real": 8}
    model.update({"other": ([], []), "real": (x, np.sin(X))})
    assert model.observations == {"other": 0, "real": 16}
    for prediction in model.predict(x).values():
        assert_sound(prediction)


def test_predicting_nowhere(trained):
    assert all(len(prediction.mean) == 0 for prediction in trained.predict([]).values())


def test_data_may_be_of_single_precision():
    """The model keeps its own numbers in double precision all the same."""
    single = X.astype(np.float32)
    model = started(single, np.sin(single), inducing=sgp.Fixed(single))
    model.add_channel("count", sgp.Poisson())
    model.update({"count": (single, np.arange(8, dtype=np.float32))})
    assert_sound(model.predict(single, "count"))
    kept = {leaf.dtype for leaf in leaves(model.state) if leaf.dtype.kind == "f"}
    assert kept == {np.dtype("float64")}
