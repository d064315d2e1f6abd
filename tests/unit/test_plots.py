"""Every picture of every family: what is on it, where it is drawn, and what it refuses."""

import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgba
from matplotlib.dates import ConciseDateFormatter, date2num
from scipy import special, stats

import streamgp as sgp
from streamgp.data.axes import Axis
from streamgp.parameters import unwrap
from streamgp.plot import grids, style

X = np.linspace(0, 6, 24)
AT = np.linspace(-1, 7, 16)
WAVE = np.sin(X)

FAMILIES = {
    "gaussian": (sgp.Gaussian(), WAVE),
    "student_t": (sgp.StudentT(), WAVE),
    "heteroscedastic": (sgp.HeteroscedasticGaussian(), WAVE),
    "lognormal": (sgp.LogNormal(), np.exp(WAVE)),
    "gamma": (sgp.Gamma(), np.exp(WAVE)),
    "beta": (sgp.Beta(), 0.5 + 0.4 * WAVE),
    "bernoulli": (sgp.Bernoulli(), (WAVE > 0).astype(float)),
    "binomial": (sgp.Binomial(5), np.round(2.5 + 2 * WAVE)),
    "poisson": (sgp.Poisson(), np.round(3 + 2 * WAVE)),
    "negative_binomial": (sgp.NegativeBinomial(), np.round(3 + 2 * WAVE)),
    "categorical": (sgp.Categorical(3), np.round(1 + WAVE)),
    "ordinal": (sgp.Ordinal(4), np.round(1.5 + 1.4 * WAVE)),
    "multinomial": (sgp.Multinomial(3), np.eye(3)[np.round(1 + WAVE).astype(int)]),
    "dirichlet": (sgp.Dirichlet(3), np.stack([0.4 + 0.3 * WAVE, 0.4 - 0.3 * WAVE, 0.2 + 0 * X], 1)),
}
CLASSES = {"categorical": 3, "ordinal": 4, "multinomial": 3, "dirichlet": 3}


@pytest.fixture(autouse=True)
def _no_figures_left():
    plt.close("all")
    yield
    plt.close("all")


@pytest.fixture
def ax():
    return plt.subplots()[1]


@pytest.fixture(scope="module")
def single():
    """One channel over one input."""
    model = sgp.ContinualGP({"load": sgp.Gaussian(0.1)}, learning=None, inducing=sgp.Fixed(X[::4]))
    model.update(X, WAVE)
    return model


@pytest.fixture(scope="module")
def mixed():
    """Two channels over one input, and the reports of its updates."""
    model = sgp.ContinualGP(
        {"load": sgp.Gaussian(), "humidity": sgp.Gaussian()},
        latents=2, learning=sgp.VEM(rounds=1), inducing=sgp.Fixed(X[::4]),
    )  # fmt: skip
    reports = [model.update({"load": (X[:12], WAVE[:12])})]
    reports.append(model.update({"load": (X[12:], WAVE[12:]), "humidity": (X[:8], 9 + WAVE[:8])}))
    return model, reports


def _prediction(likelihood, mean, variance=0.1):
    """Made by hand: its latent parameters are what the test says."""
    mean = np.asarray(mean, float).reshape(len(mean), -1)
    covariance = np.tile(variance * np.eye(mean.shape[1]), (len(mean), 1, 1))
    return sgp.Prediction(unwrap(likelihood.start(np.zeros(0))), mean, covariance)


class Given:
    """As much of a model as a picture needs, with a prediction made by hand."""

    channels = ("y",)
    kept_rows = 0

    def __init__(self, prediction, width=1):
        self.prediction = prediction
        self.inducing_points = (np.zeros((2, width)),)
        self.open_variance = (0.0,)
        self.axes = (Axis(),) * width
        self.shortest_waves = (np.inf,) * width

    def predict(self, x, channel=None):
        return self.prediction


def _labels(ax):
    return ax.get_legend_handles_labels()[1]


def _explained(ax):
    """What the legend has."""
    return {text.get_text() for text in ax.get_legend().get_texts()}


def _by_label(ax, text):
    handles, labels = ax.get_legend_handles_labels()
    return handles[labels.index(text)]


# -- points that are too few -------------------------------------------------------------------


def _notes(ax):
    return [text.get_text().replace("\n", " ") for text in ax.texts]


@pytest.fixture(scope="module")
def tight():
    """Two channels over one input, on three points."""
    channels = {"load": sgp.Gaussian(0.1), "grade": sgp.Categorical(3)}
    model = sgp.ContinualGP(
        channels, latents=sgp.RBF(lengthscale=0.5), learning=None, inducing=sgp.Fixed(X[::8])
    )
    model.update({"load": (X, WAVE), "grade": (X, np.round(1 + WAVE))})
    return model


def test_a_note_says_when_points_are_too_few(tight):
    left, budget = tight.open_variance[0], tight.suggest_budget()
    first, second = tight.plot(x=AT)
    said = f"{left:.0%} of the variance is left open by 3 points; suggest_budget() says {budget}"
    assert _notes(first) == [said]
    assert _notes(second) == []
    assert _notes(tight.plot("grade", x=AT, ax=plt.subplots()[1])[0]) == [said]


def test_points_that_suffice_need_no_note(tight):
    fine = sgp.ContinualGP(sgp.Gaussian(0.1), learning=None, inducing=sgp.Fixed(X))
    assert fine.update(X, WAVE).open_variance[0] < 0.05
    assert _notes(fine.plot(x=AT)[0]) == []
    assert _notes(tight.plot("load", x=AT, note=False)[0]) == []
    assert _notes(tight.plot("load", x=AT, inducing=False)[0]) == []


