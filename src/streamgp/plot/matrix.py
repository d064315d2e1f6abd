"""How well earlier batches are still predicted after later ones."""

from typing import Any

import numpy as np

from streamgp.errors import DataError, problem
from streamgp.plot import style

_MOST_WRITTEN = 12  # the largest number of rows whose numbers fit into their cells


def retention(
    scores: Any,
    *,
    name: str = "NLPD",
    annotate: bool | None = None,
    colorbar: bool = True,
    ax: Any = None,
) -> Any:
    """Draw how well each batch is predicted after each step, as a matrix.

    There is one row per step and one column per batch. If the model forgets nothing, the numbers
    of a column stay the same from top to bottom.

    Args:
        scores: An array (T, T). Entry (t, b) is the score of batch b after step t. It is NaN above
            the diagonal, where batch b has not come yet.
        name: The name of the score. Lower scores are better, and are drawn lighter.
        annotate: Whether to write the numbers; by default they are written if they fit.
        colorbar: Whether to draw a colour bar. It takes some of the space of `ax`.
        ax: Matplotlib axes; by default those of a new figure.

    Returns:
        The axes.

    Raises:
        DataError: If the scores are not a square array with at least one number.
        ImportError: If matplotlib is missing.
    """
    values = np.asarray(scores, float)
    if values.ndim != 2 or values.shape[0] != values.shape[1] or not np.isfinite(values).any():
        raise DataError(
            problem(
                "scores of shape (T, T), NaN above the diagonal",
                f"shape {values.shape}",
                "Give one row per step and one column per batch.",
            )
        )
    ax = style.axes(ax)
    size = len(values)
    image = ax.imshow(values, cmap="Blues", aspect="equal")
    # The darkest colour is light enough for the numbers on it to be read.
    low, high = np.nanmin(values), np.nanmax(values)
    image.set_clim(low, low + 1.25 * max(high - low, 1e-12))
    if size <= _MOST_WRITTEN if annotate is None else annotate:
        _write(ax, values, image)
    if colorbar:
        bar = ax.figure.colorbar(image, ax=ax, label=name, pad=0.02)
        bar.ax.set_ylim(low, max(high, low + 1e-12))
        bar.outline.set_visible(False)
    every = np.arange(0, size, max(1, -(-size // 15)))
    ax.set_xticks(every, every + 1)
    ax.set_yticks(every, every + 1)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    style.label(ax, "batch", "after step")
    return ax


def _write(ax: Any, values: np.ndarray, image: Any) -> None:
    for (t, batch), score in np.ndenumerate(values):
        if np.isfinite(score):
            dark = image.norm(score) > 0.6
            ax.text(
                batch, t, f"{score:.2f}", ha="center", va="center", fontsize=8,
                color="white" if dark else style.INK,
            )  # fmt: skip
