"""Whether predictions are calibrated: coverage, probability transforms, reliability."""

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
    """`scipy.stats`, imported when it is needed, because the import takes most of a second."""
    from scipy import stats

    return stats


def calibration(prediction: Prediction, y: Any, *, bins: int = 10, ax: Any = None) -> Any:
    """Draw how often things happened against how probable they were. Ideal is the diagonal.

    - Numbers: the share of observations within the central interval of each level. If the line is
      below the diagonal, the intervals are too narrow. The line of a perfect model stays within the
      grey area with probability 95% at each level.
    - Classes, yes or no, grades: inputs are grouped by the predicted probability of a class. Each
      dot shows how often the class was observed in one group, with a 95% interval.

    Args:
        prediction: What `predict` returned.
        y: Observations that were not learned, one per row of the prediction.
        bins: The largest number of groups of probabilities.
        ax: Matplotlib axes; by default those of a new figure.

    Returns:
        The axes.

    Raises:
        DataError: If there are no observations, or they do not fit the prediction.
        ImportError: If matplotlib is missing.
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
        style.legend_in_row(ax)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    return ax


def pit(prediction: Prediction, y: Any, *, bins: int = 10, ax: Any = None) -> Any:
    """Draw a histogram of the probability transform P(Y ≤ y) of observations.

    The histogram is flat if the predictions are right. It is low in the middle if they are too
    narrow, high in the middle if they are too wide, and slanted if they are too high or too low.
    The bars of a perfect model stay between the dotted lines with probability 95% each.

    Args:
        prediction: What `predict` returned.
        y: Observations that were not learned, one per row of the prediction.
        bins: The number of bars.
        ax: Matplotlib axes; by default those of a new figure.

    Returns:
        The axes.

    Raises:
        DataError: If there are no observations, they do not fit the prediction, or they are classes
            without an order.
        ImportError: If matplotlib is missing.
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
    looks = (1, "--", "ideal"), *((limit, ":", "chance") for limit in chance)
    for height, dash, text in looks:
        ax.axhline(height, color=style.PAST, linewidth=1, linestyle=dash, label=text)
    style.legend_in_row(ax)
    ax.set_xlim(0, 1)
    style.label(ax, "probability transform P(Y ≤ y)", "density")
    return ax


def _observations(prediction: Prediction, y: Any) -> Float[np.ndarray, " N"]:
    if prediction.likelihood.observation_dim > 1:
        raise DataError(
            problem(
                "observations of one number each",
                type(prediction.likelihood).__name__,
                "Compare its shares one by one.",
            )
        )
    values = prediction.values(y)
    if not len(values):
        raise DataError(problem("at least one observation", "none", "Hold some observations out."))
    return values


def _transform(prediction: Prediction, y: Float[np.ndarray, " N"]) -> tuple[np.ndarray, np.ndarray]:
    """P(Y < y) and P(Y ≤ y). They are equal if Y is not discrete."""
    upper = prediction.cdf(y)
    if not prediction.likelihood.support.is_discrete:
        return upper, upper
    return np.clip(upper - np.exp(prediction.log_density(y)), 0, 1), upper


def _within(
    low: Float[np.ndarray, " N"], high: Float[np.ndarray, " N"], a: float, b: float
) -> float:
    """The share of transforms in [a, b), or in [a, 1] if b is 1.

    The transform of a discrete observation is spread evenly from `low` to `high`, which needs no
    random numbers (Czado, Gneiting and Held, 2009).
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
        _points(ax, probabilities[:, k], y == k, bins, color, str(prediction.classes[k]))
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
    # Jeffreys intervals.
    ends = _stats().beta.ppf([[0.025], [0.975]], hits + 0.5, size[some] - hits + 0.5)
    ax.vlines(predicted, *ends, color=color, alpha=0.5, linewidth=1.5)
    ax.plot(predicted, share, ".-", color=color, markersize=8, linewidth=1.2, label=label)
