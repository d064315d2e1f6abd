import numpy as np
import pandas as pd
import pytest
from sktime.datasets import load_airline
from sktime.forecasting.base import ForecastingHorizon
from sktime.split import SlidingWindowSplitter

from streamgp import (
    RBF,
    VEM,
    Categorical,
    ConfigurationError,
    Constant,
    ContinualGP,
    DataError,
    Gaussian,
    Matern32,
    Poisson,
    Seasonal,
    StudentT,
    Trend,
    fixed,
)
from streamgp.adapters.distributions import DRAWS
from streamgp.kernels import over_time
from streamgp.sktime import ContinualGPForecaster

COUNT = 60
DAYS = pd.period_range("2025-01-01", periods=COUNT, freq="D")
WAVE = 5 + np.sin(np.arange(COUNT) / 4)
Y = pd.Series(WAVE, DAYS)
FH = [1, 2, 5]
INDEXES = {
    "range": pd.RangeIndex(COUNT),
    "integers": pd.Index(np.arange(10, 10 + COUNT)),
    "times": pd.date_range("2025-01-01", periods=COUNT, freq="D"),
    "times of a zone": pd.date_range("2025-01-01", periods=COUNT, freq="D", tz="Europe/Madrid"),
    "periods": DAYS,
    "months": pd.period_range("2020-01", periods=COUNT, freq="M"),
}


def forecaster(**settings):
    return ContinualGPForecaster(**{"learning": None, **settings})


def as_inputs(index):
    return index.to_timestamp() if isinstance(index, pd.PeriodIndex) else index


@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES)
def test_updates_are_those_of_a_stream(index):
    y = pd.Series(WAVE, index)
    got = ContinualGPForecaster(seed=3).fit(y[:30]).update(y[30:45]).update(y[45:57])
    stream = ContinualGP({"y0": Gaussian()}, latents=[over_time()], seed=3)
    for rows in (slice(0, 30), slice(30, 45), slice(45, 57)):
        stream.update(as_inputs(index[rows]), WAVE[rows])
    wanted = stream.predict(as_inputs(index[57:]))
    forecast = got.predict(ForecastingHorizon(index[57:], is_relative=False))
    np.testing.assert_allclose(forecast, wanted.mean, rtol=1e-12)
    assert got.model_.hyperparameters["latents"] == stream.hyperparameters["latents"]
    pd.testing.assert_index_equal(forecast.index, index[57:], check_names=False)
    relative = got.predict(fh=[1, 2, 3])
    np.testing.assert_allclose(relative, forecast, rtol=1e-9)


def test_rows_are_learned_once_and_not_kept():
    model = forecaster().fit(Y[:30])
    model.update(Y[20:40])  # ten of them are known
    model.update(Y[:40])  # all of them
    assert model.model_.observations == {"y0": 40}
    assert model.learned_until_ == {"y0": DAYS[39]}
    assert model._y is None
    expected = forecaster().fit(Y[:30]).update(Y[30:40]).predict(FH)
    pd.testing.assert_series_equal(model.predict(FH), expected)


def test_overlapping_windows_are_a_stream():
    splitter = SlidingWindowSplitter(fh=[1], window_length=30, step_length=5)
    model = forecaster().fit(Y[:30])
    model.update_predict(Y, splitter, reset_forecaster=False)
    until = DAYS.get_loc(model.learned_until_["y0"])
    assert until > 50
    assert model.model_.observations == {"y0": until + 1}


def test_columns_may_end_at_different_times():
    y = pd.DataFrame({"early": WAVE, "late": 2 * WAVE}, DAYS)
    y.iloc[35:40, 0] = np.nan
    model = forecaster().fit(y[:40])
    assert model.model_.observations == {"early": 35, "late": 40}
    y["early"] = WAVE
    model.update(y[30:50])
    assert model.model_.observations == {"early": 50, "late": 50}


def test_without_parameters_data_are_learned_and_hyperparameters_stay():
    learning = {"learning": VEM(every=1)}
    begun = ContinualGPForecaster(**learning).fit(Y[:30])
    before = begun.model_.hyperparameters
    begun.update(Y[30:], update_params=False)
    assert begun.model_.hyperparameters == before
    assert begun.model_.observations == {"y0": COUNT}
    learned = ContinualGPForecaster(**learning).fit(Y[:30]).update(Y[30:])
    assert learned.model_.hyperparameters != before


def test_a_missing_value_was_not_observed():
    y = Y.copy()
    y[5:9] = np.nan
    model = forecaster().fit(y[:30])
    assert model.model_.observations == {"y0": 26}
    y[30:] = np.nan
    assert model.update(y[30:40]).model_.observations == {"y0": 26}  # nothing to learn
    assert model.predict(FH).notna().all()
    assert model.predict(FH).index[0] == DAYS[40]


