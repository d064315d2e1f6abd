"""Observations of several numbers, and what is known of each: from data to predictions."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import streamgp as sgp

GRID = sgp.Fixed(np.linspace(0, 6, 13))
X = np.linspace(0.3, 5.7, 9)
KNOWN = sgp.RBF(lengthscale=sgp.fixed(1.2), variance=sgp.fixed(1.0))


def rate(x):
    return np.exp(1.0 + 0.8 * np.sin(x))


def chance(x):
    return 1 / (1 + np.exp(-1.5 * np.sin(x)))


def shares(x):
    parts = np.exp(np.stack([np.sin(x), np.cos(x), np.zeros(len(x))], axis=1))
    return parts / parts.sum(axis=1, keepdims=True)


def visits(count=400, seed=0):
    """Counts over exposures that are long where the rate is low: their mean says little."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 6, count)
    exposure = rng.uniform(0.5, 1.5, count) * 8 / rate(x)
    return x, rng.poisson(rate(x) * exposure).astype(float), exposure


def known(likelihood, **options):
    """A model whose hyperparameters stay where they are."""
    return sgp.ContinualGP(
        likelihood, latents=KNOWN, inducing=GRID, learning=None, scale=False, **options
    )


def same(first, second, x=X, tolerance=1e-10):
    for mine, its in ((first.predict(x), second.predict(x)),):
        np.testing.assert_allclose(mine.latent_mean, its.latent_mean, atol=tolerance)
        np.testing.assert_allclose(mine.latent_variance, its.latent_variance, atol=tolerance)


# -- each family learns the function ---------------------------------------------------------------


def test_counts_with_exposures():
    x, count, exposure = visits()
    model = sgp.ContinualGP(sgp.Poisson(exposure=True), inducing=GRID)
    for part in np.array_split(np.arange(len(x)), 4):
        model.update(x[part], np.stack([count, exposure], axis=1)[part])
    found = model.predict(X)
    np.testing.assert_allclose(found.mean, rate(X), rtol=0.12)  # over an exposure of one
    blind = sgp.ContinualGP(sgp.Poisson(), inducing=GRID)
    blind.update(x, count)
    assert np.abs(blind.predict(X).mean / rate(X) - 1).max() > 0.5
    assert found.log_density(np.full(9, 3.0)).shape == (9,)


def test_successes_among_trials_that_vary():
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 6, 400)
    trials = rng.integers(1, 20, 400).astype(float)
    successes = rng.binomial(trials.astype(int), chance(x)).astype(float)
    model = sgp.ContinualGP(sgp.Binomial(None), inducing=GRID)
    model.update(x, {"trials": trials, "successes": successes})
    found = model.predict(X)
    np.testing.assert_allclose(found.mean, chance(X), atol=0.05)  # of one trial
    np.testing.assert_allclose(np.exp(found.log_density(np.ones(9))), found.mean, atol=1e-6)


def test_values_with_errors():
    rng = np.random.default_rng(2)
    x = rng.uniform(0, 6, 300)
    error = np.where(rng.random(300) < 0.5, 0.05, 3.0)
    y = np.sin(x) + rng.normal(size=300) * np.hypot(error, 0.1)
    model = sgp.ContinualGP(sgp.Gaussian(error=True), inducing=GRID)
    model.update(x, np.stack([y, error], axis=1))
    found = model.predict(X)
    np.testing.assert_allclose(found.mean, np.sin(X), atol=0.07)
    assert model.hyperparameters["channels"]["y"]["noise"] == pytest.approx(0.1, rel=0.3)
    assert np.all(found.std < 0.2)  # without an error of measurement
    blind = sgp.ContinualGP(sgp.Gaussian(), inducing=GRID)
    blind.update(x, y)
    worst = np.abs(found.mean - np.sin(X)).max()
    assert np.abs(blind.predict(X).mean - np.sin(X)).max() > 2 * worst


