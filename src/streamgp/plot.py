"""Pictures of a model. Needs matplotlib (`pip install streamgp[plot]`)."""

from typing import Any

import numpy as np

from streamgp.likelihoods import Categorical
from streamgp.model import ContinualGP

_NEW, _OLD, _INDUCING = "tab:red", "tab:blue", "0.25"


def channel(
    model: ContinualGP,
    name: str | None = None,
    *,
    x: Any = None,
    data: tuple[Any, Any] | None = None,
    new_from: Any = None,
    level: float = 0.95,
    ax: Any = None,
) -> Any:
    """One channel over a single input: mean, interval, observations and inducing points.

    Args:
        model: a model with one input column.
        name: the channel; may be left out where there is only one.
        x: where to draw; by default the span of the inducing points, and a little more.
        data: observations (x, y) to show as dots.
        new_from: the border between old ground (blue) and new ground (red).
        level: the probability of the band, that of a new observation.
        ax: matplotlib axes; by default the current ones.

    Returns:
        The axes.
    """
    import matplotlib.pyplot as plt

    ax = plt.gca() if ax is None else ax
    name = model.channels[0] if name is None else name
    prediction = model.predict(_grid(model) if x is None else x, name)
    grid = prediction.x
    if isinstance(prediction.likelihood, Categorical):
        for label, p in zip(prediction.classes, prediction.probabilities.T, strict=True):
            ax.plot(grid, p, label=label if isinstance(label, str) else f"class {label}")
    else:
        low, high = prediction.interval(level)
        old = np.ones(len(grid), bool) if new_from is None else grid <= new_from
        for rows, color in [(r, color) for r, color in ((old, _OLD), (~old, _NEW)) if r.any()]:
            ax.fill_between(grid[rows], low[rows], high[rows], color=color, alpha=0.2, lw=0)
            ax.plot(grid[rows], prediction.mean[rows], color=color, lw=1.5)
    if data is not None:
        _dots(ax, np.asarray(data[0]), np.asarray(data[1]), new_from)
    if new_from is not None:
        ax.axvline(new_from, color="hotpink", lw=1)
    for q, points in enumerate(model.inducing_points):
        height = -0.03 - 0.025 * q  # below the axis, a row a latent function
        places = _on_axis(model, points[:, 0])
        ax.plot(
            places, np.full(len(points), height), "x", color=_INDUCING, ms=3, mew=0.8,
            transform=ax.get_xaxis_transform(), clip_on=False,
        )  # fmt: skip
    ax.tick_params(axis="x", pad=6 + 4 * len(model.inducing_points))
    ax.set_ylabel(name)
    ax.margins(x=0.01)
    return ax


def _grid(model: ContinualGP) -> np.ndarray:
    points = np.concatenate(model.inducing_points)[:, 0]
    reach = 0.02 * np.ptp(points)
    return _on_axis(model, np.linspace(points.min() - reach, points.max() + reach, 400))


def _on_axis(model: ContinualGP, numbers: np.ndarray) -> np.ndarray:
    """The model's numbers as times, where its inputs are times."""
    return model.axes[0].values(numbers)


def _dots(ax: Any, x: np.ndarray, y: np.ndarray, new_from: Any) -> None:
    old = np.ones(len(x), bool) if new_from is None else x <= new_from
    ax.plot(x[old], y[old], ".", color=_OLD, ms=3, alpha=0.5)
    ax.plot(x[~old], y[~old], ".", color=_NEW, ms=3, alpha=0.7)