def test_columns_inform_each_other():
    rng = np.random.default_rng(0)
    noise = 0.05 * rng.normal(size=(COUNT, 2))
    y = pd.DataFrame({"a": WAVE, "b": 3 * WAVE}, DAYS) + noise
    y.iloc[45:, 1] = np.nan
    together = ContinualGPForecaster(latents=1, seed=1).fit(y)
    alone = ContinualGPForecaster(seed=1).fit(y["b"][:45])
    ahead = ForecastingHorizon(DAYS[45:], is_relative=False)
    error = np.abs(together.predict(ahead)["b"] - 3 * WAVE[45:]).mean()
    assert error < 0.3 * np.abs(alone.predict(ahead) - 3 * WAVE[45:]).mean()


# -- exogenous variables -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def switched():
    rng = np.random.default_rng(0)
    beside = pd.DataFrame({"open": rng.integers(0, 2, COUNT), 7: rng.normal(size=COUNT)}, DAYS)
    y = 3 + 4 * beside["open"] + 0.05 * rng.normal(size=COUNT)
    model = (
        ContinualGPForecaster(kernel=RBF()).fit(y[:40], beside[:40]).update(y[40:50], beside[40:50])
    )
    return model, y, beside


def test_exogenous_variables_are_inputs(switched):
    model, y, beside = switched
    assert model.model_.input_names == ("time", "open", "7")
    forecast = model.predict(np.arange(1, 11), X=beside[50:])
    assert np.max(np.abs(forecast - y[50:])) < 0.6
    turned = model.predict(FH, X=beside[[7, "open"]])  # columns by name; rows that are needed
    np.testing.assert_allclose(turned, forecast.iloc[[0, 1, 4]], rtol=1e-9)  # three at once, or ten


def test_rows_without_exogenous_variables_are_not_learned(switched):
    _, y, beside = switched
    holes = beside.astype(float)
    holes.iloc[3:6, 1] = np.nan
    assert forecaster().fit(y, holes).model_.observations == {"open": COUNT - 3}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda beside: None, "exogenous variables"),
        (lambda beside: beside[["open"]], "exogenous variables"),
        (lambda beside: beside[50:52], "none at 2025-02-24"),
        (lambda beside: beside * np.nan, "missing"),
    ],
)
def test_forecasts_need_exogenous_variables(switched, change, message):
    model, _, beside = switched
    with pytest.raises(DataError, match=message):
        model.predict(FH, X=change(beside))


def test_time_is_the_name_of_the_index(switched):
    _, y, beside = switched
    with pytest.raises(DataError, match="Rename"):
        forecaster().fit(y, beside.rename(columns={"open": "time"}))


# -- distributions -------------------------------------------------------------------------------


def test_gaussian_columns_are_normal():
    y = pd.DataFrame({"a": WAVE, "b": -WAVE}, DAYS)
    model = forecaster().fit(y)
    found = model.predict_proba(FH)
    assert type(found).__name__ == "Normal"
    pd.testing.assert_frame_equal(found.mean(), model.predict(FH))
    pd.testing.assert_frame_equal(found.var(), model.predict_var(FH))
    levels = [0.1, 0.5, 0.8]
    np.testing.assert_allclose(found.quantile(levels), model.predict_quantiles(FH, alpha=levels))
    interval = model.predict_interval(FH, coverage=[0.8])
    np.testing.assert_allclose(interval["b"][0.8]["lower"], found.quantile([0.1])["b"][0.1])
    prediction = model.model_.predict(model.predict(FH).index.to_timestamp(), "b")
    np.testing.assert_allclose(interval["b"][0.8], np.stack(prediction.interval(0.8), -1))


def test_log_normal_columns_are_log_normal():
    model = forecaster(likelihood="LogNormal").fit(np.exp(Y))
    found = model.predict_proba(FH)
    assert type(found).__name__ == "LogNormal"
    np.testing.assert_allclose(found.mean().iloc[:, 0], model.predict(FH))
    np.testing.assert_allclose(found.var(), model.predict_var(FH))
    np.testing.assert_allclose(
        found.quantile([0.1, 0.9]), model.predict_quantiles(FH, alpha=[0.1, 0.9])
    )


def test_columns_of_two_classes_are_one_trial():
    model = forecaster(likelihood="bernoulli").fit((Y > 5).astype(float))
    found = model.predict_proba(FH)
    assert type(found).__name__ == "Binomial"
    np.testing.assert_allclose(found.mean().iloc[:, 0], model.predict(FH))
    assert model.predict(FH).between(0, 1).all()


