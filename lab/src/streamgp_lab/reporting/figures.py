"""What all figures share: a grid of panels, limits that ignore outliers, and files."""

from pathlib import Path
from typing import Any

import numpy as np

from streamgp.plot.style import pyplot


def grid(rows: int, columns: int, width: float, height: float) -> Any:
    """A figure and its panels, each of that size in inches."""
    import matplotlib

    matplotlib.use("Agg")  # draws without a display
    return pyplot().subplots(
        rows, columns, figsize=(width * columns, height * rows), squeeze=False,
        layout="constrained",
    )  # fmt: skip


def limit_height(ax: Any) -> int:
    """Cut off very high values, which would flatten the others, and return how many there are."""
    values = np.concatenate([line.get_ydata() for line in ax.lines] or [np.zeros(1)]).astype(float)
    values = values[np.isfinite(values)]
    if not len(values):
        return 0
    low, middle = values.min(), np.median(values)
    top = min(values.max(), middle + 5 * max(middle - low, 0.02))
    ax.set_ylim(low - 0.1 * (top - low) - 1e-3, top + 0.1 * (top - low) + 1e-3)
    return int(np.sum(values > top))


def save(figure: Any, folder: Path, name: str) -> str:
    """Write a PNG and an SVG file, and return the name of the PNG file."""
    for kind in ("png", "svg"):
        figure.savefig(folder / f"{name}.{kind}", dpi=110)
    pyplot().close(figure)
    return f"{name}.png"