@pytest.mark.parametrize("name", ["load", "grade"])
@pytest.mark.parametrize("width", [3.0, 8.0])
def test_a_note_covers_nothing(tight, name, width):
    figure, ax = plt.subplots(figsize=(width, 3))
    tight.plot(name, x=AT, ax=ax)
    figure.canvas.draw()
    (text,) = ax.texts
    box = text.get_window_extent().transformed(ax.transData.inverted())
    drawn = [path.vertices[:, 1].max() for c in ax.collections for path in c.get_paths()]
    assert box.y0 >= max(drawn)
    assert text.get_window_extent().x1 <= ax.bbox.x1
    assert box.y1 <= ax.get_ylim()[1]


# -- along one input ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_has_a_band(name, ax):
    likelihood, y = FAMILIES[name]
    started = likelihood.start(y)
    x = AT[::4]
    prediction = _prediction(started, np.tile(started.location(y)[0], (len(x), 1)))
    assert sgp.plot.band(prediction, x, name=name, ax=ax) is ax
    if name in CLASSES:
        assert _labels(ax) == [str(k) for k in range(CLASSES[name])]
        assert len(ax.collections) == CLASSES[name]
        assert ax.get_ylim() == (0, 1)
        assert [text.get_text() for text in ax.get_legend().get_texts()] == _labels(ax)[::-1]
    else:
        assert _labels(ax) == ["95% interval", "mean"]
        np.testing.assert_array_equal(_by_label(ax, "mean").get_xdata(), x)
        assert ax.get_legend() is None
    probability = name in CLASSES or name == "bernoulli"
    assert ax.get_ylabel() == (f"P({name})" if probability else name)
    assert ax.get_xlabel() == "x"
    assert ax.get_title() == ""
    assert plt.get_fignums() == [ax.figure.number]
    ax.figure.canvas.draw()


def _ends(ax):
    """Lower and upper end of the interval at its first input."""
    vertices = ax.collections[0].get_paths()[0].vertices
    first = vertices[np.isclose(vertices[:, 0], vertices[:, 0].min())]
    return first[:, 1].min(), first[:, 1].max()


def test_the_band_of_a_number_is_the_interval_of_an_observation(ax):
    prediction = _prediction(sgp.Gaussian(noise=0.5), np.full(4, 2.0))
    sgp.plot.band(prediction, AT[:4], level=0.8, ax=ax)
    low, high = prediction.interval(0.8)
    np.testing.assert_allclose(_ends(ax), (low[0], high[0]))
    assert "80% interval" in _labels(ax)


@pytest.mark.parametrize("link", ["logit", "probit"])
def test_the_band_of_a_probability_is_that_of_f(link, ax):
    prediction = _prediction(sgp.Bernoulli(link=link), np.full(4, 0.5), variance=0.25)
    sgp.plot.band(prediction, AT[:4], ax=ax)
    f = 0.5 + 1.959964 * 0.5 * np.array([-1, 1])
    expected = special.expit(f) if link == "logit" else special.ndtr(f)
    np.testing.assert_allclose(_ends(ax), expected, rtol=1e-5)


def test_heavy_tails_without_a_mean_show_their_median(ax):
    prediction = _prediction(sgp.StudentT(scale=1.0, df=sgp.fixed(0.9)), np.full(4, 3.0))
    sgp.plot.band(prediction, AT[:4], ax=ax)
    np.testing.assert_allclose(_by_label(ax, "mean").get_ydata(), 3.0, atol=1e-6)


def test_times_and_disorder_along_the_axis(ax):
    dates = np.datetime64("2024-01-01", "h") + np.array([2, 0, 1])
    prediction = _prediction(sgp.Gaussian(noise=0.1), [2.0, 0.0, 1.0])
    sgp.plot.band(prediction, dates, ax=ax)
    line = _by_label(ax, "mean")
    np.testing.assert_array_equal(line.get_xdata(), np.sort(dates))
    np.testing.assert_allclose(line.get_ydata(), [0, 1, 2], atol=1e-12)
    ax.figure.canvas.draw()


def test_a_band_needs_one_input_per_row():
    with pytest.raises(sgp.DataError, match="3 inputs to draw along"):
        sgp.plot.band(_prediction(sgp.Gaussian(noise=0.1), np.zeros(3)), np.zeros((3, 2)))


# -- a model's channels ------------------------------------------------------------------------


def test_a_model_draws_itself(single, ax):
    drawn = single.plot(ax=ax)
    assert isinstance(drawn, np.ndarray)
    assert drawn.tolist() == [ax]
    assert _labels(ax) == ["95% interval", "mean", "inducing points"]
    np.testing.assert_array_equal(_by_label(ax, "inducing points").get_xdata(), X[::4])
    assert ax.get_ylabel() == "load"
    low, high = ax.get_xlim()
    assert low < X[::4].min()
    assert high > X[::4].max()
    assert plt.get_fignums() == [ax.figure.number]


def test_without_a_past_data_are_not_new(single, ax):
    single.plot(x=AT, data=(X, WAVE), inducing=False, ax=ax)
    assert _labels(ax) == ["95% interval", "mean", "data"]
    assert _explained(ax) == {"95% interval", "mean", "data"}
    assert not ax.patches
    single.plot(x=AT, legend=False, ax=(other := plt.subplots()[1]))
    assert other.get_legend() is None


def test_past_and_new_are_told_apart(single, ax):
    single.plot(x=AT, past=(X[:12], WAVE[:12]), data=(X[12:], WAVE[12:]), ax=ax)
    past, new = _by_label(ax, "past data"), _by_label(ax, "new data")
    assert to_rgba(past.get_color()) != to_rgba(new.get_color())
    np.testing.assert_array_equal(new.get_ydata(), WAVE[12:])
    (ground,) = ax.patches
    assert ground.get_x() == X[12]
    assert {"past data", "new data"} < _explained(ax)