def test_other_columns_are_draws():
    y = pd.DataFrame({"a": WAVE, "count": np.round(WAVE)}, DAYS)
    model = forecaster(likelihood={"a": Gaussian(), "count": "Poisson"}).fit(y)
    found = model.predict_proba(FH)
    assert type(found).__name__ == "Empirical"
    error = 5 * np.sqrt(model.predict_var(FH) / DRAWS)
    assert np.all(np.abs(found.mean() - model.predict(FH)) < error)
    assert np.all(found.sample()["count"] % 1 == 0)
    np.testing.assert_array_equal(found.spl, model.predict_proba(FH).spl)
    quantile = model.predict_quantiles(FH, alpha=[0.9])
    assert np.all(np.abs(found.quantile([0.9])["count"] - quantile["count"]) <= 1)


# -- settings ------------------------------------------------------------------------------------


def test_settings_reach_the_model():
    y = pd.DataFrame({"a": WAVE, 1: WAVE}, DAYS)
    mean = {"a": Constant() + Trend()}
    model = forecaster(
        likelihood=["Gaussian", "student_t"], mean=mean, seasons=("7D",), latents=2, budget=5
    ).fit(y)
    assert model.model_.channels == ("a", "y1")
    assert [type(c).__name__ for c in model.model_.likelihoods.values()] == ["Gaussian", "StudentT"]
    weights = model.model_.mean_weights
    assert weights["a"]["weights"].shape == (1, 1 + 1 + 2 * Seasonal("7D").harmonics)
    assert weights["y1"]["weights"].shape == (1, 1 + 2 * Seasonal("7D").harmonics)
    assert [len(points) for points in model.model_.inducing_points] == [5, 5]
    assert model.model_.engine == "sparse"
    twice = forecaster().fit(pd.DataFrame({"y1": WAVE, 0: WAVE}, DAYS))
    assert twice.model_.channels == ("y0", "y1")
    assert forecaster().fit(Y).model_.engine == "chain"


def test_seasons_repeat_themselves():
    week = pd.Series(np.arange(COUNT) % 7, DAYS, float)
    model = ContinualGPForecaster(seasons=("7D",)).fit(week[:42])
    ahead = model.predict(np.arange(1, 19))
    assert np.abs(ahead - week[42:]).max() < 0.5


STEPS = {"M": (12, 365.25), "Q": (4, 365.25), "D": (7, 7.0), "h": (24, 1.0), "W": (52, 364.0)}


