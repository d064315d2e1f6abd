"""Trends and seasons: their functions, their prior spreads, and what forecasts gain by them."""

import datetime

import numpy as np
import pytest

import streamgp as sgp
from streamgp.data.axes import Axis
from streamgp.model.means import OfScale

NUMBERS = (Axis(),)
TIMES = (Axis("date", day=19000),)
X = np.linspace(0, 10, 41)[:, None]


# -- functions -----------------------------------------------------------------------------------


def test_a_line_is_of_order_one_over_the_first_inputs():
    for x in (X, 1.7e9 + X, 1e-6 * X):
        line = sgp.Trend().started(x, NUMBERS)(x)
        np.testing.assert_allclose(line[:, 0], np.linspace(-1, 1, 41), atol=1e-6)


def test_first_inputs_at_one_place_make_a_line_all_the_same():
    x = np.full((3, 1), 7.0)
    line = sgp.Trend().started(x, NUMBERS)
    np.testing.assert_allclose(line(np.array([[7.0], [9.0]]))[:, 0], [0.0, 2.0])


def test_slopes_change_at_even_places_and_nowhere_before():
    trend = sgp.Trend(changes=4, over=(0, 10)).started(X, NUMBERS)
    found = trend(X)
    assert found.shape == (41, 5)
    bends = np.diff(found[:, 1:], 2, axis=0) > 1e-9
    np.testing.assert_array_equal(X[1:-1][np.argmax(bends, axis=0), 0], [2, 4, 6, 8])
    np.testing.assert_array_equal(bends.sum(axis=0), 1)
    assert found[X[:, 0] <= 2, 1:].max() == 0


def test_later_inputs_do_not_change_functions_that_have_started():
    model = sgp.ContinualGP(sgp.Gaussian(), mean=sgp.Trend() + sgp.Seasonal(3), learning=None)
    model.update(X[:20, 0], np.sin(X[:20, 0]))
    before = model.state.model.channels[0].mean
    model.update(50 + X[:, 0], np.sin(X[:, 0]))
    assert model.state.model.channels[0].mean == before
    assert before.parts[0].over == (X[0, 0], X[19, 0])


@pytest.mark.parametrize("origin", [0.0, 2.4e6, 1e9])
def test_a_season_repeats_itself_far_from_zero(origin):
    season = sgp.Seasonal(7, harmonics=3).started(X, NUMBERS)
    x = origin + np.arange(0, 14, 0.25)[:, None]
    np.testing.assert_allclose(season(x), season(x + 7 * 1000), atol=1e-9)
    np.testing.assert_allclose(np.sum(season(x) ** 2, axis=1), 3.0)
    first = season(x)[:, [0, 3]]
    assert np.linalg.matrix_rank(first) == 2
    np.testing.assert_allclose(first[:14], -season(x + 3.5)[:14][:, [0, 3]], atol=1e-9)


@pytest.mark.parametrize(
    "period",
    ["36h", "1.5D", "2160 min", datetime.timedelta(days=1.5), np.timedelta64(36, "h"), 1.5],
    ids=str,
)
def test_a_duration_is_days_where_inputs_are_times(period):
    season = sgp.Seasonal(period).started(X, TIMES)
    assert season.period == 1.5
    np.testing.assert_allclose(season(X), sgp.Seasonal(1.5)(X))


def test_prior_spreads_fall_with_the_harmonic():
    assert sgp.Seasonal(7, harmonics=3, spread=6.0).spreads == (6.0, 3.0, 2.0) * 2
    assert sgp.Seasonal(7, harmonics=2).spreads == (OfScale(1.0), OfScale(0.5)) * 2


def test_prior_spreads_of_a_trend():
    assert sgp.Trend().spreads == (None,)
    given = sgp.Trend(changes=2, over=(0, 1), spread=3.0, change_spread=0.1)
    assert given.spreads == (3.0, 0.1, 0.1)
    assert sgp.Trend(changes=4, over=(0, 1)).spreads == (None, *(OfScale(0.5),) * 4)


def test_default_spreads_are_on_the_scale_of_the_first_data():
    channels = {"real": sgp.Gaussian(), "count": sgp.Poisson()}
    model = sgp.ContinualGP(channels, mean=sgp.Seasonal(3, harmonics=2), learning=None)
    y = 50 * np.sin(X[:, 0])
    model.update({"real": (X, y), "count": (X, np.arange(41) % 5)})
    real, count = model.state.plain.basis_spreads()
    np.testing.assert_allclose(real, np.std(y) * np.array([1, 0.5, 1, 0.5]))
    np.testing.assert_allclose(count, [1, 0.5, 1, 0.5])