def test_a_past_without_data_is_a_range(single, ax):
    single.plot(x=AT, past=(0.0, 2.0), data=(X[12:], WAVE[12:]), ax=ax)
    past, _ = ax.patches
    assert (past.get_x(), past.get_width()) == (0.0, 2.0)
    assert {"past range", "new data"} < _explained(ax)


def test_the_callers_labels_stay(single, ax):
    ax.set_xlabel("days")
    single.plot(x=AT, ax=ax)
    assert ax.get_xlabel() == "days"


def test_dots_of_classes_lie_in_their_shares(ax):
    model = Given(_prediction(sgp.Ordinal(3), WAVE))
    y = np.arange(len(X)) % 3
    sgp.plot.channel(model, x=X, data=(X, y), past=(X, y), ax=ax)
    tops = np.cumsum(model.prediction.probabilities, axis=1)
    height = _by_label(ax, "new data").get_ydata()
    np.testing.assert_array_equal(np.sum(height[:, None] > tops, axis=1), y)
    # the legend of the classes is still there beside that of past and new
    legends = [child for child in ax.get_children() if type(child).__name__ == "Legend"]
    assert [legend.get_clip_box() for legend in legends] == [None, None]  # in the layout


@pytest.mark.parametrize("zone", [None, "America/New_York"])
def test_a_model_of_times_is_drawn_over_those_of_its_data(zone, ax):
    dates = pd.date_range("2024-01-01", periods=24, freq="D", tz=zone)
    model = sgp.ContinualGP(sgp.Gaussian(), learning=None)
    model.update(dates, WAVE[:24])
    model.plot(data=(dates, WAVE[:24]), past=(dates[0], dates[3]), ax=ax)
    assert "kept rows" in _labels(ax)
    shown = ax.collections[0].get_paths()[0].vertices[:, 0]
    days = dates.tz_localize(None).to_numpy().astype("M8[D]").astype(float)  # as clocks show them
    assert shown.min() == pytest.approx(days[0] - 0.02 * 23)
    assert shown.max() == pytest.approx(days[-1] + 0.02 * 23)
    ax.figure.canvas.draw()


def test_no_observations_are_as_good_as_none_given(single, ax):
    single.plot(x=AT, data=(X[:0], X[:0]), past=(X, WAVE), ax=ax)
    assert "new data" not in _labels(ax)
    assert "past data" in _explained(ax)


def test_several_channels_share_a_figure(mixed):
    model, _ = mixed
    batch = {"humidity": (X[:8], 9 + WAVE[:8])}
    axes = model.plot(x=AT, data=batch, past=batch)
    assert [each.get_ylabel() for each in axes] == ["load", "humidity"]
    assert [each.get_xlabel() for each in axes] == ["", "x"]
    first, second = map(_explained, axes)
    assert "mean" in first
    assert second == {"past data", "new data", "new range"}  # the first one has the others
    assert "new data" not in _labels(axes[0])
    assert len(plt.get_fignums()) == 1
    rows = [line for line in axes[0].lines if line.get_marker() == "|"]
    points = model.inducing_points
    same = all(np.array_equal(z, points[0]) for z in points)
    assert len(rows) == (1 if same else len(points))  # a row for each, unless they are the same


def test_one_legend_is_enough_for_all(mixed):
    both = {"load": (X, WAVE), "humidity": (X, 9 + WAVE)}
    axes = mixed[0].plot(x=AT, data=both, past=both)
    assert [each.get_legend() is None for each in axes] == [False, True]


def test_several_channels_on_given_axes(mixed):
    model, _ = mixed
    given = plt.subplots(1, 2)[1]
    assert list(model.plot(x=AT, ax=given)) == list(given)
    assert model.plot("humidity", x=AT, ax=given[0])[0] is given[0]
    assert len(plt.get_fignums()) == 1
    with pytest.raises(sgp.DataError, match="2 axes, one per channel"):
        model.plot(x=AT, ax=given[0])


def test_the_axes_of_one_picture_are_those_of_the_next(single, mixed):
    for model in (single, mixed[0]):
        axes = model.plot(x=AT)
        assert model.plot(x=AT, ax=axes).tolist() == axes.tolist()
    one = sgp.plot.channel(single, x=AT)
    assert sgp.plot.channel(single, x=AT, ax=[one]) is one
    with pytest.raises(sgp.DataError, match="one axes to draw on; got 2"):
        sgp.plot.channel(single, x=AT, ax=plt.subplots(1, 2)[1])


def test_one_channel_is_an_array_of_one(single, mixed):
    axes = sgp.plot.channels(mixed[0], "humidity", x=AT)
    assert [each.get_ylabel() for each in axes] == ["humidity"]
    for data in ((X, WAVE), {"load": (X, WAVE)}):
        (several,) = sgp.plot.channels(single, x=AT, data=data)
        one = sgp.plot.channel(single, x=AT, data=data, ax=plt.subplots()[1])
        for ax in (several, one, *single.plot(x=AT, data=data, ax=plt.subplots()[1])):
            np.testing.assert_array_equal(_by_label(ax, "data").get_ydata(), WAVE)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"channel": "rain"}, "a channel among"),
        ({"data": X}, r"data=\(x, y\)"),
        ({"data": (X, WAVE[:3])}, "shapes"),
        ({"data": (0.0, 1.0)}, "shapes"),
        ({"past": (np.zeros((4, 3)), np.zeros(4))}, "1 input column"),
        ({"level": 95}, "probability"),
    ],
)
def test_what_a_channel_cannot_be_drawn_with(single, options, message):
    with pytest.raises(sgp.DataError, match=message):
        single.plot(**{"x": AT, **options})


