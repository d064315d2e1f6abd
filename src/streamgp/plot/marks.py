"""Marks on top of a prediction: observations, the range that they cover, inducing points."""

import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.data import columns
from streamgp.errors import DataError, problem
from streamgp.plot import style
from streamgp.plot.bands import Height
from streamgp.prediction.prediction import Prediction

_NOTE = 8.0  # the size of a note's letters, in typographic points
_MOST_TICKS = 400  # in a row
_TICK = 6.0  # the height of a row of inducing points, in typographic points


class Observed(NamedTuple):
    """Observations to show, or only the range of inputs that they cover.

    Attributes:
        x: Inputs; if `y` is None, the two ends of the range.
        y: Observations, or None.
    """

    x: np.ndarray
    y: np.ndarray | None


def observed(data: Any, width: int, what: str) -> Observed | None:
    """Check what a caller gave as `data` or `past`.

    Args:
        data: A pair (x, y). The past of a single input may also be a pair of numbers (low, high).
        width: The number of input columns.
        what: The name of the argument, "data" or "past".

    Returns:
        The observations; None if there are none.

    Raises:
        DataError: If it is not such a pair.
    """
    if data is None:
        return None
    if not (isinstance(data, tuple | list) and len(data) == 2):
        raise DataError(problem(f"{what}=(x, y)", type(data).__name__, "Give a pair of arrays."))
    x, y = (np.asarray(part) for part in data)
    if x.ndim == y.ndim == 0 and width == 1 and what == "past":
        return Observed(np.stack([x, y]), None)
    x = x[:, 0] if x.ndim == 2 and width == x.shape[1] == 1 else x
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if y.ndim != 1 or x.shape != (y.shape if width == 1 else (*y.shape, width)):
        raise DataError(
            problem(
                f"{what}=(x, y) with {width} input column(s) and one observation per row",
                f"shapes {x.shape} and {y.shape}",
                "Give as many observations as inputs.",
            )
        )
    return Observed(x, y) if len(x) else None


def drawable(prediction: Prediction, *seen: Observed | None) -> list[Observed | None]:
    """Observations as numbers that can be drawn: classes by the numbers of their labels.

    Args:
        prediction: The prediction of their channel.
        *seen: Observations to show.

    Returns:
        The observations. Those of classes are without the missing ones, or None if none are left.

    Raises:
        DataError: If they are several numbers each, which no dot shows, or one is no class.
    """
    is_several = prediction.likelihood.observation_dim > 1
    if is_several and any(part is not None and part.y is not None for part in seen):
        raise DataError(
            problem(
                "no data on a picture of several shares",
                f"observations of {type(prediction.likelihood).__name__}",
                "Leave `data` and `past` out.",
            )
        )
    return [_numbered(part, prediction) for part in seen]


def _numbered(seen: Observed | None, prediction: Prediction) -> Observed | None:
    if seen is None or seen.y is None or not prediction.likelihood.classes:
        return seen
    there = ~columns.read(seen.y, "observations").missing
    y = prediction.values(seen.y[there], rows=int(there.sum()))
    return Observed(seen.x[there], y) if there.any() else None


def along(ax: Any, data: Observed | None, past: Observed | None, height: Height) -> None:
    """Draw observations over a single input. If there are past ones, the new range is shaded."""
    for seen, color, what in ((past, style.PAST, "past"), (data, style.NEW, "new")):
        if seen is None:
            continue
        if seen.y is None or (past is not None and what == "new"):
            _ground(ax, seen.x, color, what)
        dots(ax, seen, height, color, f"{what} data" if past is not None else "data")


def dots(ax: Any, seen: Observed | None, height: Height, color: Any, what: str) -> None:
    """Draw observations, if there are any, as dots."""
    if seen is None or seen.y is None:
        return
    few = len(seen.x) < 200
    ax.plot(
        seen.x, height(seen.x, seen.y), "o", color=color, markersize=3.6 if few else 2.6,
        markeredgewidth=0.3, markeredgecolor="white", alpha=0.9 if few else 0.7,
        label=what, zorder=3,
    )  # fmt: skip