def test_small_spreads_shrink_changes_of_slope():
    x = np.linspace(0, 10, 80)
    y = 2 * np.maximum(x - 5, 0)

    def bend(spread):
        mean = sgp.Constant() + sgp.Trend(1, (0, 10), change_spread=spread)
        flat = sgp.RBF(sgp.fixed(0.5), sgp.fixed(1e-4))
        model = sgp.ContinualGP(sgp.Gaussian(sgp.fixed(0.3)), latents=flat, mean=mean)
        model.update(x, y)
        return model.mean_weights["y"]["weights"][0, 2]

    assert bend(10.0) == pytest.approx(10.0, rel=0.02)
    assert abs(bend(0.01)) < 0.5


# -- columns -------------------------------------------------------------------------------------


def test_the_column_is_the_one_with_times_unless_it_is_said():
    axes = (Axis("depth"), Axis("date", day=0), Axis("width"))
    x = np.random.default_rng(0).uniform(0, 9, (5, 3))
    wave = sgp.Seasonal(4.0)(x[:, 1:2])
    for on in (None, "date", 1):
        np.testing.assert_array_equal(sgp.Seasonal("4D", on=on).started(x, axes)(x), wave)
    np.testing.assert_array_equal(
        sgp.Seasonal(4, on="width").started(x, axes)(x), sgp.Seasonal(4.0)(x[:, 2:])
    )
    assert sgp.Trend(on=2).started(x, axes).over == (x[:, 2].min(), x[:, 2].max())
    for wrong in ("height", 3, -1):
        with pytest.raises(sgp.ConfigurationError, match="'depth', 'date', 'width'"):
            sgp.Seasonal(4, on=wrong).started(x, axes)


# -- what cannot be ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: sgp.Seasonal(0),
        lambda: sgp.Seasonal(-1.0),
        lambda: sgp.Seasonal(np.nan),
        lambda: sgp.Seasonal(True),
        lambda: sgp.Seasonal("soon"),
        lambda: sgp.Seasonal("1Y"),
        lambda: sgp.Seasonal("0D"),
        lambda: sgp.Seasonal("-1D"),
        lambda: sgp.Seasonal(np.timedelta64(1, "M")),
        lambda: sgp.Seasonal(np.timedelta64("NaT")),
        lambda: sgp.Seasonal(datetime.timedelta(0)),
        lambda: sgp.Seasonal(["1D"]),
        lambda: sgp.Seasonal(7, harmonics=0),
        lambda: sgp.Seasonal(7, harmonics=2.5),
        lambda: sgp.Seasonal(7, spread=-1.0),
        lambda: sgp.Trend(changes=3),
        lambda: sgp.Trend(changes=-1),
        lambda: sgp.Trend(over=(3, 3)),
        lambda: sgp.Trend(over=(5, 3)),
        lambda: sgp.Trend(over=(0, np.inf)),
        lambda: sgp.Trend(over=7),
        lambda: sgp.Trend(over=("2020-01-01", 7)),
        lambda: sgp.Trend(over=("once", "now")),
        lambda: sgp.Trend(spread=0.0),
        lambda: sgp.Trend(change_spread=np.nan),
        lambda: sgp.ContinualGP(sgp.Gaussian(), seasons=["soon"]),
        lambda: sgp.ContinualGP(sgp.Gaussian(), seasons=[sgp.Constant()]),
    ],
)
def test_settings_that_cannot_be(make):
    with pytest.raises(sgp.ConfigurationError, match=r"(?s)^expected .+; got .+\. .+"):
        make()


@pytest.mark.parametrize(
    ("mean", "times"),
    [
        (sgp.Seasonal("7D"), False),
        (sgp.Trend(over=("2020-01-01", "2021-01-01")), False),
        (sgp.Trend(over=(0, 9)), True),
    ],
    ids=["a duration", "a stretch of times", "a stretch of numbers"],
)
def test_settings_of_another_kind_than_the_inputs(mean, times):
    model = sgp.ContinualGP(sgp.Gaussian(), mean=sgp.Constant() + mean)
    x = np.arange(5.0)
    with pytest.raises(sgp.ConfigurationError, match=r"numbers.+times"):
        model.update(np.datetime64("2022-01-01") + x.astype(int) if times else x, x)
    assert model.state is None


def test_a_mean_must_know_its_inputs_before_it_has_values():
    for mean in (sgp.Trend(), sgp.Seasonal("1D"), sgp.Seasonal(1, on="date")):
        with pytest.raises(sgp.ConfigurationError, match="started"):
            mean(X)


# -- models --------------------------------------------------------------------------------------


