"""The components of a channel, one under the other."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamgp.errors import DataError, problem
from streamgp.plot import style
from streamgp.plot.fans import ahead_of
from streamgp.plot.shown import Model, along, axis_label, named, start_of
from streamgp.prediction.components import Component, Components
from streamgp.prediction.prediction import Prediction

_HEIGHT = 1.25  # of a panel, in inches


def components(
    model: Model,
    name: str | None = None,
    *,
    x: Any = None,
    ahead: Any = None,
    every: Any = None,
    parts: Sequence[str | Sequence[str]] | None = None,
    level: float = 0.95,
    ax: Any = None,
) -> np.ndarray:
    """Draw what a channel's latent parameter is the sum of, a panel for each component.

    The first panel has the sum. Bands are about the latent parameter, without noise. Components
    that are zero all along the picture, such as events at other times, are left out.

    Args:
        model: A `ContinualGP` with one input.
        name: The name of the channel. It may be left out if there is only one.
        x: Where to draw: values of the input. By default the range of the inducing points.
        ahead: How far the picture goes on after the latest input: a duration, or a floating-point
            number in the units of the inputs; or a number of steps. By default it ends there.
        every: The length of a step ahead. It may be left out if `ahead` is a length.
        parts: The components to draw, by name; several in a tuple are drawn as their sum, such as
            `[("level", "trend"), "season 7D"]`. By default all of them, each by itself.
        level: The probability of the bands.
        ax: Matplotlib axes, one for the sum and one per component; by default those of a new
            figure.

    Returns:
        An array of the axes, that of the sum first.

    Raises:
        DataError: If the model has no data or several inputs, or the arguments do not fit it.
        ImportError: If matplotlib is missing.

    Examples:
        >>> import numpy as np, streamgp as sgp
        >>> model = sgp.ContinualGP(sgp.Gaussian(), seasons=[7])
        >>> day = np.arange(60.0)
        >>> report = model.update(day, np.sin(2 * np.pi * day / 7))
        >>> axes = sgp.plot.components(model, ahead=14.0)
        >>> [ax.get_title(loc="left") for ax in axes[:3]]
        ['y', 'level', 'season 7']
    """
    start, axis, name = start_of(model), model.axes[0], named(model, name)
    shown = along(model, x)
    if ahead is not None:
        later = axis.on_clock(ahead_of(model, start, ahead, every))
        now = axis.on_clock(np.array([start]))
        shown = np.concatenate([shown[shown < now], now, later])
    prediction = model.predict(axis.off_clock(shown), name)
    chosen = _chosen(prediction.components(), parts)
    panels = _panels(len(chosen) + 1, ax)
    _draw(panels[0], shown, _whole(prediction), level, name, style.MODEL)
    for panel, (title, part) in zip(panels[1:], chosen.items(), strict=True):
        _draw(panel, shown, part, level, title, style.GREEN)
    for panel in panels:
        panel.margins(x=0)
        if style.is_dates(shown):
            style.short_dates(panel.xaxis)
        if ahead is not None:
            panel.axvline(now[0], color=style.INK, linewidth=0.8, linestyle=":")
    panels[-1].set_xlabel(panels[-1].get_xlabel() or axis_label(axis, "x"))
    return panels


def _whole(prediction: Prediction) -> Component:
    return Component(prediction.latent_mean, prediction.latent_variance)


def _chosen(found: Components, parts: Sequence[str | Sequence[str]] | None) -> dict[str, Component]:
    """The components to draw by title."""
    if parts is None:
        every = dict(found)
        return {name: part for name, part in every.items() if _is_there(part)}
    groups = [(part,) if isinstance(part, str) else tuple(part) for part in parts]
    return {" + ".join(names): found.together(*names) for names in groups}


def _is_there(part: Component) -> bool:
    return bool(np.any(part.mean) or np.any(part.variance))


def _draw(ax: Any, x: np.ndarray, part: Component, level: float, title: str, color: Any) -> None:
    low, high = part.interval(level)
    columns = [np.reshape(values, (len(x), -1)).T for values in (part.mean, low, high)]
    several = len(columns[0]) > 1
    looks = style.line_styles(len(columns[0])) if several else [{"color": color}]
    order, alpha = np.argsort(x), style.opacity(level)
    for j, (look, *numbers) in enumerate(zip(looks, *columns, strict=True)):
        mean, below, above = (values[order] for values in numbers)
        ax.fill_between(x[order], below, above, color=look["color"], alpha=alpha, lw=0)
        ax.plot(x[order], mean, linewidth=1.3, label=f"f{j}", **look)
    ax.set_title(title, loc="left", fontsize="medium", pad=3)
    if several:
        style.legend_beside(ax)


def _panels(count: int, ax: Any) -> np.ndarray:
    if ax is None:
        _, axes = style.pyplot().subplots(
            count, 1, figsize=(8.0, _HEIGHT * count + 0.6), sharex=True, squeeze=False,
            layout="constrained",
        )  # fmt: skip
        return axes[:, 0]
    given = np.ravel(np.asarray(ax, object))
    if len(given) != count:
        raise DataError(
            problem(
                f"{count} axes, one for the sum and one per component",
                f"{len(given)}",
                "Leave `ax` out, or choose components with `parts`.",
            )
        )
    return given
