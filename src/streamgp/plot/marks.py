"""What is drawn on top of a prediction: observations, the ground they cover, inducing points."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.errors import DataError, problem
from streamgp.plot import style
from streamgp.plot.bands import Height

_TICK = 6.0  # points: the height of a row of inducing points


class Observed(NamedTuple):
    """Observations to show, or, where `y` is None, the ends of a stretch of the input."""

    x: np.ndarray
    y: np.ndarray | None


def observed(data: Any, width: int, what: str) -> Observed | None:
    """What a caller gave as `what`: a pair (x, y); for one input's past, also (low, high)."""
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
                f"{what}=(x, y) with {width} input column(s) and one observation a row",
                f"shapes {x.shape} and {y.shape}",
                "Give as many observations as inputs.",
            )
        )
    return Observed(x, y) if len(x) else None


def along(ax: Any, data: Observed | None, past: Observed | None, height: Height) -> None:
    """Dots over a single input. Where there is a past, what is new gets a ground of its own."""
    for seen, color, what in ((past, style.PAST, "past"), (data, style.NEW, "new")):
        if seen is None:
            continue
        if seen.y is None or (past is not None and what == "new"):
            _ground(ax, seen.x, color, what)
        if seen.y is not None:
            few = len(seen.x) < 200
            ax.plot(
                seen.x, height(seen.x, seen.y), "o", color=color, markersize=3.6 if few else 2.6,
                markeredgewidth=0.3, markeredgecolor="white", alpha=0.9 if few else 0.7,
                label=f"{what} data", zorder=3,
            )  # fmt: skip


def _ground(ax: Any, x: np.ndarray, color: Any, what: str) -> None:
    """A faint stretch of colour, and a bar above it that shows where shares are stacked too."""
    ends = [x.min(), x.max()]
    ax.axvspan(*ends, color=color, alpha=0.07, linewidth=0, zorder=0)
    ax.plot(
        ends, [1, 1], transform=ax.get_xaxis_transform(), color=color, linewidth=4,
        solid_capstyle="butt", clip_on=False, zorder=3, label=f"{what} ground",
    )  # fmt: skip


def ticks(ax: Any, points: Sequence[np.ndarray], *, room: bool) -> None:
    """Inducing points along the bottom, a row a latent function; `room` keeps it free for them."""
    from matplotlib.transforms import ScaledTranslation

    for q, of_latent in enumerate(points):
        up = ScaledTranslation(0, (_TICK * (q + 0.75)) / 72, ax.figure.dpi_scale_trans)
        ax.plot(
            of_latent[:, 0], np.zeros(len(of_latent)), "|", color=style.INK, markersize=_TICK - 1,
            markeredgewidth=0.9, alpha=0.7, transform=ax.get_xaxis_transform() + up,
            label="inducing points" if q == 0 else None, zorder=4,
        )  # fmt: skip
    if room:
        low, high = ax.get_ylim()
        share = _TICK * len(points) / (72 * ax.bbox.height / ax.figure.dpi)
        ax.set_ylim(low - (high - low) * min(share, 0.5), high, auto=None)


def crosses(ax: Any, points: Sequence[Float[np.ndarray, "_ 2"]]) -> None:
    """Inducing points in the plane."""
    together = np.unique(np.concatenate(points), axis=0)
    ax.plot(
        *together.T, "+", color=style.INK, markersize=6, markeredgewidth=1.0,
        label="inducing points", zorder=4,
    )  # fmt: skip
