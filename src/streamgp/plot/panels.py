"""The channels of a model, over the inputs that it has learned."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from streamgp.errors import DataError, problem
from streamgp.online.report import percent
from streamgp.plot import bands, maps, marks, style
from streamgp.plot.shown import (
    ALONG,
    Model,
    clocked,
    named,
    of_channel,
    on_clock,
    spanned,
    width_of,
)

_ACROSS = 80  # points of each side of a map
_TIGHT = 0.05  # an open part of the variance that is worth a note


def channel(
    model: Model,
    name: str | None = None,
    *,
    x: Any = None,
    data: Any = None,
    past: Any = None,
    level: float = 0.95,
    value: Literal["mean", "std"] = "mean",
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
            range of the inducing points and the observations.
        data: The newest observations (x, y), or a dictionary of them by channel.
        past: Earlier observations (x, y), drawn in another colour; or, for one input, the range
            (low, high) in which they were; or a dictionary of either by channel.
        level: The probability of the interval around a line.
        value: Whether a map of numbers shows the mean or the standard deviation.
        inducing: Whether to mark the inducing points. Along a line there is one row of ticks per
            latent function.
        note: Whether to say above a line when the inducing points leave more than 5% of the
            variance at past rows open. The note needs marked inducing points.
        legend: Whether to draw a legend of past and new data if both are shown.
        ax: Matplotlib axes, or an array of one; by default the current ones.

    Returns:
        The axes. `channels` and `ContinualGP.plot` return an array.

    Raises:
        DataError: If the model has no data or more than two inputs, or the arguments do not fit it.
        ImportError: If matplotlib is missing.
    """
    width, axes = width_of(model), model.axes
    name = named(model, name)
    pairs = ((of_channel(part, name), what) for part, what in ((data, "data"), (past, "past")))
    given = ((on_clock(part, axes), what) for part, what in pairs)
    new, old = (marks.observed(part, width, what) for part, what in given)
    points = tuple(clocked(of_latent, axes) for of_latent in model.inducing_points)
    seen = [*points, *(part.x.reshape(-1, width) for part in (new, old) if part is not None)]
    ax = style.axes(ax)
    if width == 1:
        along = spanned(seen, ALONG)[0] if x is None else np.ravel(clocked(x, axes))
        prediction = model.predict(axes[0].off_clock(along), name)
        marks.check_drawable(prediction, new, old)
        height = bands.draw(ax, prediction, along, level, style.MODEL)
        style.label(ax, str(axes[0].name or "x"), bands.axis_name(prediction, name))
        marks.along(ax, new, old, height)
        if inducing:
            marks.ticks(ax, points, room=not bands.has_classes(prediction))
            if note and max(model.open_variance) > _TIGHT:
                marks.note(ax, _tight(model))
    else:
        sides = spanned(seen, _ACROSS) if x is None else _pair(x)
        grid = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
        prediction = model.predict(grid, name)
        marks.check_drawable(prediction, new, old)
        style.label(ax, str(axes[0].name or "x₀"), str(axes[1].name or "x₁"))
        maps.surface(prediction, *sides, name=name, value=value, ax=ax)
        maps.on_map(ax, prediction, new, old)
        if inducing:
            marks.crosses(ax, points)
    if legend and new is not None and old is not None:
        style.legend_above(ax, ("past range" if old.y is None else "past data", "new data"))
    return ax


def channels(
    model: Model,
    names: str | Sequence[str] | None = None,
    *,
    data: Any = None,
    past: Any = None,
    note: bool = True,
    legend: bool = True,
    ax: Any = None,
    **options: Any,
) -> np.ndarray:
    """Draw channels, each on axes of its own.

    Args:
        model: A `ContinualGP`.
        names: The names of the channels to draw, or one name; by default all of them.
        data: The newest observations, as in `update`: a dictionary of (x, y) by channel. For a
            single channel also (x, y).
        past: Earlier observations, in the same form.
        note: Whether the first channel says so when the inducing points are too few.
        legend: Whether to draw a legend of past and new data. The first channel that has both
            gets it.
        ax: Matplotlib axes, as many as channels; by default those of a new figure, one below the
            other.
        **options: Those of `channel`: `x`, `level`, `value`, `inducing`.

    Returns:
        An array of the axes, one per channel that was drawn.

    Raises:
        DataError: If the model has no data or more than two inputs, or the arguments do not fit it.
        ImportError: If matplotlib is missing.
    """
    for what, given in (("data", data), ("past", past)):
        several = len(_listed(model, names)) > 1
        if given is not None and several and not isinstance(given, Mapping):
            raise DataError(
                problem(f"{what}={{name: (x, y), …}}", type(given).__name__, "Name the channels.")
            )
    width_of(model)
    wants_legend = legend

    def draw(name: str, on: Any, *, first: bool) -> None:
        nonlocal wants_legend
        new, old = of_channel(data, name), of_channel(past, name)
        noted = note and first
        channel(model, name, data=new, past=old, note=noted, legend=wants_legend, ax=on, **options)
        wants_legend = wants_legend and (new is None or old is None)

    return on_several(model, names, ax, draw)


def on_several(
    model: Model, names: str | Sequence[str] | None, ax: Any, draw: Callable[..., None]
) -> np.ndarray:
    """Draw channels one below the other.

    Args:
        model: Their model.
        names: Which ones; by default all.
        ax: As many axes; by default those of a new figure.
        draw: Called as `draw(name, ax, first=…)` for each.
    """
    every = _listed(model, names)
    axes = _stacked(len(every), width_of(model)) if ax is None else np.ravel(np.asarray(ax, object))
    if len(axes) != len(every):
        raise DataError(
            problem(
                f"{len(every)} axes, one per channel",
                f"{len(axes)}",
                "Give as many axes as channels, or name one channel.",
            )
        )
    for number, (on, name) in enumerate(zip(axes, every, strict=True)):
        draw(name, on, first=number == 0)
    if ax is None:
        axes[0].figure.align_ylabels(axes)
        for each in axes[:-1]:
            each.set_xlabel("")
    return axes


def _listed(model: Model, names: str | Sequence[str] | None) -> tuple[str, ...]:
    names = model.channels if names is None else names
    return (names,) if isinstance(names, str) else tuple(names)


def _tight(model: Model) -> str:
    """What is left open, by how many points, and how many would do."""
    left, sizes = model.open_variance, [len(points) for points in model.inducing_points]
    return (
        f"{percent(max(left))} of the variance is left open by {'+'.join(map(str, sizes))} points; "
        f"suggest_budget() says {model.suggest_budget()}"
    )


def _pair(x: Any) -> tuple[np.ndarray, np.ndarray]:
    if not (isinstance(x, tuple | list) and len(x) == 2 and all(np.ndim(part) == 1 for part in x)):
        raise DataError(
            problem(
                "x=(first, second), increasing values of each of two inputs",
                f"{type(x).__name__} of shape {np.shape(x)}",
                "Give a pair of vectors.",
            )
        )
    return np.asarray(x[0], float), np.asarray(x[1], float)


def _stacked(count: int, width: int) -> np.ndarray:
    size = (8.0, 2.3 * count + 0.4) if width == 1 else (5.5, 4.2 * count)
    _, axes = style.pyplot().subplots(
        count, 1, figsize=size, sharex=True, squeeze=False, layout="constrained"
    )
    return axes[:, 0]
