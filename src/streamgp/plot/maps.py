"""A prediction over two inputs, as a map."""

from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Int

from streamgp.errors import ConfigurationError, DataError, problem
from streamgp.plot import style
from streamgp.plot.bands import has_classes, is_binary
from streamgp.plot.marks import Observed
from streamgp.prediction.prediction import Prediction

Value = Literal["mean", "std"]
_VALUES, _DOUBT = "viridis", "Oranges"  # dots and crosses are seen on both
_NEUTRAL = "0.7"  # the colour of dots that stand for any value


def surface(
    prediction: Prediction,
    first: Any,
    second: Any,
    *,
    name: str = "y",
    value: Value = "mean",
    colorbar: bool = True,
    ax: Any = None,
) -> Any:
    """Draw a prediction on a grid of two inputs.

    - Numbers: the mean of a new observation, or its standard deviation with `value="std"`.
    - Yes or no: the probability of yes, with a line where it is one half.
    - Classes and grades: the most probable one. The colour is paler where it is less probable, and
      lines separate the classes.

    With `value="std"`, the map shows how uncertain that is: the standard deviation of a new
    observation, that of the probability of yes, or the probability of another class.

    Args:
        prediction: What `predict` returned at the A × B points of the grid. The first input
            changes fastest: `np.stack(np.meshgrid(first, second), -1).reshape(-1, 2)`.
        first: A increasing values of the first input, along the horizontal axis: numbers or times.
        second: B increasing values of the second input, along the vertical axis, likewise.
        name: The name of the channel.
        value: Whether to show the prediction or its uncertainty.
        colorbar: Whether to draw a colour bar. It takes some of the space of `ax`.
        ax: Matplotlib axes; by default those of a new figure.

    Returns:
        The axes.

    Raises:
        DataError: If the prediction is not at the points of the grid.
        ConfigurationError: If `value` is something else.
        ImportError: If matplotlib is missing.
    """
    sides = np.asarray(first), np.asarray(second)
    grid = style.as_numbers(sides[0]), style.as_numbers(sides[1])
    if len(grid[0]) * len(grid[1]) != len(prediction):
        raise DataError(
            problem(
                f"a prediction at {len(grid[0])} × {len(grid[1])} inputs",
                f"one at {len(prediction)}",
                "Predict at every pair of the two inputs.",
            )
        )
    if value not in ("mean", "std"):
        raise ConfigurationError(problem("value 'mean' or 'std'", repr(value), "Choose one."))
    ax = style.axes(ax)
    if value == "std":
        _doubt(ax, prediction, grid, name, colorbar)
    elif has_classes(prediction):
        _classes(ax, prediction, grid, name)
    elif is_binary(prediction):
        _halves(ax, prediction, grid, name, colorbar)
    else:
        _numbers(ax, prediction, grid, name, colorbar)
    for side, axis in zip(sides, (ax.xaxis, ax.yaxis), strict=True):
        if style.is_dates(side):
            style.short_dates(axis)
    style.label(ax, "x₀", "x₁")
    return ax


def on_map(
    ax: Any, prediction: Prediction, value: Value, data: Observed | None, past: Observed | None
) -> None:
    """Draw observations. Those of the past are smaller and have a white rim.

    On a map of values they have the colours of the map.
    """
    for seen, size, edge, what in (
        (past, 14, "white", "past data"),
        (data, 26, style.INK, "new data" if past is not None else "data"),
    ):
        if seen is None or seen.y is None:
            continue
        colors = _of_values(ax, prediction, seen.y) if value == "mean" else {"c": _NEUTRAL}
        ax.scatter(*seen.x.T, s=size, edgecolors=edge, linewidths=0.6, zorder=3, **colors)
        # An empty line for the legend, in a neutral colour. White would not be seen there.
        ax.plot(
            [], [], "o", color=_NEUTRAL, markersize=size**0.5, markeredgewidth=0.6,
            markeredgecolor=edge, label=what,
        )  # fmt: skip