@pytest.mark.parametrize(("freq", "steps", "days"), [(f, *own) for f, own in STEPS.items()])
def test_periods_in_steps(freq, steps, days):
    periods = pd.period_range("2020-01-01", periods=3 * steps, freq=freq)
    wave = np.cos(2 * np.pi * np.arange(len(periods)) / steps)
    asked = Seasonal(days, harmonics=min(6, steps // 2))
    wanted = forecaster(seasons=[asked]).fit(pd.Series(wave, periods)).predict(FH)
    times = periods.to_timestamp()
    for index in (periods, times, pd.DatetimeIndex(times.to_numpy())):  # the last has no frequency
        got = forecaster(sp=steps).fit(pd.Series(wave, index)).predict(FH)
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-12)
        listed = forecaster(sp=[1, steps]).fit(pd.Series(wave, index)).predict(FH)
        np.testing.assert_array_equal(listed, got)


@pytest.mark.parametrize("freq", ["B", "BMS", "ME"])
def test_steps_that_are_not_equally_long(freq):
    """Five business days are a week, and twelve months a year."""
    days = {"B": (5, 7.0)}.get(freq, (12, 365.25))
    index = pd.date_range("2020-01-01", periods=60, freq=freq)
    wanted = forecaster(seasons=[Seasonal(days[1], harmonics=days[0] // 2)])
    expected = wanted.fit(pd.Series(WAVE, index)).predict(FH)
    got = forecaster(sp=days[0]).fit(pd.Series(WAVE, index)).predict(FH)
    np.testing.assert_allclose(got, expected, rtol=1e-9)


def test_steps_of_whole_numbers():
    for index in (pd.RangeIndex(COUNT), pd.Index(np.arange(10, 10 + COUNT))):
        got = forecaster(sp=12).fit(pd.Series(WAVE, index)).predict(FH)
        expected = forecaster(seasons=(12,)).fit(pd.Series(WAVE, index)).predict(FH)
        np.testing.assert_array_equal(got, expected)


def test_a_number_that_may_be_days_or_steps():
    months, days, hours = (
        pd.Series(WAVE, pd.period_range("2020-01-01", periods=COUNT, freq=f)) for f in "MDh"
    )
    message = r'steps of one month.*365.25D, say `sp=12` or `seasons=\("365.25D",\)`'
    with pytest.raises(ConfigurationError, match=message):
        forecaster(seasons=(12,)).fit(months)
    with pytest.raises(ConfigurationError, match="sp=24"):
        forecaster(seasons=(24,)).fit(hours)
    with pytest.raises(ConfigurationError, match="one month"):
        forecaster(seasons=("12D",)).fit(months)
    weekly = forecaster(seasons=("7D",)).fit(days).predict(FH)
    pd.testing.assert_series_equal(forecaster(seasons=(7,)).fit(days).predict(FH), weekly)
    yearly = forecaster(seasons=("365.25D",)).fit(months).predict(FH)
    pd.testing.assert_series_equal(forecaster(seasons=(365.25,)).fit(months).predict(FH), yearly)


def test_steps_that_make_no_sense():
    for steps in (0, -12, 1.5, "12", [12, None], np.nan):
        with pytest.raises(ConfigurationError, match="`sp`"):
            forecaster(sp=steps).fit(Y)
    uneven = Y.set_axis(DAYS.to_timestamp())[np.arange(COUNT) % 7 > 1]
    with pytest.raises(ConfigurationError, match="frequency"):
        forecaster(sp=7).fit(uneven)


def test_airline_passengers():
    y = load_airline()
    fh = np.arange(1, 25)
    error = {
        steps: np.sqrt(np.mean((ContinualGPForecaster(sp=steps).fit(y[:-24]).predict(fh) - y) ** 2))
        for steps in (None, 12)
    }
    assert error[12] < 0.8 * error[None]


@pytest.mark.parametrize("freq", ["M", "Q", "Q-NOV", "Y", "W", "D", "h"])
def test_periods_stay_periods(freq):
    """In every answer, for relative and absolute horizons, ahead and within the data."""
    index = pd.period_range("2020-01-01", periods=30, freq=freq, name="when")
    y = pd.Series(WAVE[:30], index, name="sold")
    model = forecaster(likelihood="StudentT").fit(y[:20]).update(y[20:24])
    stream = ContinualGP(StudentT(), latents=[over_time()], learning=None)
    for part in (slice(0, 20), slice(20, 24)):
        stream.update(index[part].to_timestamp(), y[part])
    for relative, steps in ([1, 2, 5], slice(24, 29)), ([-3, 0, 2], slice(20, 26)):
        own = index[steps][[0, 1, 4]] if relative[0] == 1 else index[[20, 23, 25]]
        absolute = ForecastingHorizon(own, is_relative=False)
        for fh in (relative, absolute):
            answers = [
                model.predict(fh),
                model.predict_interval(fh, coverage=[0.5, 0.9]),
                model.predict_quantiles(fh, alpha=0.1),
                model.predict_var(fh),
                model.predict_proba(fh).mean(),
            ]
            for answer in answers:
                pd.testing.assert_index_equal(answer.index, own, check_names=False)
            assert answers[0].name == "sold"
        expected = stream.predict(own.to_timestamp()).mean
        np.testing.assert_allclose(model.predict(relative), expected, rtol=1e-9)


def test_latents_may_be_kernels():
    model = forecaster(latents=[RBF(), Matern32()], likelihood=Gaussian(fixed(0.1))).fit(Y)
    assert len(model.model_.inducing_points) == 2
    with pytest.raises(ConfigurationError, match="both"):
        forecaster(kernel=RBF(), latents=[RBF()]).fit(Y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"likelihood": "Gausian"}, "Gausian"),
        ({"likelihood": ["Gaussian", "Gaussian"]}, r"each of \['y0'\]"),
        ({"likelihood": {"b": "Gaussian"}}, "for each of"),
        ({"likelihood": Categorical(3)}, "single numbers"),
        ({"likelihood": Poisson(exposure=True)}, "single numbers"),
        ({"mean": "zero"}, "'zero'"),
        ({"learning": "sgd"}, "'sgd'"),
    ],
)
def test_settings_that_make_no_sense(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        forecaster(**settings).fit(Y)


def test_data_that_do_not_go_on():
    model = forecaster().fit(Y[:30])
    with pytest.raises(DataError, match="an array"):
        model.update(WAVE[30:])  # sktime would count it from zero
    with pytest.raises(DataError, match="columns"):
        model.update(pd.DataFrame({"a": WAVE, "b": WAVE}, DAYS)[30:])
    with pytest.raises(ConfigurationError, match="joint"):
        model.predict_var(FH, cov=True)
