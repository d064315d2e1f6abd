"""Reports: what updates did, as clients see it, and what is kept of it inside the model.

What is kept depends on the observations alone, and not on clocks: a model that was stopped and
continued has the same bytes as one that was not.
"""

import dataclasses
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

import streamgp as sgp
from streamgp.service.wire import plain

_KEY = "service"
_ENTRIES = 240  # of the history; when there are more, every second one of the older ones goes
_ALARMS = 50
_ALARM = {"update", "latest", "channel", "kind", "surprise"}
_ALARMING = 4.0  # standard deviations of surprise

Spoken = dict[str, Any]  # a report as JSON


class Row(NamedTuple):
    """An observation, for pictures."""

    channel: str
    x: Any
    y: Any


@dataclasses.dataclass(frozen=True)
class History:
    """Numbers of some of the updates, in order: a table with names of its columns."""

    names: tuple[str, ...]
    table: Float[np.ndarray, "H C"]

    def with_entry(self, numbers: Mapping[str, float]) -> "History":
        """With one more update. Columns that an update lacks are NaN."""
        names = (*self.names, *(name for name in numbers if name not in self.names))
        wider = np.full((len(self.table) + 1, len(names)), np.nan)
        wider[:-1, : len(self.names)] = self.table
        wider[-1] = [numbers.get(name, np.nan) for name in names]
        if len(wider) > _ENTRIES:
            wider = np.concatenate([wider[: _ENTRIES // 2 : 2], wider[_ENTRIES // 2 :]])
        return History(names, wider)

    def columns(self) -> dict[str, list[float | None]]:
        """The table by column."""
        return dict(zip(self.names, plain(self.table.T), strict=True))


@dataclasses.dataclass(frozen=True)
class Bookkeeping:
    """What the service keeps inside a model's file.

    Attributes:
        specification: The tables that the model was made of; empty for a model that was imported.
        history: Numbers of some of the updates.
        alarms: The latest alarms.
    """

    specification: dict[str, Any]
    history: History
    alarms: tuple[dict[str, Any], ...] = ()

    @classmethod
    def of(cls, model: sgp.ContinualGP) -> "Bookkeeping":
        """Read it out of a model."""
        kept = model._bookkeeping.get(_KEY)
        if kept is None:
            return cls({}, History((), np.zeros((0, 0))))
        history = History(tuple(kept["names"]), kept["table"])
        return cls(kept["specification"], history, tuple(kept["alarms"]))

    def check(self) -> None:
        """Raise an error unless every part is what this service writes."""
        table, names = self.history.table, self.history.names
        fits = isinstance(table, np.ndarray) and table.dtype == np.float64
        if not (
            fits and table.shape[1:] == (len(names),) and all(isinstance(n, str) for n in names)
        ):
            raise ValueError("a history of another form")
        for alarm in self.alarms:
            fine = isinstance(alarm, dict) and set(alarm) == _ALARM
            if not fine or any(isinstance(part, list | dict | tuple) for part in alarm.values()):
                raise ValueError("alarms of another form")
        json.dumps(self.specification, allow_nan=False)

    def put_into(self, model: sgp.ContinualGP) -> None:
        """Write it into a model, of which nobody else has a copy."""
        kept = {
            "specification": self.specification,
            "names": list(self.history.names),
            "table": self.history.table,
            "alarms": list(self.alarms),
        }
        model._bookkeeping = {**model._bookkeeping, _KEY: kept}

    def after(self, model: sgp.ContinualGP, report: sgp.UpdateReport) -> "Bookkeeping":
        """With what one update did."""
        history = self.history.with_entry(dict(_numbers(model, report)))
        alarms = (*self.alarms, *_alarms(model, report))[-_ALARMS:]
        return dataclasses.replace(self, history=history, alarms=alarms)


def latest(model: sgp.ContinualGP) -> Any:
    """The largest first input so far, as the user would write it; None before any data."""
    axes, number = model.axes, model._version.progress.latest
    if not axes or not np.isfinite(number):
        return None
    return plain(axes[0].values(np.array([number])))[0]


def _numbers(model: sgp.ContinualGP, report: sgp.UpdateReport) -> Iterator[tuple[str, float]]:
    yield "update", float(report.update)
    yield "observations", float(sum(model.observations.values()))
    yield "latest", float(model._version.progress.latest)
    yield "inducing", float(sum(report.inducing_after))
    yield "open_variance", float(max(report.open_variance, default=0.0))
    yield "budget_spent", float(report.budget_spent)
    coverage = report.coverage  # it is computed when it is asked for, and so is `nlpd`
    by_channel: dict[str, Mapping[str, Any]] = {
        "log_predictive": report.log_predictive,
        "nlpd": report.nlpd,
        "surprise": report.surprise,
        "outliers": report.outliers,
        "coverage": {name: shares[0.95] for name, shares in coverage.items()},
    }
    for name in report.observations:
        for what, values in by_channel.items():
            if name in values:
                yield f"{what}:{name}", float(values[name])
        yield f"changed:{name}", float(name in report.changed)
    for name, number in _flat(report.hyperparameters):
        yield f"hyperparameter:{name}", number


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """The numbers of a tree of hyperparameters, each with the way to it as its name."""
    if isinstance(value, Mapping):
        parts: Any = value.items()
    elif isinstance(value, list | tuple | np.ndarray) and np.ndim(value):
        parts = enumerate(value)
    else:
        if isinstance(value, int | float | np.number) and not isinstance(value, bool):
            yield name, float(value)
        return
    for key, part in parts:
        yield from _flat(part, f"{name}.{key}" if name else str(key))


def _alarms(model: sgp.ContinualGP, report: sgp.UpdateReport) -> Iterator[dict[str, Any]]:
    place = {"update": report.update, "latest": latest(model)}
    for name in report.observations:
        surprise = float(report.surprise.get(name, 0.0))
        if name in report.changed:
            yield {**place, "channel": name, "kind": "changed", "surprise": surprise}
        elif surprise > _ALARMING:
            yield {**place, "channel": name, "kind": "surprising", "surprise": surprise}


def spoken(report: sgp.UpdateReport) -> Spoken:
    """A report as JSON."""
    return plain(
        {
            "update": report.update,
            "result": str(report.result),
            "observations": report.observations,
            "log_predictive": report.log_predictive,
            "nlpd": report.nlpd,
            "coverage": report.coverage,
            "surprise": report.surprise,
            "changed": report.changed,
            "outliers": report.outliers,
            "bound": report.bound,
            "inducing_points": report.inducing_after,
            "open_variance": report.open_variance,
            "budget_spent": report.budget_spent,
            "dropped": report.dropped,
            "seconds": report.seconds,
        }
    )
