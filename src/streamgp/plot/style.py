"""What all pictures share: axes, labels, legends, and colours for colour-blind people too."""

import itertools
import math
from collections.abc import Collection
from typing import Any

import numpy as np

from streamgp.errors import DataError, problem
from streamgp.likelihoods import Likelihood

# Okabe and Ito's colours.
BLUE, ORANGE, GREEN, VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
_PALETTE = (BLUE, ORANGE, GREEN, "#CC79A7", "#56B4E9", VERMILION, "#7A7A7A")
_DASHES = ("-", "--", ":", "-.")

MODEL, PAST, NEW, INK = BLUE, "0.4", VERMILION, "0.15"
_FAINTEST, _RISE = 0.2, 0.7  # the opacity of a band that holds everything, and what others add
_TALL = 8  # entries of a column that are higher than a panel
_ENTRY, _LETTER = 25.0, 5.5  # of a legend: the width without its text, and of a letter, in points


def pyplot() -> Any:
    """Import matplotlib's pyplot.

    Returns:
        The module.

    Raises:
        ImportError: If matplotlib is missing, with the command that installs it.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            problem("matplotlib for drawing", "none", "Run `pip install 'streamgp[plot]'`.")
        ) from error
    return plt


def axes(ax: Any) -> Any:
    """The axes that were given, or those of a new figure. An array of one gives its element."""
    if ax is None:
        return pyplot().subplots(layout="constrained")[1]
    if isinstance(ax, np.ndarray | list | tuple):
        if np.size(ax) != 1:
            raise DataError(
                problem("one axes to draw on", f"{np.size(ax)}", "Choose one, or draw `channels`.")
            )
        return np.ravel(np.asarray(ax, object))[0]
    return ax


def opacity(level: float) -> float:
    """How opaque the band of a level is: the narrower it is, the more."""
    return _FAINTEST + _RISE * (1 - level)


def label(ax: Any, x: str, y: str) -> None:
    """Name the axes, unless the caller has named them."""
    ax.set_xlabel(ax.get_xlabel() or x)
    ax.set_ylabel(ax.get_ylabel() or y)


def is_dates(x: np.ndarray) -> bool:
    """Whether inputs are dates."""
    return x.dtype.kind == "M"


def as_numbers(x: np.ndarray) -> np.ndarray:
    """Inputs as the numbers at which matplotlib draws them."""
    from matplotlib.dates import date2num

    return date2num(x) if is_dates(x) else x.astype(float)


def short_dates(axis: Any) -> None:
    """Write dates along a horizontal or vertical axis in few letters."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator()
    axis.set_major_locator(locator)
    axis.set_major_formatter(ConciseDateFormatter(locator))


def legend_beside(ax: Any, *, turned: bool = False) -> None:
    """Draw a legend to the right of the axes. With `turned`, the last entry comes first."""
    handles, labels = ax.get_legend_handles_labels()
    step = -1 if turned else 1
    ax.legend(
        handles[::step], labels[::step], loc="upper left", bbox_to_anchor=(1.0, 1.02),
        frameon=False, handlelength=1.2, borderaxespad=0.4,
        fontsize="medium" if len(labels) <= _TALL else "small",
    )  # fmt: skip


def legend_in_row(ax: Any, without: Collection[str] = ()) -> None:
    """Draw a legend above the axes, in one row if there is room for it.

    What has the same label stands there once. A legend that is there already stays.

    Args:
        ax: Matplotlib axes.
        without: Labels to leave out.
    """
    known: dict[str, Any] = {}
    for handle, text in zip(*ax.get_legend_handles_labels(), strict=True):
        if text not in without:
            known.setdefault(text, handle)
    if not known:
        return
    earlier = ax.get_legend()
    need = sum(_ENTRY + _LETTER * len(text) for text in known)
    rows = math.ceil(need / (72 * ax.bbox.width / ax.figure.dpi))
    ax.legend(
        known.values(), known, loc="lower right", bbox_to_anchor=(1.0, 1.0),
        ncols=math.ceil(len(known) / rows), frameon=False, borderaxespad=0.1, handlelength=1.2,
        handletextpad=0.4, columnspacing=1.0,
    )  # fmt: skip
    if earlier is not None:
        ax.add_artist(earlier)
        earlier.set_clip_box(None)  # a clipped legend would get no space in layouts


def line_styles(count: int) -> list[dict[str, Any]]:
    """Looks for a number of lines: different colours, then different dashes too."""
    pairs = itertools.islice(itertools.cycle(itertools.product(_DASHES, _PALETTE)), count)
    return [{"color": color, "linestyle": dash} for dash, color in pairs]


def paler(color: Any) -> tuple[float, ...]:
    """A paler colour that is opaque, so that nothing behind it is seen."""
    from matplotlib.colors import to_rgb

    return tuple(0.4 + 0.6 * part for part in to_rgb(color))


def class_colors(likelihood: Likelihood, count: int) -> list[Any]:
    """One colour per class. Ordered classes go from light to dark."""
    from matplotlib import colormaps

    if likelihood.ordered and likelihood.classes > 2:
        return [colormaps["YlGnBu"](0.2 + 0.7 * k / max(count - 1, 1))[:3] for k in range(count)]
    if count <= len(_PALETTE):
        return list(_PALETTE[:count])
    return [colormaps["turbo"]((k + 0.5) / count)[:3] for k in range(count)]
