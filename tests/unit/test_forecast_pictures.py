"""Fan charts and panels of components: what is on them, and what they refuse."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import streamgp as sgp
from streamgp.cli.main import main
from streamgp.plot import style

DAY = np.datetime64("2025-03-01") + np.arange(60)
WAVE = np.sin(2 * np.pi * np.arange(60) / 7)


@pytest.fixture(autouse=True)
def _no_figures_left():
    plt.close("all")
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def daily():
    """Four channels of days."""
    model = sgp.ContinualGP(
        {"load": sgp.Gaussian(), "visits": sgp.Poisson(), "on": sgp.Bernoulli(),
         "kind": sgp.Categorical(3)},
        mean=sgp.Constant() + sgp.Events({"sale": ["2025-03-09"], "later": ["2026-01-01"]}),
        seasons=["7D"], learning=None,
    )  # fmt: skip
    model.update(
        {
            "load": (DAY, WAVE), "visits": (DAY, np.round(5 + 3 * WAVE)),
            "on": (DAY, WAVE > 0), "kind": (DAY, np.round(1 + WAVE)),
        }
    )  # fmt: skip
    return model


@pytest.fixture(scope="module")
def plain():
    model = sgp.ContinualGP(sgp.Gaussian(), learning=None)
    model.update(np.arange(20.0), np.sin(np.arange(20.0)))
    return model


def line(ax, what):
    (found,) = [line for line in ax.get_lines() if line.get_label() == what]
    return found


def ends(collection):
    heights = collection.get_paths()[0].vertices[:, 1]
    return heights.min(), heights.max()


def test_a_fan_has_the_median_and_every_band_of_the_forecast(daily):
    (ax,) = daily.plot_forecast("14D", "1D", "load", levels=(0.8, 0.5))
    expected = daily.forecast("14D", "1D", "load")
    drawn = line(ax, "median")
    np.testing.assert_array_equal(drawn.get_xdata()[1:], expected.x)
    np.testing.assert_allclose(drawn.get_ydata()[1:], expected.quantile(0.5))
    assert drawn.get_xdata()[0] == DAY[-1]
    _, *fan = ax.collections  # the band of the past, and those of the future
    bands = dict(zip((0.8, 0.5), fan, strict=True))
    at_last = daily.predict(DAY[-1:], "load")
    for level in (0.5, 0.8):
        pairs = zip(expected.interval(level), at_last.interval(level), strict=True)
        lower, upper = (np.concatenate([now, later]) for later, now in pairs)
        low, high = ends(bands[level])
        np.testing.assert_allclose([low, high], [lower.min(), upper.max()])
    assert [t.get_text() for t in ax.get_legend().get_texts()] == [
        "80% interval", "mean", "80%", "50%", "median",
    ]  # fmt: skip


def test_the_swatches_of_a_fan_look_like_its_bands(daily):
    (ax,) = daily.plot_forecast("14D", channel="load", levels=(0.5, 0.95, 0.8))
    _, *fan = ax.collections
    seen = 1 - np.cumprod([1 - band.get_alpha() for band in fan])  # each on top of the ones before
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    swatches = dict(zip(names, ax.get_legend().legend_handles, strict=True))
    alphas = [swatches[name].get_alpha() for name in ("95%", "80%", "50%")]
    np.testing.assert_allclose(alphas, seen)
    assert alphas == sorted(set(alphas))


def test_nothing_is_shown_from_before_the_data_unless_it_is_asked_for(daily):
    (ax,) = daily.plot_forecast("50D", channel="load")
    assert np.diff(ax.get_xlim()) == pytest.approx(59 + 50)
    (ax,) = daily.plot_forecast("50D", channel="load", back="90D")
    assert np.diff(ax.get_xlim()) == pytest.approx(90 + 50)


def test_the_past_reaches_back_as_far_as_it_is_asked_to(daily):
    (ax,) = daily.plot_forecast("10D", channel="load")
    begin, end = (np.datetime64(t.replace(tzinfo=None)) for t in plt.matplotlib.dates.num2date(
        ax.get_xlim()))  # fmt: skip
    assert (DAY[-1] - begin, end - DAY[-1]) == (np.timedelta64(20, "D"), np.timedelta64(10, "D"))
    (ax,) = daily.plot_forecast("10D", channel="load", back="5D", ax=plt.subplots()[1])
    assert np.diff(ax.get_xlim()) == pytest.approx(15)


def test_data_and_what_came_are_dots(daily):
    later = DAY[-1] + np.arange(1, 6)
    (ax,) = daily.plot_forecast(
        "7D", channel="load", back="10D", data={"load": (DAY, WAVE)}, later=(later, np.ones(5))
    )
    assert len(line(ax, "data").get_xdata()) == 11  # those within the picture
    np.testing.assert_array_equal(line(ax, "what came").get_xdata(), later)
    assert line(ax, "what came").get_color() == style.NEW


def test_every_kind_of_channel_and_calibrated_bands(daily):
    axes = daily.plot_forecast("7D", "12h", calibrated=True)
    assert [ax.get_ylabel() for ax in axes] == ["load", "visits", "P(on)", "P(kind)"]
    assert "probability" in {line.get_label() for line in axes[2].get_lines()}
    assert len({c.get_label() for c in axes[3].collections}) == 3
    assert axes[0].get_legend() is not None
    assert axes[1].get_legend() is None


def test_calibrated_bands_are_those_of_the_interval():
    model = sgp.ContinualGP(sgp.Gaussian(noise=sgp.fixed(0.5)), learning=None)
    x, rng = np.linspace(0, 40, 400), np.random.default_rng(0)
    model.update_many(x, np.sin(x) + 0.1 * rng.normal(size=400))
    (ax,) = model.plot_forecast(2.0, levels=(0.95,), calibrated=True)
    _, drawn = ax.collections
    x = np.concatenate([[40.0], 40 + 2 * np.linspace(0, 1, 201)[1:]])
    lower, upper = model.predict(x).interval(0.95, calibrated=True)
    np.testing.assert_allclose(ends(drawn), [lower.min(), upper.max()])


def test_times_of_a_zone_are_shown_by_its_clocks():
    index = pd.date_range("2025-03-29", periods=48, freq="h", tz="Europe/Berlin")
    model = sgp.ContinualGP({"a": sgp.Gaussian()}, learning=None)
    model.update(pd.DataFrame({"a": np.arange(48.0)}, index=index))
    (ax,) = model.plot_forecast("4h", "1h", data=(index, np.arange(48.0)))
    assert line(ax, "median").get_xdata()[0] == np.datetime64("2025-03-31T00:00")
    assert line(ax, "data").get_xdata()[-1] == np.datetime64("2025-03-31T00:00")


def test_components_stand_under_each_other(daily):
    axes = daily.plot_components("load", ahead="7D")
    titles = [ax.get_title(loc="left") for ax in axes]
    assert titles[:4] == ["load", "level", "sale", "season 7D"]
    assert "later" not in titles  # zero all along
    (drawn,) = [line for line in axes[3].get_lines() if line.get_label() == "f0"]
    x = drawn.get_xdata()
    assert x[-1] == DAY[-1] + np.timedelta64(7, "D")
    expected = daily.predict(x, "load")
    np.testing.assert_allclose(drawn.get_ydata(), expected.components()["season 7D"].mean)
    np.testing.assert_allclose(axes[0].get_lines()[0].get_ydata(), expected.latent_mean)
    assert all(ax.get_shared_x_axes().joined(axes[0], ax) for ax in axes)
    assert axes[-1].get_xlabel() == "time"


def test_chosen_components_and_their_sum(plain):
    names = ("level", "latent 0: Matern52")
    axes = plain.plot_components(x=np.linspace(0, 5, 9), parts=["latent 0: Matern32", names])
    assert [ax.get_title(loc="left") for ax in axes[1:]] == [
        "latent 0: Matern32",
        " + ".join(names),
    ]
    expected = plain.predict(np.linspace(0, 5, 9)).components().together(*names)
    np.testing.assert_allclose(axes[2].get_lines()[0].get_ydata(), expected.mean)
    np.testing.assert_allclose(ends(axes[2].collections[0])[1], expected.interval(0.95)[1].max())


def test_several_latent_parameters_have_a_line_each(daily):
    axes = daily.plot_components("kind", parts=["season 7D"])
    assert [t.get_text() for t in axes[1].get_legend().get_texts()] == ["f0", "f1", "f2"]


def test_what_is_refused(daily, plain):
    with pytest.raises(sgp.DataError, match="before `plot`"):
        sgp.ContinualGP(sgp.Gaussian()).plot_forecast(3.0)
    with pytest.raises(sgp.ConfigurationError, match="length of a step"):
        plain.plot_forecast(12)
    with pytest.raises(sgp.ConfigurationError, match="since inputs are numbers"):
        plain.plot_forecast("2D")
    with pytest.raises(sgp.DataError, match="probability between 0 and 1"):
        plain.plot_forecast(3.0, levels=(0.5, 95))
    with pytest.raises(sgp.DataError, match="a channel among"):
        daily.plot_components()
    with pytest.raises(sgp.DataError, match="components among"):
        plain.plot_components(parts=["trend"])
    with pytest.raises(sgp.DataError, match="5 axes, one for the sum"):
        plain.plot_components(ax=plt.subplots(2)[1])
    wide = sgp.ContinualGP(sgp.Gaussian(), learning=None)
    wide.update(np.zeros((3, 2)), np.arange(3.0))
    with pytest.raises(sgp.DataError, match="one input column"):
        wide.plot_forecast(3.0)


def test_the_latest_input(daily, plain):
    assert sgp.ContinualGP(sgp.Gaussian()).latest is None
    assert plain.latest == 19.0
    assert daily.latest == DAY[-1]


def test_commands(daily, plain, tmp_path, capsys):
    daily.save(tmp_path / "daily.sgp")
    plain.save(tmp_path / "plain.sgp")
    path = str(tmp_path / "daily.sgp")
    main(["forecast", path, "--ahead", "7D", "--every", "1D", "--calibrated", "--out",
          str(tmp_path / "said.csv")])  # fmt: skip
    found = pd.read_csv(tmp_path / "said.csv", parse_dates=["x"])
    expected = daily.forecast("7D", "1D").to_frame(calibrated=True)
    np.testing.assert_allclose(found["visits_upper"], expected["visits_upper"])
    assert list(found["x"]) == list(expected["x"])
    assert {"kind_label", "on_label"} <= {*found.columns}
    capsys.readouterr()
    main(["forecast", str(tmp_path / "plain.sgp"), "--ahead", "3", "--every", "0.5"])
    assert len(capsys.readouterr().out.splitlines()) == 4
    for options in (
        ["--forecast", "7D", "--calibrated"],
        ["--components", "--channel", "load"],
        ["--components", "--channel", "load", "--forecast", "7D"],
    ):
        out = tmp_path / "picture.png"
        main(["plot", path, *options, "--out", str(out)])
        assert out.stat().st_size > 10_000
        out.unlink()
    with pytest.raises(SystemExit, match="Name it with --channel"):
        main(["plot", path, "--components"])