def test_the_order_of_values_with_errors_does_not_matter():
    rng = np.random.default_rng(3)
    x, error = rng.uniform(0, 6, 60), rng.uniform(0.05, 1.0, 60)
    y = np.stack([np.sin(x) + error * rng.normal(size=60), error], axis=1)
    likelihood = sgp.Gaussian(sgp.fixed(0.2), error=True)
    forward, backward, single = known(likelihood), known(likelihood), known(likelihood)
    for part in np.array_split(np.arange(60), 4):
        forward.update(x[part], y[part])
    for part in np.array_split(np.arange(60)[::-1], 7):
        backward.update(x[part], y[part])
    single.update_many(x, y)
    same(forward, backward)
    same(forward, single)


def test_a_weight_of_two_is_a_row_given_twice():
    rng = np.random.default_rng(4)
    x = rng.uniform(0, 6, 40)
    y, weight = np.sin(x) + 0.2 * rng.normal(size=40), rng.integers(1, 4, 40)
    weighted = known(sgp.Weighted(sgp.Gaussian(sgp.fixed(0.2))))
    weighted.update(x, np.stack([y, weight], axis=1))
    repeated = known(sgp.Gaussian(sgp.fixed(0.2)))
    repeated.update(np.repeat(x, weight), np.repeat(y, weight))
    same(weighted, repeated, tolerance=1e-8)


def test_weights_of_other_families_and_of_several_numbers():
    rng = np.random.default_rng(5)
    x = rng.uniform(0, 6, 30)
    counts = rng.multinomial(5, shares(x)).astype(float)
    weighted = sgp.ContinualGP(sgp.Weighted(sgp.Multinomial(3)), inducing=GRID, learning=None)
    weighted.update(x, np.column_stack([counts, np.full(30, 2.0)]))
    repeated = sgp.ContinualGP(sgp.Multinomial(3), inducing=GRID, learning=None)
    repeated.update(np.repeat(x, 2), np.repeat(counts, 2, axis=0))
    np.testing.assert_allclose(weighted.predict(X).mean, repeated.predict(X).mean, atol=1e-3)
    sky = sgp.ContinualGP(sgp.Weighted(sgp.Categorical(3)), inducing=GRID, learning=None)
    names = np.asarray(["fog", "rain", "sun"], object)[counts.argmax(axis=1)]
    sky.update(x, {"value": names, "weight": np.ones(30)})
    assert sky.predict(X).classes == ("fog", "rain", "sun")
    assert sky.predict(X).log_density("sun").shape == (9,)


def test_censored_values_are_unbiased_where_dropping_them_is_not():
    rng = np.random.default_rng(6)
    x = rng.uniform(0, 6, 400)
    truth = np.sin(x) + 0.4 * rng.normal(size=400)
    above = truth > 0.5  # out of the range of what can be measured
    seen = np.where(above, 0.5, truth)
    model = sgp.ContinualGP(sgp.Censored(sgp.Gaussian()), inducing=GRID)
    model.update(x, {"value": seen, "censored": above.astype(float)})
    dropped = sgp.ContinualGP(sgp.Gaussian(), inducing=GRID)
    dropped.update(x[~above], truth[~above])
    top = np.linspace(1.0, 2.2, 7)
    assert np.abs(np.mean(model.predict(top).mean - np.sin(top))) < 0.1
    assert np.mean(dropped.predict(top).mean - np.sin(top)) < -0.4
    assert model.hyperparameters["channels"]["y"]["base"]["noise"] == pytest.approx(0.4, rel=0.2)


def test_counts_of_several_classes():
    rng = np.random.default_rng(7)
    x = rng.uniform(0, 6, 300)
    counts = rng.multinomial(rng.integers(1, 12, 300), shares(x)).astype(float)
    model = sgp.ContinualGP(sgp.Multinomial(3), latents=3, inducing=GRID)
    model.update(x, counts)
    found = model.predict(X)
    assert found.mean.shape == found.std.shape == (9, 3)
    np.testing.assert_allclose(found.mean, shares(X), atol=0.08)
    with pytest.raises(sgp.DataError, match="a channel whose values are ordered; got Multinomial"):
        found.interval()
    assert np.all(found.log_density(np.eye(3)[0]) < 0)


