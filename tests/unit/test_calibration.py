"""Whether what was predicted came: records of coverage, and intervals that learn from them."""

import dataclasses

import numpy as np
import pytest
from scipy import special

import streamgp as sgp
from streamgp.inference.scoring import Scored
from streamgp.numerics.quantile_tracker import QuantileTracker
from streamgp.online.calibration import Average, Calibration

GENERATOR = np.random.default_rng(0)


# -- the tracker ---------------------------------------------------------------------------------


def covered(numbers, level, batch=1):
    """The share of numbers within the central interval tracked before each batch, late half."""
    tracker, inside = QuantileTracker(), []
    for begin in range(0, len(numbers), batch):
        some = numbers[begin : begin + batch].tolist()
        low, high = (tracker.quantile(p) for p in ((1 - level) / 2, (1 + level) / 2))
        inside += [low < number <= high for number in some]
        tracker = tracker.seen([some])
    return np.mean(inside[len(inside) // 2 :])


def streams(count=6000):
    rng, time = np.random.default_rng(1), np.arange(count)
    normal = rng.normal(size=count)
    return {
        "right": normal,
        "heavy tails": rng.standard_t(3, size=count) / np.sqrt(3),
        "far too wide": normal / 4,
        "far too narrow": 4 * normal,
        "a spread that comes and goes": normal * np.exp(np.sin(time / 150)),
        "a centre that wanders": normal + np.sin(time / 150),
        "a jump of the spread": np.where(time < count * 2 // 3, normal, 3 * normal),
    }


@pytest.mark.parametrize("name", streams())
@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
def test_tracked_intervals_hold_what_they_should(name, level):
    assert covered(streams()[name], level) == pytest.approx(level, abs=0.02)


def test_numbers_that_come_together_count_for_less():
    """Errors of a batch are alike: tracking them one by one would chase each batch in turn."""
    rng = np.random.default_rng(2)
    alike = np.repeat(rng.normal(size=400), 20) * 0.8 + 0.6 * rng.normal(size=8000)
    assert covered(alike, 0.8, batch=20) == pytest.approx(0.8, abs=0.02)


def test_a_fresh_tracker_is_the_normal_distribution():
    levels = np.array([1e-4, 0.01, 0.1, 0.3, 0.5, 0.9, 0.99, 0.9999])
    found = [QuantileTracker().quantile(level) for level in levels]
    np.testing.assert_allclose(found, special.ndtri(levels), atol=1e-9)
    assert QuantileTracker().spread == pytest.approx(1.0)


def test_quantiles_never_cross():
    tracker = QuantileTracker().seen([[x] for x in GENERATOR.normal(size=300) * 5])
    values = [tracker.quantile(level) for level in np.linspace(0.001, 0.999, 200)]
    assert np.all(np.diff(values) >= 0)


# -- the record ------------------------------------------------------------------------------------


def table(count):
    """Scores of rows as predictions make them: of a density, then of counts, then of classes."""
    rows = np.full((count, 6), np.nan)
    rows[:, 0] = GENERATOR.normal(size=count)
    third = np.arange(count) % 3
    rows[third == 0, 3] = GENERATOR.normal(size=np.sum(third == 0))
    rows[third == 0, 4] = 0.3
    rows[third == 1, 1], rows[third == 1, 2] = 0.2, 0.6
    return rows


def numbers_of(record):
    averages = [record.nlpd, record.crps, *record.coverage]
    return [record.rows, *np.ravel(averages), record.tracker.low, record.tracker.high]


def test_a_record_ends_the_same_however_a_stream_is_cut():
    rows = table(700)
    whole = Calibration().seen(rows, 0, one_by_one=True)
    cut = Calibration()
    for begin in (0, 1, 2, 130, 131, 400):
        end = {0: 1, 1: 2, 2: 130, 130: 131, 131: 400, 400: 700}[begin]
        cut = cut.seen(rows[begin:end], 0, one_by_one=True)
        assert len(cut.settled.waiting) == 0
    assert numbers_of(cut) == numbers_of(whole)
    assert numbers_of(cut.settled) == numbers_of(whole.settled)


def test_an_average_looks_back_on_the_last_numbers():
    few = Average().seen(np.array([1.0, 2.0, 6.0]))
    assert few.value == pytest.approx(3.0, abs=0.01)
    many = few.seen(np.full(5000, 10.0))
    assert many.value == pytest.approx(10.0, abs=1e-3)
    assert many.weight == pytest.approx(500.0, rel=1e-3)
    assert many.seen(np.array([np.nan, np.inf])) == many


def test_jumps_of_counts_are_filled_evenly():
    rows = np.full((1000, 6), np.nan)
    rows[:, :3] = [-1.0, 0.0, 1.0]  # nothing was said: the jump is all there is
    record = Calibration().seen(rows, 0).settled
    shares = [share.value for share in record.coverage]
    np.testing.assert_allclose(shares, [0.5, 0.8, 0.95], atol=0.01)


def test_a_score_is_that_of_the_transform():
    scored = Scored(np.array([[0.0, 0.975, 0.975, np.nan, np.nan, np.nan]]))
    assert np.isnan(scored.score[0])
    record = Calibration().seen(scored.table, 0).settled
    inside = [share.value for share in record.coverage]
    assert inside[:2] == [0.0, 0.0]
    assert record.tracker.high > QuantileTracker().high


# -- reports ---------------------------------------------------------------------------------------


def stream(count=600, noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    x = np.arange(count) / 20
    return x, np.sin(x) + noise * rng.normal(size=count)


def test_reports_have_moving_averages():
    x, y = stream()
    model = sgp.ContinualGP(sgp.Gaussian(), inducing=sgp.Adaptive(budget=64))
    first = model.update(x[:100], y[:100])
    assert first.coverage == first.crps == first.nlpd == {}  # the scale came from these rows
    report = model.update_many(x[100:], y[100:])
    for level, share in report.coverage["y"].items():
        assert share == pytest.approx(level, abs=0.08)
    assert report.nlpd["y"] == pytest.approx(-np.mean(report.log_predictive_rows["y"]), abs=0.1)
    assert report.crps["y"] == pytest.approx(0.3 / np.sqrt(np.pi), rel=0.15)
    narrow = sgp.ContinualGP(sgp.Gaussian(sgp.fixed(0.1)), inducing=sgp.Adaptive(budget=64))
    narrow.update(x[:100], y[:100])
    assert narrow.update_many(x[100:], y[100:]).coverage["y"][0.95] < 0.9


def test_an_old_report_does_not_change():
    x, y = stream()
    model = sgp.ContinualGP(sgp.Gaussian(), learning=None)
    model.update(x[:100], y[:100])
    report = model.update(x[100:150], y[100:150])
    before = report.coverage
    model.update(x[150:300], y[150:300] + 100)
    assert report.coverage == before


def test_every_family_has_what_it_can():
    x = np.arange(90) / 10
    rng = np.random.default_rng(0)
    channels = {
        "real": sgp.Gaussian(),
        "count": sgp.Poisson(),
        "class": sgp.Categorical(3),
        "rain": sgp.Bernoulli(),
        "bound": sgp.Censored(sgp.Gaussian()),
    }
    values = {
        "real": rng.normal(size=90),
        "count": rng.poisson(3, size=90),
        "class": rng.integers(0, 3, size=90),
        "rain": rng.integers(0, 2, size=90),
        "bound": np.stack([rng.normal(size=90), np.ones(90)], axis=1),  # no value was seen
    }
    model = sgp.ContinualGP(channels, learning=None)
    for part in (slice(0, 45), slice(45, 90)):
        report = model.update({name: (x[part], y[part]) for name, y in values.items()})
    assert set(report.nlpd) == set(channels)
    assert set(report.coverage) == {"real", "count", "rain"}
    assert set(report.crps) == {"real", "rain"}
    rain = model.predict(x, "rain")
    assert report.crps["rain"] == pytest.approx(np.mean(rain.crps(values["rain"])), abs=0.1)


def test_a_family_without_a_distribution_function_is_scored_all_the_same():
    @dataclasses.dataclass(frozen=True, eq=False)
    class Laplace(sgp.Likelihood):
        def log_density(self, y, f):
            return -np.abs(y - f[..., 0]) / 0.1 - np.log(0.2)

    model = sgp.ContinualGP(Laplace(), learning=None)
    for begin in (0.0, 1.0):
        report = model.update(begin + np.arange(10) / 10, np.zeros(10))
    assert report.coverage == {}
    assert np.isfinite(report.nlpd["y"])


def test_samples_and_single_updates_leave_the_same_record():
    x, y = stream(300)
    fast, slow = (sgp.ContinualGP(sgp.Gaussian(), inducing=sgp.Fixed(x[::12])) for _ in range(2))
    for model in (fast, slow):
        model.update(x[:100], y[:100])
    end = fast.update_many(x[100:], y[100:], learn=False)
    for a, b in zip(x[100:], y[100:], strict=True):
        last = slow.update([a], [b], learn=False)
    assert end.coverage["y"] == pytest.approx(last.coverage["y"], abs=1e-9)
    assert end.crps["y"] == pytest.approx(last.crps["y"], rel=1e-6)
    assert end.nlpd["y"] == pytest.approx(last.nlpd["y"], rel=1e-6)


# -- calibrated intervals --------------------------------------------------------------------------


def prequential(likelihood, y, *, batch, level, warm=200):
    """The share of rows in plain and in calibrated intervals, each predicted before it came."""
    x = np.arange(len(y)) / 20
    settings = {"latents": sgp.RBF(lengthscale=10.0), "inducing": sgp.Adaptive(budget=32)}
    model = sgp.ContinualGP(likelihood, learning=None, **settings)
    inside = []
    for begin in range(0, len(y), batch):
        rows = slice(begin, begin + batch)
        if begin >= warm:
            prediction = model.predict(x[rows])
            pairs = [prediction.interval(level, calibrated=flag) for flag in (False, True)]
            inside.append([(low <= y[rows]) & (y[rows] <= high) for low, high in pairs])
        model.update(x[rows], y[rows])
    return np.mean(np.concatenate(inside, axis=1), axis=1)


@pytest.mark.parametrize("batch", [1, 25])
@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("noise", ["too small", "heavy tails that drift"])
def test_calibrated_intervals_hold_what_they_should(batch, level, noise):
    rng, count = np.random.default_rng(3), 1000 if batch == 1 else 4000
    x = np.arange(count) / 20
    errors = {
        "too small": rng.normal(size=count),
        "heavy tails that drift": rng.standard_t(3, count) * np.exp(np.sin(x / 6)),
    }[noise]
    y = np.sin(x / 10) + 0.3 * errors
    plain, calibrated = prequential(
        sgp.Gaussian(sgp.fixed(0.12)), y, batch=batch, level=level, warm=count // 4
    )
    assert plain < level - 0.1
    assert calibrated == pytest.approx(level, abs=0.02)


def test_intervals_of_counts_learn_too():
    rng = np.random.default_rng(4)
    y = rng.poisson(20 * rng.gamma(4, 0.25, size=1000)).astype(float)
    plain, calibrated = prequential(sgp.Poisson(), y, batch=10, level=0.8)
    assert plain < 0.7
    assert calibrated == pytest.approx(0.8, abs=0.03)


def test_before_any_score_nothing_changes():
    x, y = stream(80)
    model = sgp.ContinualGP({"a": sgp.Gaussian(), "b": sgp.Poisson()}, learning=None)
    model.update({"a": (x, y), "b": (x, np.ones(80))})
    for prediction in model.predict(x).values():
        for one, other in zip(
            prediction.interval(0.9), prediction.interval(0.9, calibrated=True), strict=True
        ):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    with pytest.raises(sgp.DataError, match="between 0 and 1"):
        model.predict(x, "a").interval(1.0, calibrated=True)


def test_what_was_tracked_is_in_files():
    x, y = stream(300)
    model = sgp.ContinualGP(
        sgp.Gaussian(sgp.fixed(0.1)), latents=sgp.Matern32() + sgp.Matern52(), learning=None,
        outliers="skip",
    )  # fmt: skip
    model.update(x[:100], y[:100])
    model.update_many(x[100:], y[100:])
    plain, own = (model.predict(x).interval(calibrated=flag) for flag in (False, True))
    assert np.mean(own[1] - own[0]) > 1.5 * np.mean(plain[1] - plain[0])
    again = sgp.from_bytes(model.to_bytes())
    np.testing.assert_allclose(again.predict(x).interval(calibrated=True), own, rtol=1e-9)
    assert again.to_bytes() == model.to_bytes()
    assert again._version.updater.outliers == "skip"


@pytest.mark.parametrize(
    "wrong",
    [
        {"other": Calibration()},
        {"y": Calibration(rows=-1)},
        {"y": Calibration(nlpd=Average(1.0, np.nan))},
        {"y": Calibration(coverage=())},
        {"y": Calibration(tracker=QuantileTracker(places=(0.0,)))},
        {"y": Calibration(waiting=np.zeros((2, 3)))},
    ],
)
def test_a_record_that_no_rows_can_have_made_is_not_written(wrong):
    x, y = stream(80)
    model = sgp.ContinualGP(sgp.Gaussian(), learning=None)
    model.update(x, y)
    updater, progress = model._version
    model._version = type(model._version)(
        updater, dataclasses.replace(progress, calibrations=wrong)
    )
    with pytest.raises(sgp.FileError, match="calibrations"):
        model.to_bytes()


def test_a_prediction_keeps_what_was_tracked_when_it_was_made():
    x, y = stream(300)
    model = sgp.ContinualGP(sgp.Gaussian(), learning=None)
    model.update(x[:100], y[:100])
    prediction = model.predict(x)
    model.update(x[100:200], y[100:200] + 5)
    plain, calibrated = prediction.interval(0.8), prediction.interval(0.8, calibrated=True)
    np.testing.assert_allclose(plain, calibrated)