def test_data_of_several_channels_come_by_name(mixed):
    with pytest.raises(sgp.DataError, match="Name the channels"):
        mixed[0].plot(data=(X, WAVE))
    with pytest.raises(sgp.DataError, match="a channel among"):
        sgp.plot.channel(mixed[0])


def test_a_model_without_data_cannot_be_drawn():
    with pytest.raises(sgp.DataError, match="Call `update`"):
        sgp.ContinualGP(sgp.Gaussian()).plot()


# -- over two inputs -----------------------------------------------------------------------------

PLANE = np.stack(np.meshgrid(np.linspace(0, 1, 5), np.linspace(0, 2, 4)), -1).reshape(-1, 2)
SIDES = np.linspace(0, 1, 9), np.linspace(0, 2, 7)


@pytest.fixture(scope="module")
def plane():
    model = sgp.ContinualGP(sgp.Gaussian(0.1), learning=None, inducing=sgp.Fixed(PLANE[::3]))
    model.update(PLANE, PLANE.sum(axis=1))
    return model


def test_a_map_of_numbers(plane, ax):
    y = PLANE.sum(axis=1)
    plane.plot(x=SIDES, data=(PLANE[10:], y[10:]), past=(PLANE[:10], y[:10]), ax=ax)
    mesh, past, new = ax.collections
    grid = np.stack(np.meshgrid(*SIDES), -1)
    assert mesh.get_array().shape == (7, 9)
    np.testing.assert_allclose(
        mesh.get_array(), plane.predict(grid.reshape(-1, 2)).mean.reshape(7, 9)
    )
    np.testing.assert_array_equal(new.get_offsets(), PLANE[10:])
    assert past.norm.vmin == mesh.norm.vmin  # the same colours mean the same numbers
    assert len(_by_label(ax, "inducing points").get_xdata()) == len(PLANE[::3])
    bar = ax.figure.axes[1]
    assert bar.get_ylabel() == "y"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x₀", "x₁")
    assert plt.get_fignums() == [ax.figure.number]


