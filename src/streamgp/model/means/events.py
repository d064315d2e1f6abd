"""Events: holidays and other known interventions, each with one effect."""

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from streamgp.data import columns, frames, windows
from streamgp.data.axes import Axis
from streamgp.errors import ConfigurationError, problem
from streamgp.model.means.base import (
    Mean,
    OfScale,
    Spread,
    check_spread,
    column,
    column_of,
    not_started,
)
from streamgp.registry import storable

# Times that are equal may differ by rounding once they are days: they are told apart to about 0.1
# milliseconds, which is less than the last millisecond of a day that windows leave out.
_SAME_TIME = 1e-9
_SAME_NUMBER = 1e-12  # relative


@storable
@dataclasses.dataclass(frozen=True)
class Events(Mean):
    """Holidays and other known interventions. Each has one effect, which is learned.

    An event adds its effect to the latent parameter within its windows, and nothing elsewhere.
    Windows that have not come yet are predicted with the effect that is known by then.

    Args:
        table: The windows of each event: a dictionary by name of a list of instants or
            (begin, end) pairs, or a frame with the columns `event`, `begin` and, if windows are
            longer than an instant, `end`. Both ends belong to a window. They are numbers or times
            as the inputs are. A date stands for its whole day, and so do two times at midnight.
            Times without a zone are as the clocks of the inputs' zone show them.
        spread: The prior standard deviation of each effect, in units of the latent parameter;
            positive. By default it is the standard deviation of the channel's first data, and 1
            for latent parameters behind a logarithm or a logit.
        on: The input column, by name or number. By default the first that holds times or, without
            times, the first.

    Raises:
        ConfigurationError: If the table or another argument cannot be used.

    Examples:
        >>> import numpy as np, streamgp as sgp
        >>> events = sgp.Events({"sale": [(10, 14), (40, 44), (80, 84)], "strike": [25]})
        >>> day = np.arange(60.0)
        >>> sold = 20 + 9.0 * ((day >= 10) & (day <= 14) | (day >= 40) & (day <= 44))
        >>> model = sgp.ContinualGP(sgp.Gaussian(), mean=sgp.Constant() + events)
        >>> report = model.update(day, sold)
        >>> np.round(model.predict([75.0, 82.0]).mean)
        array([20., 29.])
    """

    table: Any
    spread: float | None = None
    on: int | str | None = None

    def __post_init__(self) -> None:
        check_spread(self.spread)
        rows = tuple(
            (name, *windows.window(begin, end, f"a window of event {name!r}"))
            for name, begin, end in _rows(self.table)
        )
        object.__setattr__(self, "table", rows)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the events, in the order of their weights."""
        return tuple(dict.fromkeys(name for name, _, _ in self.table))

    def __call__(self, x: Float[np.ndarray, "N P"]) -> Float[np.ndarray, "N B"]:
        values = column(x, self.on, self)[:, None]
        found = [
            np.any((begin <= values) & (values <= end), axis=1) for begin, end in self._windows
        ]
        return np.stack([np.zeros(len(x)), *found], axis=1)[:, 1:]

    @functools.cached_property
    def _windows(self) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        """Begins and ends of each event."""
        if any(isinstance(begin, str) for _, begin, _ in self.table):
            raise not_started(self)
        own = [[(b, e) for n, b, e in self.table if n == name] for name in self.names]
        return tuple((begin, end) for begin, end in (np.array(pairs).T for pairs in own))

    @property
    def spreads(self) -> tuple[Spread, ...]:
        spread: Spread = OfScale(1.0) if self.spread is None else self.spread
        return (spread,) * len(self.names)

    def labels(self, axes: Sequence[Axis]) -> tuple[str, ...]:
        return self.names

    def started(self, x: Float[np.ndarray, "N P"], axes: Sequence[Axis]) -> Mean:
        on = column_of(self.on, axes)
        rows = tuple(
            (
                name,
                *_with_margin(windows.placed((begin, end), axes[on], f"event {name!r}"), axes[on]),
            )
            for name, begin, end in self.table
        )
        return dataclasses.replace(self, table=rows, on=on)


def _with_margin(own: tuple[float, float], axis: Axis) -> tuple[float, float]:
    """A window that holds its ends in spite of rounding."""
    begin, end = own
    if axis.is_time:
        return begin - _SAME_TIME, end + _SAME_TIME
    return begin - _SAME_NUMBER * abs(begin), end + _SAME_NUMBER * abs(end)


# -- tables --------------------------------------------------------------------------------------


def _rows(table: Any) -> Iterator[tuple[str, Any, Any]]:
    """Name, begin and end of every window."""
    if frames.is_frame(table):
        yield from _rows_of_frame(table)
    elif isinstance(table, Mapping):
        for name, given in table.items():
            for one in _listed(given):
                yield (str(name), *_ends(one))
    elif isinstance(table, tuple):  # as it is kept
        yield from table
    else:
        raise ConfigurationError(
            problem(
                "events as a dictionary of windows by name, or a frame",
                repr(table),
                'Write `Events({"Christmas": ["2026-12-25"]})`.',
            )
        )


def _listed(given: Any) -> list[Any]:
    """The windows of one event; a single one need not be in a list."""
    if columns.is_series(given) or isinstance(given, np.ndarray):
        return list(given)
    return given if isinstance(given, list) else [given]


def _ends(one: Any) -> tuple[Any, Any]:
    if not isinstance(one, tuple | list | np.ndarray):
        return one, one
    if len(one) != 2:
        raise ConfigurationError(
            problem("an instant or a pair (begin, end)", repr(one), "Give two ends.")
        )
    return one[0], one[1]


def _rows_of_frame(frame: Any) -> Iterator[tuple[str, Any, Any]]:
    present = frames.names(frame)
    lacking = [name for name in ("event", "begin") if name not in present]
    if lacking:
        raise ConfigurationError(
            problem(
                "a frame of events with the columns 'event' and 'begin', and perhaps 'end'",
                f"columns {present}",
                "Rename its columns.",
            )
        )
    names, begins = map(str, frame["event"]), list(frame["begin"])
    ends = list(frame["end"]) if "end" in present else begins
    yield from zip(names, begins, ends, strict=True)
