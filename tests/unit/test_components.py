"""Components of predictions: they add up, and each is what conditioning of its own law gives."""

import numpy as np
import pytest
from tests._reference import components as oracle
from tests._reference import families

import streamgp as sgp
from streamgp.model.composition import Composition

# So far apart that on a chain every row has a time of its own.
T = np.cumsum(np.random.default_rng(3).uniform(0.5, 0.85, 60))
AHEAD = np.concatenate([np.linspace(-3, 40, 15), [41.0, 47.0, 60.0]])
CHANNEL = np.arange(60) % 2
FAST, SLOW, OTHER = (1.5, 0.8), (12.0, 2.0), (5.0, 1.3)
WEIGHTS = np.array([[1.0, 0.5], [-0.7, 1.4]])
NOISE, LEVELS, OFFSETS = (0.3, 0.5), (2.0, 1.5), (10.0, -4.0)
SEASON, SLOPE = 1.2, 3.0
EVENT = (20.0, 24.0)


def fast(a, b):
    return oracle.matern32(a, b, *FAST)


def slow(a, b):
    return oracle.matern52(a, b, *SLOW)


def both(a, b):
    return fast(a, b) + slow(a, b)


def other(a, b):
    return oracle.matern32(a, b, *OTHER)


def observed():
    rng = np.random.default_rng(1)
    return np.where(CHANNEL, -4.0, 10.0) + np.sin(T) + 0.1 * T + 0.4 * rng.normal(size=60)


def bases(channel, t):
    """The mean functions times their prior spreads, by component."""
    found = {"level": LEVELS[channel] * np.ones((len(t), 1))}
    if channel == 0:
        found["trend"] = SLOPE * (t[:, None] - 20) / 20
        found["sale"] = 2.5 * ((EVENT[0] <= t) & (t <= EVENT[1]))[:, None]
    angle = 2 * np.pi * t[:, None] / 7
    first, second = SEASON, SEASON / 2
    found["season 7"] = np.concatenate(
        [
            first * np.cos(angle), first * np.sin(angle),
            second * np.cos(2 * angle), second * np.sin(2 * angle),
        ],
        axis=1,
    )  # fmt: skip
    return found


def built(engine, points, **options):
    trend = sgp.Trend(over=(0.0, 40.0), spread=SLOPE)
    events = sgp.Events({"sale": [EVENT]}, spread=2.5)
    model = sgp.ContinualGP(
        {"a": sgp.Gaussian(sgp.fixed(NOISE[0])), "b": sgp.Gaussian(sgp.fixed(NOISE[1]))},
        latents=[sgp.Matern32(*FAST) + sgp.Matern52(*SLOW), sgp.Matern32(*OTHER)],
        mixing={"a": sgp.fixed(WEIGHTS[[0]]), "b": sgp.fixed(WEIGHTS[[1]])},
        mean={"a": sgp.Constant(LEVELS[0]) + trend + events, "b": sgp.Constant(LEVELS[1])},
        seasons=[sgp.Seasonal(7.0, harmonics=2, spread=SEASON)],
        scale={"a": (OFFSETS[0], 1.0), "b": (OFFSETS[1], 1.0)},
        learning=None,
        engine=engine,
        inducing=None if points is None else sgp.Fixed(points),
        **options,
    )
    y = observed()
    for rows in np.array_split(np.arange(60), 4):
        batch = {
            name: (T[rows][CHANNEL[rows] == d], y[rows][CHANNEL[rows] == d])
            for d, name in enumerate("ab")
        }
        model.update(batch)
    return model


def wanted(channel, points):
    """Means and covariances of all components of a channel, by conditioning of dense matrices."""
    functions = [([fast, slow], both), ([other], other)]
    pick = [np.flatnonzero(d == CHANNEL) for d in (0, 1)]
    weight = WEIGHTS[CHANNEL]
    train = np.zeros((60, 60))
    prior_of, cross = [], []
    for d in (0, 1):
        for columns in bases(d, T[pick[d]]).values():
            train[np.ix_(pick[d], pick[d])] += columns @ columns.T
    here, there = bases(channel, T), bases(channel, AHEAD)
    for name, columns in there.items():
        prior_of.append(np.sum(columns**2, axis=1))
        cross.append((columns @ here[name].T) * (channel == CHANNEL))
    for q, (parts, kernel) in enumerate(functions):
        if points is None:
            crosses, seen = parts, kernel
        else:
            crosses, seen = oracle.through(kernel, points, parts)
        train += np.outer(weight[:, q], weight[:, q]) * seen(T, T)
        for part, own in zip(parts, crosses, strict=True):
            prior_of.append(WEIGHTS[channel, q] ** 2 * np.diag(part(AHEAD, AHEAD)))
            cross.append(WEIGHTS[channel, q] * own(AHEAD, T) * weight[:, q])
    prior = np.stack([np.diag(row) for row in np.stack(prior_of, axis=1)])
    offsets, noises = np.array(OFFSETS)[CHANNEL], np.array(NOISE)[CHANNEL] ** 2
    mean, covariance = oracle.posterior(prior, cross, train, observed() - offsets, noises)
    mean[:, 0] += OFFSETS[channel]
    return tuple(there), mean, covariance