def test_a_map_has_the_names_of_its_inputs(ax):
    model = Given(_prediction(sgp.Gaussian(noise=0.1), np.zeros(63)), width=2)
    model.axes = Axis("east"), Axis("north")
    sgp.plot.channel(model, x=SIDES, ax=ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("east", "north")


def test_a_model_of_two_inputs_is_drawn_as_the_mean_and_its_uncertainty(plane):
    y = PLANE.sum(axis=1)
    ((left, right),) = plane.plot(x=SIDES, data=(PLANE[10:], y[10:]), past=(PLANE[:10], y[:10]))
    grid = np.stack(np.meshgrid(*SIDES), -1).reshape(-1, 2)
    expected = plane.predict(grid)
    for ax, values in ((left, expected.mean), (right, expected.std)):
        np.testing.assert_allclose(ax.collections[0].get_array(), values.reshape(7, 9))
        offsets = [marks.get_offsets() for marks in ax.collections[1:]]
        np.testing.assert_array_equal(np.concatenate(offsets), PLANE)
        assert len(_by_label(ax, "inducing points").get_xdata()) == len(PLANE[::3])
    assert _explained(left) == {"past data", "new data", "inducing points"}
    assert len(left.figure.axes) == 4  # with their colour bars
    assert sgp.plot.channel(plane, x=SIDES, value="std").get_xlabel() == "x₀"
    given = plt.subplots(1, 2)[1]
    assert sgp.plot.channel(plane, x=SIDES, ax=given).tolist() == given.tolist()
    with pytest.raises(sgp.DataError, match="one axes to draw on; got 2"):
        sgp.plot.channel(plane, x=SIDES, value="std", ax=given)


@pytest.mark.parametrize(
    ("likelihood", "columns", "label"),
    [(sgp.Bernoulli(), 2, "P(y), standard deviation"), (sgp.Categorical(3), 3, "P(another y)")],
)
def test_the_uncertainty_of_kinds(likelihood, columns, label):
    mean = _slope(columns)[:, 1] if columns == 2 else _slope(3)
    prediction = _prediction(likelihood, mean)
    ax = sgp.plot.surface(prediction, *SIDES, value="std")
    if columns == 2:
        expected = np.sqrt(prediction.epistemic)
    else:
        expected = 1 - prediction.probabilities.max(axis=1)
    np.testing.assert_allclose(ax.collections[0].get_array(), expected.reshape(7, 9))
    assert ax.figure.axes[1].get_ylabel() == label


def test_a_map_whose_first_input_is_a_time():
    hours = pd.date_range("2024-05-01", periods=40, freq="6h", tz="Europe/Madrid")
    depth = np.arange(40.0) % 7
    table = pd.DataFrame({"time": hours, "depth": depth, "oxygen": 8 - 0.2 * depth})
    model = sgp.ContinualGP({"oxygen": sgp.Gaussian()}, learning=None)
    model.update(table, inputs=["time", "depth"])
    ((left, right),) = model.plot(data=table)
    assert isinstance(left.xaxis.get_major_formatter(), ConciseDateFormatter)
    assert left.get_xlabel() == "time (Europe/Madrid)"
    dots = left.collections[1].get_offsets()[:, 0]
    np.testing.assert_allclose(dots, date2num(hours.tz_localize(None)))  # as clocks show them
    right.figure.canvas.draw()
    x = hours.tz_localize(None).to_numpy()[:3], depth[:2]
    mesh = sgp.plot.channel(model, x=(hours[:3], depth[:2]), value="mean").collections[0]
    pairs = pd.DataFrame({"time": np.tile(hours[:3], 2), "depth": np.repeat(depth[:2], 3)})
    np.testing.assert_allclose(np.ravel(mesh.get_array()), model.predict(pairs).mean)
    assert sgp.plot.surface(model.predict(pairs), *x).get_xlabel() == "x₀"


def test_a_map_of_deviations_and_the_default_grid(plane, ax):
    plane.plot(value="std", ax=ax)
    assert ax.figure.axes[1].get_ylabel() == "y, standard deviation"
    low, high = ax.get_ylim()
    assert low < 0
    assert high > 2


def _slope(columns):
    """Latent parameters that fall from left to right, the more the further the column."""
    across = np.stack(np.meshgrid(*SIDES), -1).reshape(-1, 2)[:, 0]
    return np.stack([(0.5 - across) * 8 * k for k in range(columns)], axis=-1)


def test_a_map_of_yes_and_no_has_a_border_at_one_half(ax):
    prediction = _prediction(sgp.Bernoulli(), _slope(2)[:, 1])
    sgp.plot.surface(prediction, *SIDES, name="rain", ax=ax)
    mesh, border = ax.collections
    assert mesh.get_clim() == (0, 1)
    np.testing.assert_allclose(border.get_paths()[0].vertices[:, 0], 0.5, atol=1e-6)
    assert ax.figure.axes[1].get_ylabel() == "P(rain)"


@pytest.mark.parametrize("likelihood", [sgp.Categorical(3), sgp.Ordinal(3)])
def test_a_map_of_classes_shows_the_most_probable(likelihood, ax):
    mean = _slope(3) if likelihood.latents == 3 else _slope(2)[:, 1]
    prediction = _prediction(likelihood, mean)
    sgp.plot.surface(prediction, *SIDES, name="grade", ax=ax)
    legend = ax.get_legend()
    assert legend.get_title().get_text() == "grade"
    assert [text.get_text() for text in legend.get_texts()] == ["0", "1", "2"]
    mesh, *borders = ax.collections
    assert len(borders) == len(np.unique(np.argmax(prediction.probabilities, axis=1))) - 1
    assert mesh.get_array().shape == (7, 9, 3)
    ax.figure.canvas.draw()


def test_what_a_map_cannot_be_drawn_with(plane):
    with pytest.raises(sgp.DataError, match="a pair of vectors"):
        plane.plot(x=AT)
    with pytest.raises(sgp.DataError, match="shapes"):
        plane.plot(past=(0.0, 1.0))
    with pytest.raises(sgp.ConfigurationError, match="'mean' or 'std'"):
        sgp.plot.surface(plane.predict(PLANE), np.arange(5), np.arange(4), value="median")
    with pytest.raises(sgp.DataError, match="9 × 7 inputs"):
        sgp.plot.surface(plane.predict(PLANE), *SIDES)


def test_three_inputs_cannot_be_drawn():
    with pytest.raises(sgp.DataError, match="one or two input columns; got 3"):
        sgp.plot.channel(Given(None, width=3))


# -- streams -------------------------------------------------------------------------------------


def test_scores_are_the_reports(mixed, ax):
    _, reports = mixed
    assert sgp.plot.scores(reports, ax=ax) is ax
    line = _by_label(ax, "load")
    np.testing.assert_array_equal(line.get_xdata(), [1, 2])
    np.testing.assert_array_equal(line.get_ydata(), [r.log_predictive["load"] for r in reports])
    np.testing.assert_array_equal(_by_label(ax, "humidity").get_xdata(), [2])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("update", "log predictive density")


def test_scores_of_every_observation(mixed, ax):
    sgp.plot.scores(mixed[1], rows=True, ax=ax)
    assert [len(line.get_xdata()) for line in ax.lines] == [24, 24, 8, 8]
    assert ax.get_xlabel() == "observation"


def test_sizes_that_are_the_same_are_one_line(mixed, ax):
    sgp.plot.inducing(mixed[1], ax=ax)
    (line,) = ax.lines
    assert line.get_label() == "latents 0, 1"
    np.testing.assert_array_equal(line.get_ydata(), [6, 6])


def test_positive_hyperparameters_are_on_a_log_scale(mixed, ax):
    _, reports = mixed
    sgp.plot.hyperparameters(reports, ax=ax)
    assert ax.get_yscale() == "log"
    assert "load noise" in _labels(ax)
    assert not any("weights" in text for text in _labels(ax))
    expected = [r.hyperparameters["channels"]["load"]["noise"] for r in reports]
    np.testing.assert_allclose(_by_label(ax, "load noise").get_ydata(), expected)


def test_named_hyperparameters_may_have_any_sign(mixed, ax):
    sgp.plot.hyperparameters(mixed[1], "weights", ax=ax)
    assert len(ax.lines) == 4
    assert ax.get_yscale() == "linear"
    with pytest.raises(sgp.DataError, match="a part of one of"):
        sgp.plot.hyperparameters(mixed[1], "colour", ax=ax)


def test_a_history_has_three_panels(mixed):
    axes = sgp.plot.history(mixed[1])
    assert [each.get_xlabel() for each in axes] == ["", "", "update"]
    assert len(plt.get_fignums()) == 1
    for wrong in ([], mixed[1][0]):
        with pytest.raises(sgp.DataError, match="a list of reports"):
            sgp.plot.history(wrong)


def test_retention_is_a_triangle_of_numbers(ax):
    scores = np.where(np.tri(3, dtype=bool), np.arange(9.0).reshape(3, 3), np.nan)
    assert sgp.plot.retention(scores, ax=ax) is ax
    assert [text.get_text() for text in ax.texts] == [
        "0.00", "3.00", "4.00", "6.00", "7.00", "8.00",
    ]  # fmt: skip
    assert np.ma.getmaskarray(ax.images[0].get_array()).sum() == 3
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("batch", "after step")
    assert ax.figure.axes[1].get_ylabel() == "NLPD"


def test_numbers_that_do_not_fit_are_not_written(ax):
    sgp.plot.retention(np.tri(20), colorbar=False, ax=ax)
    assert not ax.texts
    assert len(ax.figure.axes) == 1


@pytest.mark.parametrize("scores", [np.zeros((2, 3)), np.zeros(3), np.full((2, 2), np.nan)])
def test_retention_wants_a_square(scores):
    with pytest.raises(sgp.DataError, match="shape"):
        sgp.plot.retention(scores)


# -- calibration -----------------------------------------------------------------------------------

ROWS = 400


def _drawn(seed=0):
    return np.random.default_rng(seed).normal(size=(2, ROWS))


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "right"), (2.0, "narrow"), (0.5, "wide")])
def test_coverage_tells_narrow_from_wide(factor, verdict, ax):
    mean, noise = _drawn()
    prediction = _prediction(sgp.Gaussian(noise=0.6), mean, variance=0.64)
    assert sgp.plot.calibration(prediction, mean + factor * noise, ax=ax) is ax
    levels, observed = _by_label(ax, "observed").get_data()
    excess = np.interp(0.5, levels, observed) - 0.5
    assert {"right": abs(excess) < 0.05, "narrow": excess < -0.15, "wide": excess > 0.15}[verdict]
    assert ax.get_ylabel() == "observed coverage"


