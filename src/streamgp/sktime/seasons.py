"""Seasons of a series: durations as they are given, and numbers of steps of its index."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from streamgp.data.durations import rounded
from streamgp.data.spacing import in_words
from streamgp.errors import ConfigurationError, problem
from streamgp.model.means import Seasonal, as_seasons
from streamgp.model.means.seasonal import LEAST

_ANCHOR = pd.Timestamp("2001-01-01")
_CYCLE = pd.Timedelta(days=28 * 365.25)  # after which dates are on the same days of the week again
_MANY = 60  # steps that tell about how long one is: five years of months, twelve business weeks
_DAY = pd.Timedelta(days=1)
_A_DAY = 1.0  # as a step: days and steps are then the same


def all_seasons(
    seasons: Any, sp: float | Sequence[float] | None, index: pd.Index
) -> tuple[Seasonal, ...]:
    """The seasons that `seasons` and `sp` ask for.

    Args:
        seasons: Periods as for `ContinualGP`.
        sp: Numbers of steps.
        index: Of the series.

    Returns:
        Seasons of both kinds.

    Raises:
        ConfigurationError: If a number may be one of days or of steps, if `sp` is no number of
            steps, or if an index has no steps.
    """
    step, given = _step(index), as_seasons(seasons)
    if isinstance(index, pd.DatetimeIndex | pd.PeriodIndex) and step not in (None, _A_DAY):
        listed = seasons if isinstance(seasons, list | tuple) else [seasons]
        for asked, season in zip(listed, given, strict=True):
            if not isinstance(asked, Seasonal):  # which says that its numbers are days
                _check_unit(season.period, step)
    counts: list[Any] = [] if sp is None else [sp]
    if isinstance(sp, Sequence | np.ndarray) and not isinstance(sp, str):
        counts = list(sp)
    return given + tuple(_of_steps(count, step) for count in counts if count != 1)


def _check_unit(period: float | str, step: float) -> None:
    if isinstance(period, str) or not period.is_integer() or period < LEAST:
        return
    length, of_days = rounded(period * step), ""
    if period >= LEAST * step:
        of_days = f' For {period:g} days say `seasons=("{period:g}D",)`.'
    raise ConfigurationError(
        problem(
            "seasons as durations, for an index of times",
            f"{period:g}, which may be days or steps of {in_words(step, is_time=True)}",
            f"For {period:g} steps, which are about {length}, say `sp={period:g}` or "
            f'`seasons=("{length}",)`.{of_days}',
        )
    )


def _of_steps(count: Any, step: float | None) -> Seasonal:
    is_number = isinstance(count, int | float | np.number) and not isinstance(count, bool)
    if not (is_number and np.isfinite(count) and count >= LEAST):
        raise ConfigurationError(
            problem(
                f"`sp` as a number of steps, {LEAST} or more, or a list of them",
                repr(count),
                "Say `sp=12` for a year of months. Durations go to `seasons`.",
            )
        )
    if step is None:
        raise ConfigurationError(
            problem(
                "an index with a frequency, for periods in steps (`sp`)",
                "times without one",
                'Give it one, such as `y.asfreq("MS")`, or say `seasons=("365.25D",)`.',
            )
        )
    # Further pairs of sine and cosine would be the same at these steps as those before.
    return Seasonal(count * step, harmonics=min(Seasonal.harmonics, int(count) // 2))


def _step(index: pd.Index) -> float | None:
    """The average length of a step of an index, in days or whole numbers; None if it has none."""
    if isinstance(index, pd.PeriodIndex):
        return _length(index.freq)
    if not isinstance(index, pd.DatetimeIndex):
        return 1.0
    freq = index.freq
    if freq is None and len(index) > 2:
        freq = pd.infer_freq(index)
    return None if freq is None else _length(pd.tseries.frequencies.to_offset(freq))


def _length(offset: pd.DateOffset) -> float:
    """The average length of an offset in days, over a cycle of the calendar."""
    begin = offset.rollforward(_ANCHOR)
    about = (begin + _MANY * offset - begin) / _MANY
    count = max(round(_CYCLE / about), 1)
    return float((begin + count * offset - begin) / count / _DAY)