POINTS = {"sparse": np.linspace(0, 40, 17), "dense": None, "chain": None}


@pytest.mark.parametrize("engine", POINTS)
@pytest.mark.parametrize("channel", [0, 1])
def test_each_is_what_dense_conditioning_gives(engine, channel):
    model = built(engine, POINTS[engine])
    found = model.predict(AHEAD, "ab"[channel]).components()
    names, mean, covariance = wanted(channel, POINTS[engine])
    latents = ("latent 0: Matern32", "latent 0: Matern52", "latent 1")
    assert found.names == (*names, *latents)
    for index, part in enumerate(found.values()):
        np.testing.assert_allclose(part.mean, mean[:, index], rtol=0, atol=1e-7)
        np.testing.assert_allclose(part.variance, covariance[:, index, index], rtol=0, atol=1e-7)
    np.testing.assert_allclose(found.covariance, covariance, rtol=0, atol=1e-7)


def assert_adds_up(prediction, rounding=1e-11):
    parts = prediction.components()
    scale = 1 + np.abs(prediction.latent_mean).max()
    total = sum(part.mean for part in parts.values())
    np.testing.assert_allclose(total, prediction.latent_mean, rtol=0, atol=rounding * scale)
    whole = parts.covariance.sum(axis=(-2, -1))
    np.testing.assert_allclose(whole, prediction.latent_variance, rtol=1e-6, atol=1e-9)
    everything = parts.together(*parts.names)
    np.testing.assert_allclose(everything.mean, prediction.latent_mean, atol=rounding * scale)
    np.testing.assert_allclose(everything.variance, whole, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("engine", ["sparse", "dense", "chain"])
@pytest.mark.parametrize("name", families.FAMILIES)
def test_they_add_up_for_every_family(engine, name):
    likelihood, draw = families.FAMILIES[name]
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 10, 25))
    model = sgp.ContinualGP(
        likelihood, latents=[sgp.kernels.over_time(), sgp.Matern32()], engine=engine,
        mean=sgp.Constant() + sgp.Trend(), seasons=[3.0], learning=None,
    )  # fmt: skip
    y = draw(rng, np.sin(x))
    model.update(x[:15], y[:15])
    model.update(x[15:], y[15:])
    prediction = model.predict(np.array([2.0, 9.0, 13.0]))
    # Each part has a solve of its own on rows, with a factor as large as noise is small.
    assert_adds_up(prediction, rounding=1e-10 if engine == "dense" else 1e-11)
    assert prediction.components().names[:3] == ("level", "trend", "season 3")


def test_they_add_up_without_what_is_open_about_weights():
    rng = np.random.default_rng(0)
    x = np.linspace(0, 20, 60)
    model = sgp.ContinualGP(
        {"a": sgp.Gaussian(), "b": sgp.Poisson()}, latents=[sgp.RBF() + sgp.Periodic(), sgp.RBF()],
        engine="dense", weight_uncertainty=False,
    )  # fmt: skip
    model.update({"a": (x, np.sin(x) + 0.1 * rng.normal(size=60)), "b": (x, rng.poisson(3, 60))})
    for prediction in model.predict(np.linspace(0, 30, 7)).values():
        assert_adds_up(prediction, rounding=1e-9)


def test_weights_that_are_unknown_are_part_of_them():
    x = np.linspace(0, 20, 40)
    for engine in ("sparse", "dense", "chain"):
        model = sgp.ContinualGP(
            {"a": sgp.Gaussian(), "b": sgp.Gaussian()}, latents=[sgp.kernels.over_time()] * 2,
            engine=engine,
        )  # fmt: skip
        model.update({"a": (x, np.sin(x)), "b": (x[:6], np.cos(x[:6]))})
        for prediction in model.predict(np.linspace(0, 25, 6)).values():
            assert_adds_up(prediction)


