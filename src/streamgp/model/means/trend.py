"""A trend: a straight line, or one whose slope may change at some places."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from streamgp.data import windows
from streamgp.data.axes import Axis
from streamgp.errors import ConfigurationError, problem
from streamgp.model.means.base import (
    Mean,
    OfScale,
    Spread,
    check_count,
    check_spread,
    column,
    column_of,
    not_started,
)
from streamgp.registry import storable

_ROUNDING = 8 * np.finfo(float).eps


@storable
@dataclasses.dataclass(frozen=True)
class Trend(Mean):
    """A straight line, whose slope may change a little at some places.

    It has no level of its own: add a `Constant()`.

    Args:
        changes: At how many places the slope may change. They are spread evenly over the inside of
            the stretch `over`.
        over: The stretch of inputs, (begin, end), in numbers or times as the inputs are. Changes
            need it, and it should reach as far as the stream will go: after its end the slope
            stays. By default it is the stretch of the first inputs.
        spread: The prior standard deviation of how much the line rises along half of the stretch,
            in units of the latent parameter; positive. By default it is broad, as for a `Constant`.
        change_spread: The same of the rise that one change adds to half of the stretch; positive.
            By default it is the standard deviation of the channel's first data (1 for latent
            parameters behind a logarithm or a logit) over the square root of the number of
            changes. Smaller values make changes smaller.
        on: The input column, by name or number. By default the first that holds times or, without
            times, the first.

    Raises:
        ConfigurationError: If an argument is out of range, or there are changes and no stretch.

    Examples:
        >>> import numpy as np, streamgp as sgp
        >>> year = np.arange(1960.0, 2020.0)
        >>> model = sgp.ContinualGP(sgp.Gaussian(), mean=sgp.Constant() + sgp.Trend())
        >>> report = model.update(year, 315 + 1.6 * (year - 1960))
        >>> float(np.round(model.predict([2060.0]).mean[0]))
        475.0
    """

    changes: int = 0
    over: Any = None
    spread: float | None = None
    change_spread: float | None = None
    on: int | str | None = None

    def __post_init__(self) -> None:
        check_count(self.changes, 0, "changes")
        check_spread(self.spread)
        check_spread(self.change_spread, "change_spread")
        if self.over is not None:
            object.__setattr__(self, "over", _stretch(self.over))
        elif self.changes:
            raise ConfigurationError(
                problem(
                    "the stretch of inputs over which the slope may change",
                    "none",
                    "Give `over=(begin, end)`, up to where the stream will go.",
                )
            )

    def __call__(self, x: Float[np.ndarray, "N P"]) -> Float[np.ndarray, "N B"]:
        if self.over is None or isinstance(self.over[0], str):
            raise not_started(self)
        begin, end = self.over
        half, values = (end - begin) / 2, column(x, self.on, self)[:, None]
        knots = np.linspace(begin, end, self.changes + 2)[1:-1]
        line = (values - (begin + half)) / half
        return np.concatenate([line, np.maximum(values - knots, 0.0) / half], axis=1)

    @property
    def spreads(self) -> tuple[Spread, ...]:
        change: Spread = self.change_spread
        if change is None:
            change = OfScale(1 / np.sqrt(max(self.changes, 1)))
        return (self.spread, *(change,) * self.changes)

    def labels(self, axes: Sequence[Axis]) -> tuple[str, ...]:
        return ("trend",) * self.size

    def started(self, x: Float[np.ndarray, "N P"], axes: Sequence[Axis]) -> Mean:
        on = column_of(self.on, axes)
        if self.over is None:
            over = _stretch_of(x[:, on])
        else:
            over = windows.placed(self.over, axes[on], "the stretch of a trend")
        return dataclasses.replace(self, over=over, on=on)


def _stretch(over: Any) -> windows.Window:
    try:
        begin, end = over
    except (TypeError, ValueError) as error:
        raise _no_stretch(over) from error
    found = windows.window(begin, end, "the stretch of a trend", of_days=False)
    if found[0] == found[1] or not all(np.isfinite(b) for b in found if not isinstance(b, str)):
        raise _no_stretch(over)
    return found


def _no_stretch(over: Any) -> ConfigurationError:
    return ConfigurationError(
        problem(
            "a stretch (begin, end) of inputs with a length",
            repr(over),
            'Give two different numbers or times, such as `over=("2020-01-01", "2030-01-01")`.',
        )
    )


def _stretch_of(values: Float[np.ndarray, " N"]) -> tuple[float, float]:
    """From the first to the last of some inputs; of length two if all are at one place."""
    begin, end = float(np.min(values)), float(np.max(values))
    if end - begin > _ROUNDING * max(abs(begin), abs(end)):
        return begin, end
    return begin - 1.0, begin + 1.0