def test_coverage_and_transform_of_counts_need_no_random_numbers(ax):
    generator = np.random.default_rng(0)
    mean = generator.normal(size=ROWS)
    y = generator.poisson(np.exp(mean + np.sqrt(0.1) * generator.normal(size=ROWS)))
    prediction = _prediction(sgp.Poisson(), mean)
    sgp.plot.calibration(prediction, y, ax=ax)
    levels, observed = _by_label(ax, "observed").get_data()
    assert np.max(np.abs(np.subtract(observed, levels))) < 0.06
    ax.clear()
    sgp.plot.pit(prediction, y, bins=5, ax=ax)
    heights = np.array([bar.get_height() for bar in ax.patches])
    assert len(heights) == 5
    assert heights.mean() == pytest.approx(1)
    assert np.max(np.abs(heights - 1)) < 0.25


def test_the_transform_of_numbers_is_their_distribution_function(ax):
    mean, noise = _drawn()
    prediction = _prediction(sgp.Gaussian(noise=0.6), mean, variance=0.64)
    sgp.plot.pit(prediction, mean + noise, bins=4, ax=ax)
    expected = np.histogram(stats.norm.cdf(noise), 4, (0, 1))[0] * 4 / ROWS
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches], expected)


def test_reliability_of_yes_and_no(ax):
    generator = np.random.default_rng(0)
    f = 2 * generator.normal(size=ROWS)
    prediction = _prediction(sgp.Bernoulli(), f, variance=1e-6)
    y = (generator.uniform(size=ROWS) < prediction.mean).astype(float)
    sgp.plot.calibration(prediction, y, bins=5, ax=ax)
    _, points = ax.lines
    predicted, share = points.get_data()
    assert len(predicted) == 5
    chosen = (prediction.mean >= 0.2) & (prediction.mean < 0.4)
    assert predicted[1] == pytest.approx(prediction.mean[chosen].mean())
    assert share[1] == pytest.approx(y[chosen].mean())
    assert ax.get_xlabel() == "predicted probability"


def test_reliability_has_one_line_per_class(ax):
    f = np.random.default_rng(0).normal(size=(30, 3))
    sgp.plot.calibration(_prediction(sgp.Categorical(3), f), np.arange(30) % 3, ax=ax)
    assert _labels(ax) == ["0", "1", "2"]


@pytest.mark.parametrize("name", ["multinomial", "dirichlet"])
def test_no_dots_of_several_shares(name, ax):
    likelihood, y = FAMILIES[name]
    model = sgp.ContinualGP(likelihood, learning=None, inducing=sgp.Fixed(X[::6]))
    model.update(X, y)
    model.plot(ax=ax, past=(0.0, 3.0))
    with pytest.raises(sgp.DataError, match="several shares"):
        model.plot(data=(X, y[:, 0]))
    with pytest.raises(sgp.DataError, match="one number each"):
        sgp.plot.calibration(model.predict(X), y)


def test_what_calibration_refuses():
    prediction = _prediction(sgp.Categorical(3), np.zeros((3, 3)))
    with pytest.raises(sgp.DataError, match="expected 3 observation"):
        sgp.plot.calibration(prediction, [0.0, 1.0])
    with pytest.raises(sgp.DataError, match="ordered"):
        sgp.plot.pit(prediction, np.zeros(3))
    with pytest.raises(sgp.DataError, match="support"):
        sgp.plot.calibration(prediction, np.full(3, 7.0))


# -- figures, grids, dates and labels ------------------------------------------------------------