def test_shares_of_several_classes():
    rng = np.random.default_rng(8)
    x = rng.uniform(0, 6, 300)
    y = np.stack([rng.dirichlet(40 * share) for share in shares(x)])
    model = sgp.ContinualGP(sgp.Dirichlet(3), latents=3, inducing=GRID)
    model.update(x, y)
    found = model.predict(X)
    np.testing.assert_allclose(found.mean, shares(X), atol=0.05)
    with pytest.raises(sgp.DataError, match="a channel whose values are ordered; got Dirichlet"):
        found.quantile(0.5)


# -- forms of the same data ------------------------------------------------------------------------


def three():
    """A model with a family of each kind, and its data as arrays."""
    model = sgp.ContinualGP(
        {
            "visits": sgp.Poisson(exposure=True),
            "wind": sgp.Gaussian(),
            "votes": sgp.Multinomial(2),
        },
        latents=1, inducing=GRID, learning=None,
    )  # fmt: skip
    x, count, exposure = visits(12)
    votes = np.stack([count + 1, count[::-1] + 1], axis=1)
    return model, x, count, exposure, np.sin(x), votes


def test_all_forms_are_the_same_data():
    model, x, count, exposure, wind, votes = three()
    pairs = {"visits": (x, np.stack([count, exposure], axis=1)), "wind": (x, wind)}
    model.update({**pairs, "votes": (x, votes)})
    wide = {
        "t": x, "wind": wind, "visits": count, "visits_exposure": exposure,
        "votes_count_0": votes[:, 0], "votes_count_1": votes[:, 1],
    }  # fmt: skip
    named = {
        "t": x, "wind": wind, "n": count, "hours": exposure,
        "votes_count_1": votes[:, 1], "votes_count_0": votes[:, 0],
    }  # fmt: skip
    long = {
        "t": np.tile(x, 3),
        "what": np.repeat(["visits", "wind", "votes"], 12),
        "first": np.concatenate([count, wind, votes[:, 0]]),
        "second": np.concatenate([exposure, np.full(12, np.nan), votes[:, 1]]),
    }
    dictionaries = {
        "visits": (x, {"exposure": exposure, "count": count}),
        "wind": (x, {"value": wind}),
        "votes": (x, pd.DataFrame({"count_0": votes[:, 0], "count_1": votes[:, 1]})),
    }
    options = {"inputs": "t", "channel": "what"}
    calls = [
        lambda m: m.update(pd.DataFrame(wide), inputs="t"),
        lambda m: m.update(pl.DataFrame(wide), inputs="t"),
        lambda m: m.update(pd.DataFrame(wide).set_index("t")),
        lambda m: m.update(pd.DataFrame(named), inputs="t", columns={"visits": ["n", "hours"]}),
        lambda m: m.update(
            pd.DataFrame(named), inputs="t", columns={"visits": {"exposure": "hours", "count": "n"}}
        ),
        lambda m: m.update(pd.DataFrame(long), value=["first", "second"], **options),
        lambda m: m.update(pl.DataFrame(long), value=["first", "second"], **options),
        lambda m: m.update(
            pd.DataFrame(long),
            value={
                "value": "first", "count": "first", "exposure": "second",
                "count_0": "first", "count_1": "second",
            },
            **options,
        ),
        lambda m: m.update(dictionaries),
    ]  # fmt: skip
    for call in calls:
        other = three()[0]
        call(other)
        for name in model.channels:
            mine, its = model.predict(X, name), other.predict(X, name)
            np.testing.assert_allclose(its.latent_mean, mine.latent_mean, atol=1e-12)
    assert three()[0].channels == model.channels


