"""Tables of text, and the format of the numbers in them."""

import html
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Table(NamedTuple):
    """A caption, a heading and rows of text."""

    caption: str
    heading: list[str]
    rows: list[list[str]]

    def markdown(self) -> str:
        lines = [self.heading, ["---"] * len(self.heading), *self.rows]
        body = "\n".join("| " + " | ".join(row) + " |" for row in lines)
        return f"**{self.caption}**\n\n{body}\n"

    def html(self) -> str:
        def row(cells: list[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"

        body = "".join(row(cells, "td") for cells in self.rows)
        return (
            f"<table><caption>{html.escape(self.caption)}</caption>"
            f"<thead>{row(self.heading, 'th')}</thead><tbody>{body}</tbody></table>"
        )


def mean(values: Sequence[float] | np.ndarray) -> str:
    """The mean with three decimals."""
    value = np.mean(values)
    return f"{value:.3f}" if np.isfinite(value) else "–"


def mean_and_deviation(values: Sequence[float] | np.ndarray, *, signed: bool = False) -> str:
    """The mean over seeds and, if there are several, the standard deviation."""
    values = np.asarray(values, float)
    if not np.isfinite(values).all():
        broken = (~np.isfinite(values)).sum()
        return "–" if broken == len(values) else f"diverged on {broken} of {len(values)} seeds"
    middle = f"{values.mean():+.4f}" if signed else f"{values.mean():.4f}"
    return middle if len(values) == 1 else f"{middle} ± {values.std():.4f}"


def median_and_range(values: Sequence[float], unit: str = "") -> str:
    """The median over repeats and, if there are several, the lowest and the highest value."""
    middle = f"{number(float(np.median(values)))}{unit}"
    if len(values) == 1 or not np.isfinite(values).all():
        return middle
    return f"{middle} ({number(min(values))}–{number(max(values))})"


def number(value: float) -> str:
    """A number with three significant digits."""
    if not np.isfinite(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
