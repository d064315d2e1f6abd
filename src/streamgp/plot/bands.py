"""A prediction along one input: a line and the interval around it."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

from streamgp.data.axes import Axis
from streamgp.data.schema import read_inputs
from streamgp.errors import DataError, problem
from streamgp.likelihoods.support import Boolean
from streamgp.plot import style
from streamgp.plot.shown import axis_label
from streamgp.prediction.checks import check_probability
from streamgp.prediction.prediction import Prediction

# The height at which an observation's dot is drawn, from its input and its value.
Height = Callable[[np.ndarray, np.ndarray], np.ndarray]


def band(
    prediction: Prediction,
    x: Any,
    *,
    name: str = "y",
    level: float = 0.95,
    color: Any = style.MODEL,
    ax: Any = None,
) -> Any:
    """Draw a prediction over a single input: its mean and a central interval.

    - Numbers: the interval contains a new observation with probability `level`. The interval of
      counts has steps.
    - Yes or no: the line is the probability of yes. The interval shows how uncertain the model is
      about that probability.
    - Classes and grades: the probabilities, stacked.

    Args:
        prediction: What `predict` returned.
        x: The inputs to show along the axis, one per row of the prediction: numbers or times.
        name: The name of the channel, for the vertical axis.
        level: The probability of the interval.
        color: The colour of the line and the interval. Classes have colours of their own.
        ax: Matplotlib axes; by default those of a new figure.

    Returns:
        The axes.

    Raises:
        DataError: If `x` is not one input per row of the prediction.
        ImportError: If matplotlib is missing.

    Examples:
        >>> import numpy as np, streamgp as sgp
        >>> model = sgp.ContinualGP(sgp.Gaussian(), learning=None)
        >>> report = model.update([0.0, 1.0, 2.0], [1.0, 3.0, 2.0])
        >>> dates = np.datetime64("2024-01-01", "h") + np.arange(3)
        >>> ax = sgp.plot.band(model.predict([0.5, 1.0, 1.5]), dates, name="load")
        >>> ax.get_ylabel()
        'load'
    """
    shown, axis = _along(x, len(prediction))
    check_probability(level)
    ax = style.axes(ax)
    draw(ax, prediction, shown, level, color)
    style.label(ax, axis_label(axis, "x"), axis_name(prediction, name))
    return ax


def draw(ax: Any, prediction: Prediction, x: np.ndarray, level: float, color: Any) -> Height:
    """Draw a prediction, and return the function that gives the heights of observations."""
    if style.is_dates(x):
        style.short_dates(ax.xaxis)
    order = np.argsort(x)
    if has_classes(prediction):
        return _stack(ax, prediction, x, order)
    middle, low, high, step = _interval(prediction, level)
    ax.fill_between(
        x[order], low[order], high[order], step=step, color=color,
        alpha=style.opacity(level), linewidth=0, label=f"{100 * level:g}% interval",
    )  # fmt: skip
    ax.plot(x[order], middle[order], color=color, linewidth=1.5, label="mean")
    if is_binary(prediction):
        ax.set_ylim(-0.06, 1.06)
        ax.set_yticks(np.linspace(0, 1, 5))
    ax.margins(x=0)
    return lambda _, y: y


def fan(
    ax: Any,
    prediction: Prediction,
    x: np.ndarray,
    levels: Sequence[float],
    color: Any,
    *,
    calibrated: bool,
) -> Height:
    """Draw the median and several intervals, the widest first.

    What lies behind a band shines through, so that it is drawn fainter than it looks. The legend is
    given an empty area of each band's looks.
    """
    behind = 0.0
    for level in levels:
        _, low, high, step = _interval(prediction, level, calibrated=calibrated)
        looks = style.opacity(level)
        own = 1 - (1 - looks) / (1 - behind)
        ax.fill_between(x, low, high, step=step, color=color, alpha=own, linewidth=0)
        ax.fill([], [], color=color, alpha=looks, linewidth=0, label=f"{100 * level:g}%")
        behind = looks
    middle = prediction.mean if is_binary(prediction) else prediction.quantile(0.5)
    what = "probability" if is_binary(prediction) else "median"
    ax.plot(x, middle, color=color, linewidth=1.5, label=what)
    return lambda _, y: y


def has_classes(prediction: Prediction) -> bool:
    """Whether the observations are classes or grades, and not just yes or no."""
    return prediction.likelihood.classes > 0 and not is_binary(prediction)


def is_binary(prediction: Prediction) -> bool:
    """Whether the observations are yes or no."""
    return isinstance(prediction.likelihood.support, Boolean)


def class_names(prediction: Prediction) -> tuple[str, ...]:
    """The names of the classes in the picture, if their shares are stacked."""
    return tuple(map(str, prediction.classes)) if has_classes(prediction) else ()


def axis_name(prediction: Prediction, name: str) -> str:
    """The name of the channel, or, if the picture shows a probability, P(name)."""
    return f"P({name})" if is_binary(prediction) or has_classes(prediction) else name


def _along(x: Any, rows: int) -> tuple[np.ndarray, Axis]:
    """The inputs as one column, as clocks show them if they are times; and what they are."""
    numbers, _, axes = read_inputs(x, (), "the picture")
    if numbers.shape != (rows, 1):
        raise DataError(
            problem(
                f"{rows} inputs to draw along, one per row of the prediction",
                f"shape {numbers.shape}",
                "Give the one input that changes along the axis.",
            )
        )
    return axes[0].on_clock(numbers[:, 0]), axes[0]


def _interval(
    prediction: Prediction, level: float, *, calibrated: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray, str | None]:
    """The middle, the lower end, the upper end, and how matplotlib joins the ends."""
    if is_binary(prediction) and prediction.likelihood.latents == 1:
        low, high = (_probability_at(prediction, side * level) for side in (-1, 1))
        return prediction.mean, np.minimum(low, high), np.maximum(low, high), None
    low, high = prediction.interval(level, calibrated=calibrated)
    mean = prediction.mean
    if not np.isfinite(mean).all():  # a distribution with very heavy tails has no mean
        mean = prediction.quantile(0.5)
    return mean, low, high, "mid" if prediction.likelihood.support.is_discrete else None


def _probability_at(prediction: Prediction, side: float) -> Float[np.ndarray, " N"]:
    """The probability of yes if f is at its quantile (1 + side)/2.

    The interval of a new observation would show nothing: nearly everywhere it goes from 0 to 1.
    """
    deviations = ndtri(0.5 * (1 + side))
    f = prediction.latent_mean + deviations * np.sqrt(prediction.latent_variance)
    return np.asarray(prediction.likelihood.moments(np.asarray(f)[:, None])[0])


def _stack(ax: Any, prediction: Prediction, x: np.ndarray, order: np.ndarray) -> Height:
    shares = prediction.probabilities[order]
    tops = np.cumsum(shares, axis=1)
    edges = np.concatenate([np.zeros((len(x), 1)), tops / tops[:, -1:]], axis=1)
    colors = style.class_colors(prediction.likelihood, shares.shape[1])
    for k, color in enumerate(colors):
        ax.fill_between(
            x[order], edges[:, k], edges[:, k + 1], facecolor=style.paler(color),
            edgecolor="white", linewidth=0.8, label=str(prediction.classes[k]),
        )  # fmt: skip
    ax.set_ylim(0, 1)
    ax.margins(x=0)
    style.legend_beside(ax, turned=True)
    at = style.as_numbers(x[order])

    def height(where: np.ndarray, y: np.ndarray) -> np.ndarray:
        """A height within the share of the class. If the shares are right, dots spread evenly."""
        spread = np.arange(1, len(y) + 1) * 0.618034 % 1
        ends = np.stack([np.interp(style.as_numbers(where), at, edge) for edge in edges.T])
        k, row = y.astype(int), np.arange(len(y))
        return ends[k, row] + (0.1 + 0.8 * spread) * (ends[k + 1, row] - ends[k, row])

    return height
