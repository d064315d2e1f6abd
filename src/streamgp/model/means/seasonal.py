"""A season: a pattern that repeats itself after a known period."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from streamgp.data import durations
from streamgp.data.axes import Axis
from streamgp.data.spacing import in_words, least_step, spacing
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

LEAST = 2  # rows that a period needs at least, or else a longer one looks the same
_SLACK = 0.05  # of the period: rows that are even up to that never show the rest of it
_ROUNDING = 1e-9  # relative


@storable
@dataclasses.dataclass(frozen=True)
class Seasonal(Mean):
    """A pattern that repeats itself: sines and cosines of a period and of its parts.

    Args:
        period: A positive number in the units of the inputs or, if inputs are times, a duration:
            text such as "7D", "365.25D", "12h" or "30min", a timedelta, or a number of days. It
            is at least twice the spacing of evenly spaced rows; their first few tell.
        harmonics: How many pairs of sine and cosine there are. Pair k has the period over k. More
            of them make room for sharper patterns.
        spread: The prior standard deviation of the first pair's weights, in units of the latent
            parameter; positive. That of pair k is a k-th of it. By default it is the standard
            deviation of the channel's first data, and 1 for latent parameters behind a logarithm
            or a logit.
        on: The input column, by name or number. By default the first that holds times or, without
            times, the first.

    Raises:
        ConfigurationError: If the period is no positive number or duration, or another argument
            is out of range.

    Examples:
        >>> import numpy as np, streamgp as sgp
        >>> month = np.arange(96.0)
        >>> sales = 50 + 8 * np.cos(2 * np.pi * month / 12)
        >>> model = sgp.ContinualGP(sgp.Gaussian(), mean=sgp.Constant() + sgp.Seasonal(12))
        >>> report = model.update(month, sales)
        >>> np.round(model.predict([120.0, 126.0]).mean)
        array([58., 42.])
    """

    period: Any
    harmonics: int = 6
    spread: float | None = None
    on: int | str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "period", _plain(self.period))
        check_count(self.harmonics, 1, "harmonics")
        check_spread(self.spread)

    def __call__(self, x: Float[np.ndarray, "N P"]) -> Float[np.ndarray, "N B"]:
        if isinstance(self.period, str):
            raise not_started(self)
        # The remainder is exact, so that angles keep their digits far from zero.
        turns = np.mod(column(x, self.on, self), self.period) / self.period
        angles = 2 * np.pi * turns[:, None] * np.arange(1, self.harmonics + 1)
        return np.concatenate([np.cos(angles), np.sin(angles)], axis=1)

    @property
    def spreads(self) -> tuple[Spread, ...]:
        numbers = range(1, self.harmonics + 1)
        if self.spread is None:
            return tuple(OfScale(1 / k) for k in numbers) * 2
        return tuple(self.spread / k for k in numbers) * 2

    def labels(self, axes: Sequence[Axis]) -> tuple[str, ...]:
        is_number = not isinstance(self.period, str)
        is_time = axes[column_of(self.on, axes)].is_time if axes else False
        period = f"{self.period:g}" if is_number else self.period
        if is_number and is_time:
            period = durations.rounded(self.period)
        return (f"season {period}",) * self.size

    def shortest_waves(self, width: int) -> Float[np.ndarray, " P"]:
        waves = np.full(width, np.inf)
        waves[0 if self.on is None else self.on] = self.period / self.harmonics
        return waves

    def started(self, x: Float[np.ndarray, "N P"], axes: Sequence[Axis]) -> Mean:
        on = column_of(self.on, axes)
        if isinstance(self.period, str) and not axes[on].is_time:
            raise ConfigurationError(
                problem(
                    "a period in the units of the inputs, which are numbers",
                    repr(self.period),
                    "Give a number such as `Seasonal(12)`, or give inputs as times.",
                )
            )
        is_text = isinstance(self.period, str)
        period = durations.days(self.period) if is_text else self.period
        return dataclasses.replace(self, period=period, on=on)

    def check_rows(self, x: Float[np.ndarray, " N"], axis: Axis) -> None:
        """Raise where no rows that are spaced like these can show the pattern.

        Args:
            x: The input column that it is a function of, of some rows.
            axis: What the column is.

        Raises:
            ConfigurationError: If the rows are evenly spaced, and less than two to the period.
        """
        is_text = isinstance(self.period, str)
        if is_text and not axis.is_time:
            return  # `started` says so
        period = durations.days(self.period) if is_text else self.period
        if period >= LEAST * least_step(x):
            return
        step = spacing(x, axis, _SLACK * period)
        if step is not None and period < LEAST * step * (1 - _ROUNDING):
            raise self._too_short(step, is_time=axis.is_time)

    def _too_short(self, step: float, *, is_time: bool) -> ConfigurationError:
        apart, unit = in_words(step, is_time=is_time), " days" if is_time else ""
        period = self.period if isinstance(self.period, str) else f"{self.period:g}{unit}"
        period = period.removesuffix("s") if self.period == 1 else period
        remedy = (
            "Rows so far apart cannot show it: leave it out, or begin with rows that are closer."
        )
        if not isinstance(self.period, str) and self.period >= LEAST:
            meant = self.period * step
            text = f'"{durations.rounded(meant)}"' if is_time else f"{meant:.6g}"
            remedy = (
                f"{self.period:g} steps of {apart} are about {meant:.6g}{unit}: if you meant "
                f"these, say `seasons=[{text}]`. A number is a period in "
                f"{'days' if is_time else 'the units of the inputs'}, and not in rows."
            )
        return ConfigurationError(
            problem(
                f"a season at least twice as long as the spacing of the rows, which is {apart}",
                f"one of {period}",
                remedy,
            )
        )


def _plain(period: Any) -> float | str:
    """A period as a number, or as text that is known to be a duration."""
    if durations.is_duration(period):
        text = period if isinstance(period, str) else durations.as_text(period)
        durations.days(text)
        return text
    is_number = isinstance(period, int | float | np.number) and not isinstance(period, bool)
    if not (is_number and np.isfinite(period) and period > 0):
        raise ConfigurationError(
            problem(
                'a period as a positive number or a duration such as "7D"',
                repr(period),
                "A list of periods goes to `seasons=`; `suggest_periods` finds some.",
            )
        )
    return float(period)