def _of_values(ax: Any, prediction: Prediction, y: np.ndarray) -> dict[str, Any]:
    """The colours of observations on the map that is on the axes."""
    if has_classes(prediction) or is_binary(prediction):
        return _class_dots(prediction, y.astype(int))
    return {"c": y, "norm": ax.collections[0].norm, "cmap": _VALUES}


def _class_dots(prediction: Prediction, y: Int[np.ndarray, " N"]) -> dict[str, Any]:
    colors = style.class_colors(prediction.likelihood, prediction.probabilities.shape[1])
    return {"c": [colors[k] for k in y]}


def _numbers(ax: Any, prediction: Prediction, grid: tuple, name: str, colorbar: bool) -> None:
    mesh = _mesh(ax, grid, _on(grid, prediction.mean), cmap=_VALUES)
    if colorbar:
        _bar(ax, mesh, name)


def _doubt(ax: Any, prediction: Prediction, grid: tuple, name: str, colorbar: bool) -> None:
    """How uncertain what the other map shows is."""
    if has_classes(prediction):
        shown = 1 - np.max(prediction.probabilities, axis=1)
        text = f"P(another {name})"
    elif is_binary(prediction):
        shown, text = np.sqrt(prediction.epistemic), f"P({name}), standard deviation"
    else:
        shown, text = prediction.std, f"{name}, standard deviation"
    mesh = _mesh(ax, grid, _on(grid, shown), cmap=_DOUBT)
    if colorbar:
        _bar(ax, mesh, text)


def _halves(ax: Any, prediction: Prediction, grid: tuple, name: str, colorbar: bool) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    no, yes = style.class_colors(prediction.likelihood, 2)
    colors = LinearSegmentedColormap.from_list("halves", [no, "#F7F7F7", yes])
    probability = _on(grid, prediction.mean)
    mesh = _mesh(ax, grid, probability, cmap=colors, vmin=0, vmax=1, alpha=0.8)
    _border(ax, grid, probability - 0.5)
    if colorbar:
        _bar(ax, mesh, f"P({name})")


def _classes(ax: Any, prediction: Prediction, grid: tuple, name: str) -> None:
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Patch

    probabilities = prediction.probabilities
    count = probabilities.shape[1]
    colors = np.array([to_rgb(c) for c in style.class_colors(prediction.likelihood, count)])
    best = np.argmax(probabilities, axis=1)
    # 0 if all classes are equally probable, 1 if one of them is certain.
    sure = (np.max(probabilities, axis=1) * count - 1) / (count - 1)
    ink = (0.15 + 0.65 * sure)[:, None]
    _mesh(ax, grid, (1 - ink + ink * colors[best]).reshape(*_shape(grid), 3))
    for k in np.unique(best)[1:]:  # the class's probability less that of the best other class
        lead = probabilities[:, k] - np.max(np.delete(probabilities, k, axis=1), axis=1)
        _border(ax, grid, _on(grid, lead))
    pairs = zip(colors, prediction.classes, strict=True)
    patches = [Patch(color=c, alpha=0.8, label=str(label)) for c, label in pairs]
    ax.legend(
        handles=patches, title=name, loc="upper left", bbox_to_anchor=(1.0, 1.02),
        frameon=False, handlelength=1.0, borderaxespad=0.4,
    )  # fmt: skip


def _mesh(ax: Any, grid: tuple, values: np.ndarray, **options: Any) -> Any:
    return ax.pcolormesh(*grid, values, shading="nearest", rasterized=True, zorder=0, **options)


def _border(ax: Any, grid: tuple, difference: Float[np.ndarray, "B A"]) -> None:
    """Draw a line where the difference changes sign."""
    if np.min(difference) < 0 < np.max(difference):
        ax.contour(*grid, difference, [0.0], colors=style.INK, linewidths=1.0, zorder=2)


def _bar(ax: Any, mesh: Any, text: str) -> None:
    bar = ax.figure.colorbar(mesh, ax=ax, label=text, pad=0.02)
    bar.outline.set_visible(False)


def _shape(grid: tuple) -> tuple[int, int]:
    return len(grid[1]), len(grid[0])


def _on(grid: tuple, values: np.ndarray) -> Float[np.ndarray, "B A"]:
    return values.reshape(_shape(grid))