def test_nothing_is_drawn_into_axes_that_were_not_given(single, plane, mixed):
    mean, noise = _drawn()
    prediction = _prediction(sgp.Gaussian(noise=0.6), mean, variance=0.64)
    grid = plane.predict(np.stack(np.meshgrid(*SIDES), -1).reshape(-1, 2))
    reports = mixed[1]
    pictures = [
        lambda: sgp.plot.band(single.predict(AT), AT),
        lambda: sgp.plot.calibration(prediction, mean + noise),
        lambda: sgp.plot.channel(single, x=AT),
        lambda: sgp.plot.channel(plane, x=SIDES),
        lambda: sgp.plot.channels(mixed[0], x=AT),
        lambda: sgp.plot.components(single),
        lambda: sgp.plot.forecast(single, 2.0),
        lambda: sgp.plot.forecasts(mixed[0], 2.0),
        lambda: sgp.plot.history(reports),
        lambda: sgp.plot.hyperparameters(reports),
        lambda: sgp.plot.inducing(reports),
        lambda: sgp.plot.pit(prediction, mean + noise),
        lambda: sgp.plot.retention(np.tri(3)),
        lambda: sgp.plot.scores(reports),
        lambda: sgp.plot.surface(grid, *SIDES),
        lambda: single.plot(x=AT),
        lambda: single.plot_forecast(2.0),
        lambda: single.plot_components(),
    ]
    somebodys = plt.subplots()[1]
    for number, picture in enumerate(pictures, start=2):
        plt.sca(somebodys)
        drawn = np.ravel(np.asarray(picture(), object))
        assert not somebodys.has_data()
        assert somebodys.figure not in {ax.figure for ax in drawn}
        assert len(plt.get_fignums()) == number  # one more
    made = {name for name in sgp.plot.__all__ if name != "Drawn"}
    assert made <= {name for picture in pictures for name in picture.__code__.co_names}


def test_a_history_on_given_axes(mixed):
    given = plt.subplots(3)[1]
    assert sgp.plot.history(mixed[1], ax=given).tolist() == given.tolist()
    with pytest.raises(sgp.DataError, match="three axes"):
        sgp.plot.history(mixed[1], ax=given[:2])


def test_narrow_bands_are_darker_in_the_legend_too(single, ax):
    for level in (0.95, 0.8, 0.5):
        sgp.plot.band(single.predict(AT), AT, level=level, ax=ax)
    swatches = [patch.get_facecolor()[3] for patch in ax.legend().get_patches()]
    assert swatches == sorted(set(swatches))
    assert len(swatches) == 3


def _points_a_cycle(ax, period):
    (line,) = (line for line in ax.get_lines() if line.get_label() == "mean")
    return period / np.max(np.diff(line.get_xdata()))


@pytest.mark.parametrize(
    ("settings", "waves"),
    [
        ({"seasons": [1.0]}, 6),  # the harmonics of a season
        ({"seasons": [sgp.Seasonal(1.0, harmonics=2), 9.0]}, 2),
        ({"latents": sgp.kernels.Cosine(period=sgp.fixed(1.0)) + sgp.Matern32()}, 1),
        ({"latents": 2.0 * sgp.SHO(period=sgp.fixed(1.0), quality=3.0)}, 1),
        ({"latents": sgp.Periodic(period=sgp.fixed(1.0)) * sgp.Matern32(50.0)}, 2),
    ],
)
def test_the_shortest_wave_is_drawn_finely(settings, waves):
    x = np.arange(0, 150, 0.5)
    model = sgp.ContinualGP(sgp.Gaussian(), learning=None, **settings)
    model.update(x, np.sin(2 * np.pi * x))
    assert model.shortest_waves == (pytest.approx(1 / waves),)
    enough = 7.99 * waves  # eight but for rounding
    assert _points_a_cycle(model.plot()[0], 1.0) >= enough
    ax = model.plot_forecast(60.0)[0]
    assert _points_a_cycle(ax, 1.0) >= enough
    (ahead,) = (line for line in ax.get_lines() if line.get_label() == "median")
    assert 1 / np.max(np.diff(ahead.get_xdata())) >= enough
    components = model.plot_components(ahead=60.0)[0].get_lines()[0]
    assert 1 / np.max(np.diff(components.get_xdata())) >= enough


def test_a_season_of_times_is_drawn_finely():
    hours = np.datetime64("2024-01-01") + np.arange(24 * 60) * np.timedelta64(1, "h")
    model = sgp.ContinualGP(sgp.Gaussian(), seasons=["1D"], learning=None)
    model.update(hours, np.sin(np.arange(len(hours)) / 24 * 2 * np.pi))
    assert _points_a_cycle(model.plot()[0], np.timedelta64(1, "D")) >= 47.9


def test_too_many_waves_for_the_points_become_no_slow_ones():
    shares = grids.shares(20_000.0)  # waves
    assert len(shares) == grids.MOST
    assert np.all(np.diff(shares) > 0)
    seen = np.sin(2 * np.pi * 20_000 * shares).reshape(100, -1)
    assert np.all(seen.max(axis=1) > 0.9)  # everywhere the wave is seen at its full height
    assert np.all(seen.min(axis=1) < -0.9)
    np.testing.assert_array_equal(grids.shares(0.0), np.linspace(0, 1, grids.ALONG))


def test_inputs_of_other_columns_do_not_make_a_map_fine():
    model = sgp.ContinualGP(
        sgp.Gaussian(), latents=sgp.Periodic(period=sgp.fixed(0.1)).on(1) * sgp.RBF(),
        learning=None, inducing=sgp.Fixed(PLANE[::3]),
    )  # fmt: skip
    model.update(PLANE, PLANE.sum(axis=1))
    first, second = model.shortest_waves
    assert first == np.inf
    assert second == pytest.approx(0.05)
    mesh = model.plot()[0, 0].collections[0]
    assert mesh.get_array().shape == (grids.MOST_ACROSS, grids.ACROSS)