def test_seasons_are_added_to_the_mean_of_every_channel():
    channels = {name: sgp.Gaussian() for name in "abc"}
    mean = {"a": None, "b": sgp.Constant() + sgp.Trend()}
    seasons = [4, sgp.Seasonal(9, harmonics=1)]
    model = sgp.ContinualGP(channels, mean=mean, seasons=seasons, learning=None)
    x = X[:, 0]
    model.update({name: (x, np.sin(x)) for name in "ab"})
    model.add_channel("d", sgp.Gaussian())
    sizes = [c.mean.size for c in model.state.model.channels]
    assert sizes == [14, 16, 15, 15]  # a level, a line; pairs of sine and cosine
    single = sgp.ContinualGP(sgp.Gaussian(), seasons=4, learning=None)
    single.update(x, np.sin(x))
    assert single.state.model.channels[0].mean.size == 13


def monthly(seed):
    """Eleven years with a trend, a season and noise that has a memory."""
    generator, month = np.random.default_rng(seed), np.arange(132.0)
    memory = np.zeros(132)
    for i in range(1, 132):
        memory[i] = 0.7 * memory[i - 1] + 1.5 * generator.normal()
    season = 12 * np.cos(2 * np.pi * (month - 2) / 12) + 5 * np.sin(4 * np.pi * month / 12)
    return month, 100 + 0.6 * month + season + memory


def test_forecasts_of_a_year_gain_much_by_trend_and_season():
    errors = {"default": [], "seasons": [], "structured": []}
    for seed in range(3):
        month, y = monthly(seed)
        structure = {"mean": sgp.Constant() + sgp.Trend(), "seasons": [12]}
        every = ({}, {"seasons": [12]}, structure)
        for name, settings in zip(errors, every, strict=True):
            model = sgp.ContinualGP(sgp.Gaussian(), **settings)
            for year in np.split(np.arange(120), 10):
                model.update(month[year], y[year])
            ahead = model.predict(month[120:])
            errors[name].append(np.sqrt(np.mean((ahead.mean - y[120:]) ** 2)))
        lower, upper = ahead.interval(0.95)
        assert np.mean((lower <= y[120:]) & (y[120:] <= upper)) >= 0.75
    default, seasons, structured = map(np.array, errors.values())
    assert structured.mean() < 0.35 * default.mean()
    assert np.all(structured < 4.0)  # the noise by itself has a deviation of 2.1
    assert np.all(seasons < 0.9 * default)


@pytest.mark.filterwarnings("ignore::streamgp.errors.EpochWarning")
def test_a_line_and_a_season_of_unix_seconds_lose_no_digits():
    seconds = 1.7e9 + 3600.0 * np.arange(24 * 20)
    day = (seconds - seconds[0]) / 86400
    y = 5 + 0.5 * day + np.sin(2 * np.pi * day)
    mean = sgp.Constant() + sgp.Trend()
    model = sgp.ContinualGP(sgp.Gaussian(), mean=mean, seasons=[86400])
    for part in np.split(np.arange(len(y)), 4):
        model.update(seconds[part], y[part])
    ahead = seconds[-1] + 3600.0 * np.arange(1, 48)
    day = (ahead - seconds[0]) / 86400
    np.testing.assert_allclose(
        model.predict(ahead).mean, 5 + 0.5 * day + np.sin(2 * np.pi * day), atol=0.02
    )


def test_a_channel_that_comes_later_has_the_trend_of_its_own_data():
    t = np.arange(0.0, 60)
    mean = sgp.Constant() + sgp.Trend(changes=2, over=(0, 90))
    model = sgp.ContinualGP({"a": sgp.Gaussian()}, mean=mean, seasons=[10], seed=1)
    model.update(t, 3 + 0.2 * t + np.sin(2 * np.pi * t / 10))
    model.add_channel("b", sgp.Gaussian())
    assert np.isfinite(model.predict([70.0], "b").mean).all()
    late = np.arange(30.0, 60)
    model.update({"b": (late, 40 - 0.5 * late + 4 * np.cos(2 * np.pi * late / 10))})
    ahead = np.arange(60.0, 66)
    wanted = 40 - 0.5 * ahead + 4 * np.cos(2 * np.pi * ahead / 10)
    np.testing.assert_allclose(model.predict(ahead, "b").mean, wanted, atol=1.0)
    np.testing.assert_allclose(
        model.predict(ahead, "a").mean, 3 + 0.2 * ahead + np.sin(2 * np.pi * ahead / 10), atol=1.0
    )


def test_counts_have_trends_and_seasons_behind_their_logarithm():
    generator, t = np.random.default_rng(0), np.arange(0.0, 220)
    rate = np.exp(1.5 + 0.005 * t + 0.8 * np.sin(2 * np.pi * t / 7))
    model = sgp.ContinualGP(sgp.Poisson(), mean=sgp.Constant() + sgp.Trend(), seasons=[7])
    for part in np.split(np.arange(200), 4):
        model.update(t[part], generator.poisson(rate[part]))
    np.testing.assert_allclose(model.predict(t[200:]).mean, rate[200:], rtol=0.3)