def within(seen: Observed | None, low: Any, high: Any) -> Observed | None:
    """The observations over a stretch of the input, if there are any."""
    if seen is None or seen.y is None:
        return seen
    inside = (seen.x >= low) & (seen.x <= high)
    return Observed(seen.x[inside], seen.y[inside]) if inside.any() else None


def _ground(ax: Any, x: np.ndarray, color: Any, what: str) -> None:
    """Shade a range of the input, with a bar above it that stacked shares cannot hide."""
    ends = [x.min(), x.max()]
    ax.axvspan(*ends, color=color, alpha=0.07, linewidth=0, zorder=0)
    ax.plot(
        ends, [1, 1], transform=ax.get_xaxis_transform(), color=color, linewidth=4,
        solid_capstyle="butt", clip_on=False, zorder=3, label=f"{what} range",
    )  # fmt: skip


def ticks(ax: Any, points: Sequence[np.ndarray], what: str, *, room: bool) -> None:
    """Draw points along the bottom, with one row of ticks per latent function.

    There is a single row if all latent functions have the same points. Of very many points only
    some are drawn.

    Args:
        ax: Matplotlib axes.
        points: The inducing points of each latent function.
        what: What they are called.
        room: Whether to lower the end of the vertical axis so that the ticks cover no data.
    """
    from matplotlib.transforms import ScaledTranslation

    if all(of_latent is points[0] or np.array_equal(of_latent, points[0]) for of_latent in points):
        points = points[:1]  # the times of a chain are those of all latent functions
    for q, of_latent in enumerate(map(_some, points)):
        up = ScaledTranslation(0, (_TICK * (q + 0.75)) / 72, ax.figure.dpi_scale_trans)
        ax.plot(
            of_latent[:, 0], np.zeros(len(of_latent)), "|", color=style.INK, markersize=_TICK - 1,
            markeredgewidth=0.9, alpha=0.7, transform=ax.get_xaxis_transform() + up,
            label=what if q == 0 else None, zorder=4,
        )  # fmt: skip
    if room:
        low, high = ax.get_ylim()
        share = _TICK * len(points) / (72 * ax.bbox.height / ax.figure.dpi)
        ax.set_ylim(low - (high - low) * min(share, 0.5), high, auto=None)


def _some(points: np.ndarray) -> np.ndarray:
    """Points along a line, or some of them at equal distances in their order if there are many."""
    if len(points) <= _MOST_TICKS:
        return points
    ordered = points[np.argsort(points[:, 0], kind="stable")]
    return ordered[np.linspace(0, len(points) - 1, _MOST_TICKS).astype(int)]


def note(ax: Any, text: str) -> None:
    """Write a text along the top, above everything that is drawn."""
    width, height = (72 * side / ax.figure.dpi for side in (ax.bbox.width, ax.bbox.height))
    lines = textwrap.wrap(text, max(int((width - 10) / (0.56 * _NOTE)), 16))
    low, high = ax.get_ylim()
    share = min(_NOTE * (1.0 + 1.5 * len(lines)) / height, 0.5)
    ax.set_ylim(low, high + (high - low) * share / (1 - share), auto=None)
    ax.annotate(
        "\n".join(lines), (0, 1), (5, -4), xycoords="axes fraction", textcoords="offset points",
        ha="left", va="top", fontsize=_NOTE, color=style.PAST, zorder=5,
    )  # fmt: skip


def crosses(ax: Any, points: Sequence[Float[np.ndarray, "_ 2"]], what: str) -> None:
    """Draw points in the plane as crosses, with a rim that shows on dark ground."""
    from matplotlib.patheffects import withStroke

    together = np.unique(np.concatenate(points), axis=0)
    ax.plot(
        *together.T, "+", color=style.INK, markersize=6, markeredgewidth=1.0,
        path_effects=[withStroke(linewidth=2.4, foreground="white")], label=what, zorder=4,
    )  # fmt: skip
