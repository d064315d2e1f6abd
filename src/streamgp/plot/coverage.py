"""Do predictions say as much as they know? Coverage, probability transforms, reliability."""

import itertools
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from streamgp.errors import DataError, problem
from streamgp.plot import style
from streamgp.plot.bands import has_classes, is_binary
from streamgp.prediction.prediction import Prediction

_LEVELS = np.linspace(0.0, 1.0, 101)


def _stats() -> Any:
    """SciPy's, imported when needed: it takes most of a second."""
    from scipy import stats

    return stats


def calibration(prediction: Prediction, y: Any, *, bins: int = 10, ax: Any = None) -> Any:
    """What happened against what was predicted; on the diagonal all is well.

    - Numbers: the share of observations within the central interval of each level. Below the
      diagonal, intervals are too narrow; grey is where chance alone may take the line (95%).
    - Classes, yes or no, grades: how often a class came up among the inputs where its probability
      was about so much (of at most `bins` sorts), with 95% intervals.

    Args:
        prediction: what `predict` returned.
        y: observations that were not learned, one an input.
        bins: of the probabilities of classes.
        ax: matplotlib axes; by default the current ones.

    Returns:
        The axes.
    """
    y = _observations(prediction, y)
    ax = style.axes(ax)
    ax.plot([0, 1], [0, 1], color="0.6", linewidth=1, linestyle="--", zorder=1)
    if is_binary(prediction) or has_classes(prediction):
        _reliability(ax, prediction, y, bins)
        style.label(ax, "predicted probability", "observed share")
    else:
        _coverage(ax, prediction, y)
        style.label(ax, "level of the interval", "observed coverage")
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    return ax


def pit(prediction: Prediction, y: Any, *, bins: int = 10, ax: Any = None) -> Any:
    """Where observations fall in their predictive distributions: P(Y ≤ y), as a histogram.

    Flat if predictions are right; a bowl if they are too narrow, a hill if too wide, a slope if
    they are off to one side. Dots mark how far chance alone may take a bar (95%).
    """
    low, high = _transform(prediction, _observations(prediction, y))
    edges = np.linspace(0, 1, bins + 1)
    density = bins * np.array([_within(low, high, a, b) for a, b in itertools.pairwise(edges)])
    ax = style.axes(ax)
    ax.bar(
        edges[:-1], density, 1 / bins, align="edge", edgecolor="white",
        linewidth=1, color=style.paler(style.MODEL),
    )  # fmt: skip
    chance = _stats().binom.ppf([0.025, 0.975], len(low), 1 / bins) * bins / len(low)
    for height, dash in ((1, "--"), *((limit, ":") for limit in chance)):
        ax.axhline(height, color=style.PAST, linewidth=1, linestyle=dash)
    ax.set_xlim(0, 1)
    style.label(ax, "probability transform P(Y ≤ y)", "density")
    return ax


def _observations(prediction: Prediction, y: Any) -> Float[np.ndarray, " N"]:
    values = prediction.values(y)
    if not len(values):
        raise DataError(
            problem("observations", "none", "Predict where observations were held out.")
        )
    return values


def _transform(prediction: Prediction, y: Float[np.ndarray, " N"]) -> tuple[np.ndarray, np.ndarray]:
    """P(Y < y) and P(Y ≤ y), the same where y is not discrete."""
    upper = prediction.cdf(y)
    if not prediction.likelihood.support.is_discrete:
        return upper, upper
    return np.clip(upper - np.exp(prediction.log_density(y)), 0, 1), upper


def _within(
    low: Float[np.ndarray, " N"], high: Float[np.ndarray, " N"], a: float, b: float
) -> float:
    """The share of transforms in [a, b), or [a, 1], each spread evenly from `low` to `high`.

    So discrete observations need no random numbers (Czado, Gneiting and Held, 2009).
    """
    width = high - low
    inside = (low >= a) & ((low < b) | (b == 1))
    overlap = np.minimum(high, b) - np.maximum(low, a)
    share = np.clip(overlap, 0, None) / np.where(width > 0, width, 1)
    return float(np.mean(np.where(width > 1e-12, share, inside)))


def _coverage(ax: Any, prediction: Prediction, y: Float[np.ndarray, " N"]) -> None:
    low, high = _transform(prediction, y)
    observed = [_within(low, high, 0.5 - p / 2, 0.5 + p / 2) for p in _LEVELS]
    chance = _stats().binom.ppf([[0.025], [0.975]], len(y), _LEVELS) / len(y)
    ax.fill_between(_LEVELS, *chance, color="0.5", alpha=0.2, linewidth=0, label="chance")
    ax.plot(_LEVELS, observed, color=style.MODEL, linewidth=1.8, label="observed")


def _reliability(ax: Any, prediction: Prediction, y: Float[np.ndarray, " N"], bins: int) -> None:
    probabilities = prediction.probabilities
    count = probabilities.shape[1]
    if is_binary(prediction):
        _points(ax, probabilities[:, 1], y == 1, bins, style.MODEL, None)
        return
    for k, color in enumerate(style.class_colors(prediction.likelihood, count)):
        _points(ax, probabilities[:, k], y == k, bins, color, str(k))
    style.legend_beside(ax)


def _points(
    ax: Any,
    probability: Float[np.ndarray, " N"],
    came: Bool[np.ndarray, " N"],
    bins: int,
    color: Any,
    label: str | None,
) -> None:
    sort = np.minimum((bins * probability).astype(int), bins - 1)
    size = np.bincount(sort, minlength=bins)
    some = size > 0
    hits = np.bincount(sort, came, minlength=bins)[some]
    predicted = np.bincount(sort, probability, minlength=bins)[some] / size[some]
    share = hits / size[some]
    ends = _stats().beta.ppf([[0.025], [0.975]], hits + 0.5, size[some] - hits + 0.5)  # Jeffreys'
    ax.vlines(predicted, *ends, color=color, alpha=0.5, linewidth=1.5)
    ax.plot(predicted, share, ".-", color=color, markersize=8, linewidth=1.2, label=label)