def test_samples_come_in_all_forms_too():
    model, x, count, exposure, wind, _ = three()
    names = np.where(np.arange(12) % 2, "wind", "visits")
    first = np.where(np.arange(12) % 2, wind, count)
    second = np.where(np.arange(12) % 2, np.nan, exposure)
    model.update_many(x, np.stack([first, second], axis=1), names)
    frame = pd.DataFrame({"t": x, "what": names, "first": first, "second": second})
    other = three()[0]
    other.update_many(frame, inputs="t", channel="what", value=["first", "second"])
    assert other.to_bytes() != three()[0].to_bytes()
    for name in ("visits", "wind"):
        mine, its = model.predict(X, name), other.predict(X, name)
        np.testing.assert_allclose(its.latent_mean, mine.latent_mean, atol=1e-12)
    wide = three()[0]
    wide.update_many(
        pd.DataFrame({"t": x, "n": count, "hours": exposure}),
        inputs="t",
        columns={"visits": ["n", "hours"]},
    )
    assert wide.observations["visits"] == 12


@pytest.mark.parametrize(
    "names",
    [("y", "y_exposure"), ("count", "exposure"), ("y", "exposure"), ("count", "y_exposure")],
)
def test_a_lone_channel_is_found_by_either_name(names):
    x, count, exposure = visits(10)
    frame = pd.DataFrame({"t": x, names[0]: count, names[1]: exposure})
    model = sgp.ContinualGP(sgp.Poisson(exposure=True), learning=None, inducing=GRID)
    model.update(frame, inputs="t")
    plain = sgp.ContinualGP(sgp.Poisson(exposure=True), learning=None, inducing=GRID)
    plain.update(x, np.stack([count, exposure], axis=1))
    same(model, plain)


def test_one_observation_may_be_a_list():
    model = sgp.ContinualGP(sgp.Poisson(exposure=True), learning=None, inducing=GRID)
    model.update(2.0, [5.0, 1.5])
    model.update([3.0], [[4.0, 2.0]])
    assert model.observations == {"y": 2}


def test_files_go_on_with_such_families():
    x, count, exposure = visits(20)
    y = np.stack([count, exposure, np.ones(20)], axis=1)
    family = sgp.Weighted(sgp.Poisson(exposure=True))
    model = sgp.ContinualGP({"a": family, "b": sgp.Dirichlet(3)}, inducing=GRID)
    model.update({"a": (x[:10], y[:10]), "b": (x[:10], shares(x[:10]))})
    again = sgp.from_bytes(model.to_bytes())
    model.update({"a": (x[10:], y[10:])})
    again.update({"a": (x[10:], y[10:])})
    assert again.to_bytes() == model.to_bytes()


@pytest.mark.parametrize(
    "family",
    [sgp.Gaussian(error=True), sgp.Weighted(sgp.Censored(sgp.Gaussian()))],
    ids=["error", "weighted"],
)
def test_scales_may_be_given(family):
    x = np.linspace(0, 6, 40)
    others = [np.full(40, 0.0 if name != "weight" else 1.0) for name in family.columns[1:]]
    model = sgp.ContinualGP(family, scale={"y": (1.0, 2.0)}, inducing=GRID)
    model.update(x, np.stack([np.sin(x), *others], axis=1))
    assert model.state.model.channels[0].offset.value == [1.0]
    np.testing.assert_allclose(model.predict(X).mean, np.sin(X), atol=0.02)


def test_a_channel_may_come_later():
    x, count, exposure = visits(30)
    model = sgp.ContinualGP({"a": sgp.Gaussian()}, inducing=GRID)
    model.update(x, np.sin(x))
    model.add_channel("b", sgp.Poisson(exposure=True))
    model.update({"b": (x, np.stack([count, exposure], axis=1))})
    np.testing.assert_allclose(model.predict(X, "b").mean, rate(X), rtol=0.5)


# -- missing parts ---------------------------------------------------------------------------------