def test_a_level_that_is_not_learned_is_a_component_without_variance():
    model = sgp.ContinualGP(sgp.Gaussian(), mean=None, learning=None)
    model.update(np.arange(10.0), 50 + np.arange(10.0))
    level = model.predict([3.0]).components()["level"]
    np.testing.assert_allclose(level.mean, 54.5)
    assert level.variance == 0


def names_of(kernel, columns=1):
    model = sgp.ContinualGP(sgp.Gaussian(), latents=kernel, learning=None)
    model.update(np.random.default_rng(0).normal(size=(8, columns)), np.arange(8.0))
    assert_adds_up(model.predict(np.zeros((1, columns))))
    return model.predict(np.zeros((1, columns))).components().names[1:]


def brownian(x1, x2):
    return np.minimum(np.exp(x1), np.exp(x2.T))


@pytest.mark.parametrize(
    ("kernel", "columns", "names"),
    [
        (sgp.RBF(), 1, ["latent 0"]),
        ([sgp.RBF(), sgp.RBF()], 1, ["latent 0", "latent 1"]),
        (sgp.RBF() + sgp.RBF(), 1, ["latent 0: RBF (1)", "latent 0: RBF (2)"]),
        (2.0 * (sgp.RBF() + sgp.Linear()), 1, ["latent 0: RBF", "latent 0: Linear"]),
        (
            sgp.RBF() * sgp.Periodic() + sgp.Matern12(),
            1,
            ["latent 0: RBF × Periodic", "latent 0: Matern12"],
        ),
        (
            (sgp.RBF() + sgp.Matern12()).on(1) + sgp.RBF().on(0),
            2,
            ["latent 0: RBF on 1", "latent 0: Matern12 on 1", "latent 0: RBF on 0"],
        ),
        (sgp.RBF() + sgp.FunctionKernel(brownian), 1, ["latent 0: RBF", "latent 0: brownian"]),
    ],
)
def test_names_of_latent_functions(kernel, columns, names):
    assert list(names_of(kernel, columns)) == names


def test_names_of_seasons_in_time():
    day = np.datetime64("2025-01-01") + np.arange(30)
    model = sgp.ContinualGP(sgp.Gaussian(), seasons=["7D", 2.5, "365.25D"], learning=None)
    model.update(day, np.arange(30.0))
    parts = model.forecast(3, every="1D").components()
    assert parts.names[1:4] == ("season 7D", "season 2.5D", "season 365.25D")
    frame = parts.to_frame()
    assert list(frame["x"]) == list(np.datetime64("2025-01-31") + np.arange(3))
    np.testing.assert_array_equal(frame["season 7D"], parts["season 7D"].mean)
    np.testing.assert_array_equal(frame["season 7D_std"], parts["season 7D"].std)


def test_a_frame_of_several_latent_parameters():
    model = sgp.ContinualGP(sgp.Categorical(3), learning=None, latents=1)
    model.update(np.arange(9.0), np.arange(9) % 3)
    parts = model.predict([1.0, 2.0]).components()
    assert parts["level"].mean.shape == (2, 3)
    assert list(parts.to_frame(backend="polars").columns)[1:5] == [
        "level_0", "level_0_std", "level_1", "level_1_std",
    ]  # fmt: skip


def test_intervals_and_what_is_refused():
    model = sgp.ContinualGP(sgp.Gaussian(), learning=None)
    model.update([0.0, 1.0, 2.0], [1.0, 3.0, 2.0])
    prediction = model.predict([0.5])
    parts = prediction.components()
    low, high = parts["level"].interval(0.95)
    np.testing.assert_allclose((high - low) / parts["level"].std, 2 * 1.959964, rtol=1e-6)
    with pytest.raises(sgp.DataError, match="components among"):
        parts.together("level", "trend")
    with pytest.raises(sgp.DataError, match="got none"):
        parts.together()
    with pytest.raises(KeyError):
        parts["trend"]
    alone = sgp.Prediction(prediction.likelihood, np.zeros((1, 1)), np.ones((1, 1, 1)))
    with pytest.raises(sgp.DataError, match="made by a model"):
        alone.components()


def test_no_inputs_have_components_too():
    model = sgp.ContinualGP(sgp.Gaussian(), learning=None)
    model.update([0.0, 1.0, 2.0], [1.0, 3.0, 2.0])
    assert model.predict([]).components()["level"].mean.shape == (0,)


def test_a_composition_names_what_a_model_has():
    model = built("chain", None)
    found = Composition.of(model.state.plain, 1, model.axes)
    assert found.of_mean == ("level", "season 7")
    assert found.latent == (0, 0, 1)
