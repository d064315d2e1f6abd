"""The channels of a model, over the inputs that it has learned."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamgp.data.frames import is_frame
from streamgp.errors import ConfigurationError, DataError, problem
from streamgp.online.report import percent
from streamgp.plot import bands, maps, marks, style
from streamgp.plot.shown import (
    Model,
    across,
    along,
    axis_label,
    clocked,
    name_of_points,
    named,
    of_channel,
    off_map,
    on_clock,
    side,
    width_of,
)
from streamgp.prediction.checks import check_probability

_TIGHT = 0.05  # an open part of the variance that is worth a note
_NUMBERS = {1: "one", 2: "two"}

Seen = tuple[marks.Observed | None, marks.Observed | None]


def channel(
    model: Model,
    name: str | None = None,
    *,
    x: Any = None,
    data: Any = None,
    past: Any = None,
    level: float = 0.95,
    value: maps.Value | None = None,
    inducing: bool = True,
    note: bool = True,
    legend: bool = True,
    ax: Any = None,
) -> Any:
    """Draw one channel of a model with one input (see `band`) or two (see `surface`).

    Args:
        model: A `ContinualGP`.
        name: The name of the channel. It may be left out if there is only one.
        x: Where to draw: values of the input, or a pair of vectors for two inputs. By default the
            range of the inducing points and the observations, finely enough for the shortest
            season or period.
        data: The newest observations (x, y), a dictionary of them by channel, or a frame with a
            column per channel.
        past: Earlier observations (x, y), drawn in another colour; or, for one input, the range
            (low, high) in which they were; or a dictionary of either by channel.
        level: The probability of the interval around a line.
        value: Which map to draw: "mean", or "std" for the uncertainty. By default both, side by
            side; or only the mean, if a single axes is given.
        inducing: Whether to mark the inducing points, or kept rows. Along a line there is one row
            of ticks per latent function.
        note: Whether to say above a line when the inducing points leave more than 5% of the
            variance at past rows open. The note needs marked inducing points.
        legend: Whether to draw a legend of the lines, intervals and marks above the axes.
        ax: Matplotlib axes, or an array of one, or of two for both maps; by default those of a new
            figure.

    Returns:
        The axes; an array of two for both maps. `channels` and `ContinualGP.plot` return an array.

    Raises:
        DataError: If the model has no data or more than two inputs, or the arguments do not fit it.
        ImportError: If matplotlib is missing.
    """
    values = _values(model, value, ax)
    wanted = _Wanted(x, data, past, level, values, inducing, note, legend)
    return _drawn(model, named(model, name), wanted, ax, set())


class _Wanted(NamedTuple):
    """What to draw of a channel."""

    x: Any
    data: Any
    past: Any
    level: float
    values: tuple[maps.Value, ...]
    inducing: bool
    note: bool
    legend: bool


def _drawn(model: Model, name: str, wanted: _Wanted, ax: Any, explained: set[str]) -> Any:
    """Draw a channel. Its legend leaves out what is explained, and adds its labels to that."""
    axes = model.axes
    given = (
        (of_channel(wanted.data, name, axes), "data"),
        (of_channel(wanted.past, name, axes), "past"),
    )
    new, old = (marks.observed(on_clock(part, axes), len(axes), what) for part, what in given)
    draw = _line if len(axes) == 1 else _maps
    panels, classes = draw(model, name, wanted, (new, old), ax)
    if wanted.legend:
        style.legend_in_row(panels[0], without={*explained, *classes})
    explained.update(panels[0].get_legend_handles_labels()[1])
    return panels if len(panels) > 1 else panels[0]


def _line(
    model: Model, name: str, wanted: _Wanted, seen: Seen, ax: Any
) -> tuple[np.ndarray, Sequence[str]]:
    """Draw over one input, and return the axes and the names of stacked classes."""
    (axis,) = model.axes
    check_probability(wanted.level)
    shown = along(model, wanted.x, [part.x[:, None] for part in seen if part is not None])
    prediction = model.predict(axis.off_clock(shown), name)
    new, old = marks.drawable(prediction, *seen)
    ax = style.axes(ax)
    height = bands.draw(ax, prediction, shown, wanted.level, style.MODEL)
    style.label(ax, axis_label(axis, "x"), bands.axis_name(prediction, name))
    marks.along(ax, new, old, height)
    if wanted.inducing:
        points = [clocked(of_latent, model.axes) for of_latent in model.inducing_points]
        marks.ticks(ax, points, name_of_points(model), room=not bands.has_classes(prediction))
        if wanted.note and max(model.open_variance) > _TIGHT:
            marks.note(ax, _tight(model))
    return np.array([ax], object), bands.class_names(prediction)


def _maps(
    model: Model, name: str, wanted: _Wanted, seen: Seen, ax: Any
) -> tuple[np.ndarray, Sequence[str]]:
    """Draw one map over two inputs, or two with the same marks; and return their axes."""
    axes = model.axes
    if wanted.x is None:
        sides = across(model, [part.x for part in seen if part is not None])
    else:
        sides = [side(part, axis) for part, axis in zip(_pair(wanted.x), axes, strict=True)]
    grid = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
    prediction = model.predict(off_map(grid, axes), name)
    new, old = marks.drawable(prediction, *seen)
    count = len(wanted.values)
    panels = _stacked(1, count, 2)[0] if ax is None else np.ravel(np.asarray(ax, object))
    if len(panels) != count:
        raise DataError(
            problem(f"{_NUMBERS[count]} axes to draw on", f"{len(panels)}", "Give one per map.")
        )
    for value, panel in zip(wanted.values, panels, strict=True):
        style.label(panel, axis_label(axes[0], "x₀"), axis_label(axes[1], "x₁"))
        maps.surface(prediction, *sides, name=name, value=value, ax=panel)
        for axis, drawn in zip(axes, (panel.xaxis, panel.yaxis), strict=True):
            if axis.is_time:
                style.short_dates(drawn)
        maps.on_map(panel, prediction, value, new, old)
        if wanted.inducing:
            points = [clocked(of_latent, axes) for of_latent in model.inducing_points]
            marks.crosses(panel, points, name_of_points(model))
    if ax is None:
        _say_once(panels[None])
    return panels, ()


def channels(
    model: Model,
    names: str | Sequence[str] | None = None,
    *,
    data: Any = None,
    past: Any = None,
    note: bool = True,
    legend: bool = True,
    x: Any = None,
    level: float = 0.95,
    value: maps.Value | None = None,
    inducing: bool = True,
    ax: Any = None,
) -> np.ndarray:
    """Draw channels, each on axes of its own; over two inputs, each on a pair of axes.

    Args:
        model: A `ContinualGP`.
        names: The names of the channels to draw, or one name; by default all of them.
        data: The newest observations, as in `update`: a dictionary of (x, y) by channel, or a frame
            with a column per channel. For a single channel also (x, y).
        past: Earlier observations, in the same form.
        note: Whether the first channel says so when the inducing points are too few.
        legend: Whether to draw legends. A channel's legend leaves out what that of an earlier
            channel has.
        x: Where to draw, as in `channel`.
        level: The probability of the intervals.
        value: Which maps to draw, as in `channel`.
        inducing: Whether to mark the inducing points.
        ax: Matplotlib axes, as many as channels, or two per channel for both maps; by default those
            of a new figure, one channel below the other.

    Returns:
        An array of the axes, one per channel that was drawn; (channels, 2) for both maps.

    Raises:
        DataError: If the model has no data or more than two inputs, or the arguments do not fit it.
        ImportError: If matplotlib is missing.
    """
    every = _listed(model, names)
    for what, given in (("data", data), ("past", past)):
        if given is None or len(every) == 1 or isinstance(given, Mapping) or is_frame(given):
            continue
        raise DataError(
            problem(
                f"{what}={{name: (x, y), …}}, or a frame with a column per channel",
                type(given).__name__,
                "Name the channels.",
            )
        )
    has_pairs = ax is None or np.size(ax) == 2 * len(every)
    values = _values(model, value, None if has_pairs else ax)
    explained: set[str] = set()

    def draw(name: str, on: Any, *, first: bool) -> None:
        wanted = _Wanted(x, data, past, level, values, inducing, note and first, legend)
        _drawn(model, name, wanted, on, explained)

    return on_several(model, every, ax, draw, each=len(values))


def on_several(
    model: Model,
    names: str | Sequence[str] | None,
    ax: Any,
    draw: Callable[..., None],
    *,
    each: int = 1,
) -> np.ndarray:
    """Draw channels one below the other.

    Args:
        model: Their model.
        names: Which ones; by default all.
        ax: As many axes as they need; by default those of a new figure.
        draw: Called as `draw(name, ax, first=…)` for each.
        each: How many axes a channel needs.

    Returns:
        The axes, one per channel; or (channels, each) of several.
    """
    every = _listed(model, names)
    width = len(model.axes)
    axes = _stacked(len(every), each, width) if ax is None else np.ravel(np.asarray(ax, object))
    if axes.size != len(every) * each:
        raise DataError(
            problem(
                f"{len(every) * each} axes, {_NUMBERS[each]} per channel",
                f"{axes.size}",
                "Give as many axes as channels, or name one channel.",
            )
        )
    rows = axes.reshape(len(every), each)
    for number, (on, name) in enumerate(zip(rows, every, strict=True)):
        draw(name, on, first=number == 0)
    if ax is None:
        rows[0, 0].figure.align_ylabels(rows)
        _say_once(rows)
    return rows if each > 1 else rows[:, 0]


def _listed(model: Model, names: str | Sequence[str] | None) -> tuple[str, ...]:
    names = model.channels if names is None else names
    return tuple(named(model, name) for name in ((names,) if isinstance(names, str) else names))


def _tight(model: Model) -> str:
    """What is left open, by how many points, and how many would do."""
    left, sizes = model.open_variance, [len(points) for points in model.inducing_points]
    return (
        f"{percent(max(left))} of the variance is left open by {'+'.join(map(str, sizes))} points; "
        f"suggest_budget() says {model.suggest_budget()}"
    )


def _pair(x: Any) -> tuple[Any, Any]:
    if not (isinstance(x, tuple | list) and len(x) == 2 and all(np.ndim(part) == 1 for part in x)):
        raise DataError(
            problem(
                "x=(first, second), increasing values of each of two inputs",
                f"{type(x).__name__} of shape {np.shape(x)}",
                "Give a pair of vectors.",
            )
        )
    return x[0], x[1]


def _values(model: Model, value: Any, ax: Any) -> tuple[maps.Value, ...]:
    """Which maps to draw; a line is always that of the mean."""
    if value not in ("mean", "std", None):
        raise ConfigurationError(problem("value 'mean' or 'std'", repr(value), "Choose one."))
    if value is not None or width_of(model) == 1:
        return (value or "mean",)
    return ("mean",) if ax is not None and np.size(ax) != 2 else ("mean", "std")


def _say_once(rows: np.ndarray) -> None:
    """Take away what the axes below and to the left say already."""
    for panel in rows[:-1].flat:
        panel.set_xlabel("")
    for panel in rows[:, 1:].flat:
        panel.set_ylabel("")


def _stacked(count: int, each: int, width: int) -> np.ndarray:
    """The axes of a new figure, (count, each)."""
    size = (8.0, 2.3 * count + (1.3 if count == 1 else 0.4))
    if width == 2:
        size = (5.5 * each, 4.2 * count)
    _, axes = style.pyplot().subplots(
        count, each, figsize=size, sharex=True, sharey=width == 2, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    return axes