def test_a_row_without_a_value_was_not_observed():
    x, count, exposure = visits(10)
    gap = np.where(np.arange(10) == 3, np.nan, count)
    model = sgp.ContinualGP(sgp.Poisson(exposure=True), learning=None, inducing=GRID)
    report = model.update(pd.DataFrame({"t": x, "y": gap, "y_exposure": exposure}), inputs="t")
    assert report.dropped == {"y": "1 missing value"}
    kept = np.arange(10) != 3
    plain = sgp.ContinualGP(sgp.Poisson(exposure=True), learning=None, inducing=GRID)
    plain.update(x[kept], np.stack([count, exposure], axis=1)[kept])
    same(model, plain)
    nothing = pd.DataFrame({"t": x, "y": np.full(10, np.nan), "y_exposure": np.full(10, np.nan)})
    assert model.update(nothing, inputs="t").result is sgp.Result.NOTHING_OBSERVED


COUNTED = {"t": [0.0, 1.0, 2.0], "y": [3.0, 4.0, 5.0]}


@pytest.mark.parametrize(
    ("likelihood", "data", "options", "message"),
    [
        (
            sgp.Poisson(exposure=True),
            pd.DataFrame({**COUNTED, "y_exposure": [1.0, None, None]}),
            {"inputs": "t"},
            r"the exposure of each of the observations of channel 'y'; got 2 missing values, "
            r"the first in row 1\. Fill in the exposure of such rows",
        ),
        (
            sgp.Multinomial(2),
            pd.DataFrame({"t": [0.0, 1.0], "y_count_0": [1.0, 2.0], "y_count_1": [None, 1.0]}),
            {"inputs": "t"},
            r"the count_1 of each .* 1 missing value, in row 0\. Fill in 0 where there was none",
        ),
        (
            sgp.Poisson(exposure=True),
            pd.DataFrame(COUNTED),
            {"inputs": "t"},
            r"the columns \['y', 'y_exposure'\] for channel 'y'; got no 'y_exposure'\. Add it, or "
            r"say which it is with `columns={'y': \['y', 'y_exposure'\]}`",
        ),
        (
            sgp.Poisson(exposure=True),
            pd.DataFrame({**COUNTED, "y_exposure": [1.0, 1.0, 1.0], "y_hours": [1.0, 1.0, 1.0]}),
            {"inputs": "t"},
            r"columns among \['y', 'y_exposure'\], as the channels have; got 'y_hours'",
        ),
        (
            sgp.Poisson(exposure=True),
            pd.DataFrame({**COUNTED, "hours": [1.0, 1.0, 1.0]}),
            {"inputs": "t", "columns": {"y": ["y"]}},
            r"a column for each of \['count', 'exposure'\] of channel 'y'; got \['y'\]",
        ),
        (
            sgp.Poisson(exposure=True),
            pd.DataFrame({**COUNTED, "hours": [1.0, 1.0, 1.0]}),
            {"inputs": "t", "columns": {"z": ["y", "hours"]}},
            r"`columns=` as a dictionary by channel, among \['y'\]",
        ),
        (
            sgp.Poisson(exposure=True),
            pd.DataFrame({**COUNTED, "hours": [1.0, 1.0, 1.0]}),
            {"inputs": "t", "columns": {"y": ["y", "minutes"]}},
            r"column",
        ),
        (
            sgp.Gaussian(),
            pd.DataFrame({**COUNTED, "hours": [1.0, 1.0, 1.0]}),
            {"inputs": "t", "value": ["y", "hours"]},
            r"1 of the 2 columns filled in for observations of channel 'y', whose likelihood has "
            r"value; got a value in column 1 as well, in row 0",
        ),
        (
            sgp.Gaussian(error=True),
            pd.DataFrame(COUNTED),
            {"inputs": "t", "value": "y"},
            r"of 2 numbers each, value, error, as observations of channel 'y'; got shape \(3, 1\)",
        ),
    ],
)
def test_frames_that_lack_something_say_what(likelihood, data, options, message):
    model = sgp.ContinualGP(likelihood)
    with pytest.raises(sgp.DataError, match=rf"^expected .*{message}"):
        model.update(data, **options)


