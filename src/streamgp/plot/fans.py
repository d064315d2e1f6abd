"""Forecasts: the recent past, and a fan of intervals that opens into the future."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamgp.data.horizons import inputs_ahead, length
from streamgp.errors import ConfigurationError, problem
from streamgp.plot import bands, grids, marks, style
from streamgp.plot.panels import on_several
from streamgp.plot.shown import Model, axis_label, named, of_channel, on_clock, start_of
from streamgp.prediction.checks import check_probability

LEVELS = (0.5, 0.8, 0.95)
_ALONG = 200  # the fewest points of the past, and of a forecast whose steps are not given
_ROUNDING = 1e-9  # of a step
_BACK = 2.0  # how much of the past is shown, in lengths of the forecast


def forecast(
    model: Model,
    ahead: Any,
    every: Any = None,
    name: str | None = None,
    *,
    back: Any = None,
    data: Any = None,
    later: Any = None,
    levels: Sequence[float] = LEVELS,
    calibrated: bool = False,
    legend: bool = True,
    ax: Any = None,
) -> Any:
    """Draw a fan chart of one channel: what it will show after the latest input.

    The line of the future is the median. Of yes or no, it is the probability of yes, and the bands
    show how uncertain the model is about it. Classes are drawn as stacked probabilities.

    Args:
        model: A `ContinualGP` with one input.
        ahead: How far to go, or a number of steps (an integer), as in `model.forecast`.
        every: The length of a step. It may be left out if `ahead` is a length.
        name: The name of the channel. It may be left out if there is only one.
        back: How much of the past to show: a duration, or a number in the units of the inputs. By
            default twice as much as the future, if the model has seen as much.
        data: Observations (x, y) of the past, a dictionary of them by channel, or a frame with a
            column per channel. Those from before the picture are left out.
        later: What then happened: observations (x, y) of the future, likewise.
        levels: The probabilities of the bands.
        calibrated: Whether the bands are those of `interval(level, calibrated=True)`.
        legend: Whether to draw a legend.
        ax: Matplotlib axes; by default those of a new figure.

    Returns:
        The axes.

    Raises:
        DataError: If the model has no data or several inputs, or the arguments do not fit it.
        ConfigurationError: If a length makes no sense for the inputs.
        ImportError: If matplotlib is missing.

    Examples:
        >>> import numpy as np, streamgp as sgp
        >>> model = sgp.ContinualGP({"load": sgp.Gaussian()}, seasons=[7])
        >>> day = np.arange(60.0)
        >>> load = np.sin(2 * np.pi * day / 7)
        >>> report = model.update(day, load)
        >>> (ax,) = sgp.plot.forecasts(model, 14.0, data=(day, load))
        >>> ax.get_ylabel()
        'load'
    """
    start, axis, name = start_of(model), model.axes[0], named(model, name)
    shares = sorted((_checked(level) for level in levels), reverse=True)
    numbers = np.concatenate([[start], ahead_of(model, start, ahead, every)])
    begin = start - _reach(model, start, numbers[-1], back)
    before = _before(model, begin, start, every)
    past, future = (model.predict(axis.values(part), name) for part in (before, numbers))
    shown_past, shown = axis.on_clock(before), axis.on_clock(numbers)
    old, new = (
        marks.observed(on_clock(of_channel(given, name, model.axes), model.axes), 1, what)
        for given, what in ((data, "data"), (later, "later"))
    )
    old, new = marks.drawable(future, old, new)
    ax = style.axes(ax)
    if bands.has_classes(future):
        whole = model.predict(axis.values(np.concatenate([before, numbers[1:]])), name)
        height = bands.draw(ax, whole, np.concatenate([shown_past, shown[1:]]), 0.95, style.MODEL)
    else:
        bands.draw(ax, past, shown_past, shares[0], style.PAST)
        height = bands.fan(ax, future, shown, shares, style.MODEL, calibrated=calibrated)
    style.label(ax, axis_label(axis, "x"), bands.axis_name(future, name))
    ax.axvline(shown[0], color=style.INK, linewidth=0.8, linestyle=":", zorder=2)
    marks.dots(ax, marks.within(old, shown_past[0], shown[-1]), height, style.PAST, "data")
    marks.dots(ax, marks.within(new, shown_past[0], shown[-1]), height, style.NEW, "what came")
    ax.set_xlim(axis.on_clock(np.array([begin]))[0], shown[-1])
    if legend:
        style.legend_in_row(ax, without=bands.class_names(future))
    return ax


def forecasts(
    model: Model,
    ahead: Any,
    every: Any = None,
    names: str | Sequence[str] | None = None,
    *,
    legend: bool = True,
    ax: Any = None,
    **options: Any,
) -> np.ndarray:
    """Draw fan charts of channels, each on axes of its own.

    Args:
        model: A `ContinualGP` with one input.
        ahead: How far to go, as in `forecast`.
        every: The length of a step, likewise.
        names: The names of the channels to draw, or one name; by default all of them.
        legend: Whether the first of them gets a legend.
        ax: Matplotlib axes, as many as channels; by default those of a new figure.
        **options: Those of `forecast`: `back`, `data`, `later`, `levels`, `calibrated`.

    Returns:
        An array of the axes, one per channel that was drawn.

    Raises:
        DataError: If the arguments do not fit the model.
        ImportError: If matplotlib is missing.
    """
    start_of(model)

    def draw(name: str, on: Any, *, first: bool) -> None:
        forecast(model, ahead, every, name, ax=on, legend=legend and first, **options)

    return on_several(model, names, ax, draw)


def ahead_of(model: Model, start: float, ahead: Any, every: Any) -> np.ndarray:
    """Inputs after the latest one, as the model's numbers."""
    axis = model.axes[0]
    if every is not None:
        return inputs_ahead(axis, start, ahead, every)[:, 0]
    if isinstance(ahead, int | np.integer):
        raise ConfigurationError(
            problem(
                "the length of a step beside a number of steps",
                f"{ahead} steps",
                "Give `every`, or say how far to go as a duration or a floating-point number.",
            )
        )
    reach = length(axis, ahead, "ahead")
    return start + reach * grids.shares(reach / model.shortest_waves[0], _ALONG + 1)[1:]


def _before(model: Model, begin: float, start: float, every: Any) -> np.ndarray:
    """Inputs of the past, up to the latest: at the steps of the forecast, unless these are many."""
    reach = start - begin
    if every is None:
        return begin + reach * grids.shares(reach / model.shortest_waves[0], _ALONG)
    step = max(length(model.axes[0], every, "every"), reach / grids.MOST)
    count = int(np.floor(reach / step + _ROUNDING))
    return start - step * np.arange(count, -1, -1.0)


def _reach(model: Model, start: float, end: float, back: Any) -> float:
    """How much of the past is shown: by default none from before the first inducing point."""
    if back is not None:
        return length(model.axes[0], back, "back")
    known = start - min(float(points[:, 0].min()) for points in model.inducing_points)
    wanted = _BACK * (end - start)
    return min(wanted, known) if known > 0 else wanted


def _checked(level: float) -> float:
    check_probability(level)
    return level