@pytest.mark.parametrize(("zone", "label"), [(None, "time"), ("Asia/Tokyo", "time (Asia/Tokyo)")])
def test_an_axis_of_times_has_dates_and_a_name(zone, label):
    index = pd.date_range("2024-01-01", periods=30, freq="D", tz=zone)
    table = pd.DataFrame({"load": np.sin(np.arange(30.0))}, index=index)
    model = sgp.ContinualGP({"load": sgp.Gaussian()}, learning=None)
    model.update(table)
    pictures = [
        model.plot(data=table)[0],
        model.plot_forecast("4D")[0],
        model.plot_components()[-1],
        sgp.plot.band(model.predict(index), index),
    ]
    for ax in pictures:
        assert isinstance(ax.xaxis.get_major_formatter(), ConciseDateFormatter)
        assert ax.get_xlabel() == label
    shown = pictures[-1].get_lines()[0].get_xdata()
    np.testing.assert_array_equal(shown, index.tz_localize(None).to_numpy())


def test_labels_of_classes_are_in_the_pictures():
    names = np.array(["rain", "cloud", "sun"])[np.round(1 + WAVE).astype(int)]
    model = sgp.ContinualGP({"sky": sgp.Categorical(3)}, learning=None)
    model.update(X, names)
    prediction = model.predict(X)
    some = names.astype(object)
    some[3] = None
    ax = model.plot(data=(X, some))[0]
    assert set(_labels(ax)) >= {"rain", "cloud", "sun"}
    tops = np.cumsum(prediction.probabilities, axis=1)
    lines = [line for line in ax.lines if line.get_label() == "data"]
    keep = np.arange(len(X)) != 3
    np.testing.assert_array_equal(lines[0].get_xdata(), X[keep])
    number = [prediction.classes.index(name) for name in names[keep]]
    x = [np.interp(X[keep], *_curve(model, k)) for k in range(3)]
    np.testing.assert_array_equal(np.sum(lines[0].get_ydata() > np.array(x), axis=0), number)
    assert tops.shape[1] == 3
    assert _labels(sgp.plot.calibration(prediction, names)) == ["cloud", "rain", "sun"]
    assert _explained(model.plot_forecast(1.0, data=(X, names))[0]) == {"data"}


def _curve(model, k):
    """The upper edge of a class's share, along the picture."""
    at = np.linspace(X[0] - 0.12, X[-1] + 0.12, 400)
    return at, np.cumsum(model.predict(at).probabilities, axis=1)[:, k]


def test_a_map_of_labelled_classes_and_their_dots():
    soils = np.array(["clay", "sand"])[(PLANE[:, 0] > 0.5).astype(int)]
    model = sgp.ContinualGP({"soil": sgp.Categorical(2)}, learning=None)
    model.update(PLANE, soils)
    ax = sgp.plot.channel(model, x=SIDES, data=(PLANE, soils), value="mean")
    legends = [child for child in ax.get_children() if type(child).__name__ == "Legend"]
    texts = {text.get_text() for legend in legends for text in legend.get_texts()}
    assert texts == {"clay", "sand", "data", "kept rows"}


def test_hyperparameters_of_the_default_kernel_are_drawn():
    model = sgp.ContinualGP({"load": sgp.Gaussian()})
    reports = [model.update(part, np.sin(part)) for part in np.split(X, 2)]
    drawn = _labels(sgp.plot.hyperparameters(reports, "latent 0"))
    assert {"latent 0 Matern12 variance", "latent 0 Matern52 lengthscale"} <= set(drawn)
    assert len(sgp.plot.history(reports)) == 3


def test_a_kernel_that_occurs_twice_is_numbered():
    latents = sgp.Matern32(1.0) + sgp.Matern32(9.0)
    model = sgp.ContinualGP(sgp.Gaussian(), latents=latents, learning=None)
    drawn = _labels(sgp.plot.hyperparameters([model.update(X, WAVE)], "lengthscale"))
    assert drawn == ["latent 0 Matern32 (1) lengthscale", "latent 0 Matern32 (2) lengthscale"]


# -- matplotlib itself -----------------------------------------------------------------------------


def test_importing_the_library_does_not_import_matplotlib():
    code = "import sys, streamgp; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_a_missing_matplotlib_is_told_with_its_remedy(single, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'streamgp\[plot\]'"):
        single.plot(x=AT)


def test_more_lines_than_colours_are_dashed():
    looks = style.line_styles(10)
    assert len({(look["color"], look["linestyle"]) for look in looks}) == 10
    assert len(style.class_colors(sgp.Categorical(12), 12)) == 12


def test_a_long_chain_has_one_row_of_some_ticks():
    x = np.arange(1500) / 10
    model = sgp.ContinualGP(
        {"a": sgp.Gaussian(), "b": sgp.Gaussian()}, latents=[sgp.Matern32(0.2)] * 2, learning=None
    )
    model.update({"a": (x, np.sin(x)), "b": (x, np.cos(x))})
    assert model.engine == "chain"
    assert model.state.sizes[0] > 1000
    ax = model.plot("a")[0]
    rows = [line for line in ax.lines if line.get_marker() == "|"]
    assert [len(line.get_xdata()) for line in rows] == [400]
    assert rows[0].get_xdata()[0] == x[0]


def test_frames_are_drawn_as_they_are_learned():
    pd = pytest.importorskip("pandas")
    times = pd.date_range("2024-01-01", periods=30, freq="h", tz="Europe/Madrid")
    table = pd.DataFrame({"a": np.sin(np.arange(30.0)), "b": np.arange(30.0) % 3}, index=times)
    table.loc[times[5:9], "a"] = np.nan
    model = sgp.ContinualGP({"a": sgp.Gaussian(), "b": sgp.Poisson()})
    model.update(table)
    first, second = model.plot(data=table)
    dots = [line for line in first.lines if len(line.get_xdata()) == 26]
    np.testing.assert_allclose(dots[0].get_ydata(), table["a"].dropna())
    assert any(len(line.get_xdata()) == 30 for line in second.lines)