@pytest.mark.parametrize(
    ("likelihood", "y", "message"),
    [
        (
            sgp.Poisson(exposure=True),
            [1.0, 2.0, 3.0],
            r"3 observations of 2 numbers each, count, exposure, as observations of channel 'y'; "
            r"got shape \(3,\)\. Give an array of shape \(3, 2\), or a dictionary with the keys",
        ),
        (sgp.Dirichlet(3), np.ones((3, 2)), r"share_0, share_1, share_2, .*shape \(3, 2\)"),
        (sgp.Gaussian(), np.ones((3, 2)), r"3 observations, one per row .* got shape \(3, 2\)"),
        (
            sgp.Poisson(exposure=True),
            {"count": [1, 2, 3]},
            r"the columns \['count', 'exposure'\] of observations of channel 'y'; "
            r"got no 'exposure' among \['count'\]",
        ),
        (
            sgp.Poisson(exposure=True),
            {"count": [1, 2, 3], "exposure": [1, 1, 1], "hours": [1, 1, 1]},
            r"columns among \['count', 'exposure'\] .* got 'hours'",
        ),
        (
            sgp.Poisson(exposure=True),
            {"count": [1, 2, 3], "exposure": [1, 1]},
            r"3 observations, .* as observations of channel 'y' \(exposure\); got shape \(2,\)",
        ),
        (
            sgp.Poisson(exposure=True),
            [[1.0, 2.0], [3.0, np.nan], [1.0, 1.0]],
            r"finite observations of channel 'y' \(exposure\), .* in row 1",
        ),
        (
            sgp.Poisson(exposure=True),
            [[1.0, 2.0], [3.0, 0.0], [1.0, 1.0]],
            r"in the support of Poisson; got count 3.0, exposure 0.0 in row 1",
        ),
        (
            sgp.Weighted(sgp.Gaussian()),
            [[1.0, 2.0], [3.0, -1.0], [1.0, 1.0]],
            r"in the support of Weighted\(Gaussian\); got value 3.0, weight -1.0 in row 1",
        ),
        (
            sgp.Weighted(sgp.Gaussian()),
            {"value": [1.0, 2.0, 3.0], "weight": ["a", "b", "c"]},
            r"observations of channel 'y' \(weight\) as numbers; got labels, such as a",
        ),
    ],
)
def test_arrays_that_lack_something_say_what(likelihood, y, message):
    model = sgp.ContinualGP(likelihood)
    with pytest.raises(sgp.DataError, match=rf"^expected .*{message}"):
        model.update([0.0, 1.0, 2.0], y)
    with pytest.raises(sgp.DataError, match=r"^expected "):
        model.update_many([0.0, 1.0, 2.0], y)


def test_a_column_that_two_channels_would_have_is_an_error():
    frame = pd.DataFrame({"t": [0.0], "a": [1.0], "a_exposure": [2.0]})
    model = sgp.ContinualGP({"a": sgp.Poisson(exposure=True), "a_exposure": sgp.Gaussian()})
    with pytest.raises(sgp.DataError, match=r"'a_exposure', which would be of 'a' and of 'a_expo"):
        model.update(frame, inputs="t")
    model.update(frame, inputs="t", columns={"a": ["a", "a_exposure"], "a_exposure": "a"})
    assert model.observations == {"a": 1, "a_exposure": 1}


def test_a_column_may_serve_two_channels_if_that_is_said():
    frame = pd.DataFrame({"t": [0.0, 1.0], "a": [1.0, 2.0], "b": [2.0, 0.0], "hours": [1.0, 3.0]})
    exposed = sgp.Poisson(exposure=True)
    model = sgp.ContinualGP({"a": exposed, "b": exposed})
    model.update(frame, inputs="t", columns={"a": ["a", "hours"], "b": ["b", "hours"]})
    assert model.observations == {"a": 2, "b": 2}
    with pytest.raises(sgp.DataError, match=r"`columns=` for a wide frame only"):
        model.update(frame, inputs="t", value="a", channel="b", columns={"a": ["a", "hours"]})
    with pytest.raises(sgp.DataError, match=r"a frame to go with `columns=`"):
        model.update({"a": ([0.0], [[1.0, 2.0]])}, columns={"a": ["a", "hours"]})
