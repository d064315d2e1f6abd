"""Keyed: one request with observations of many keys of a fleet, learned and committed together."""

import copy
import dataclasses
import time
from concurrent.futures import Future
from typing import Any

import numpy as np
import pandas as pd

import streamgp as sgp
from streamgp.errors import DataError, StreamGPError, problem
from streamgp.fleet.report import FleetReport, Line
from streamgp.online.report import Result
from streamgp.service import names, specifications
from streamgp.service.cache import Live
from streamgp.service.engine import Batch, Engine, answered, first_answer, updated
from streamgp.service.problems import explained
from streamgp.service.reports import Bookkeeping, Spoken, spoken

_KEYED = "keyed "  # before the idempotency keys of such requests; a key has no space


@dataclasses.dataclass(frozen=True)
class Rows:
    """Rows of several keys.

    Attributes:
        frame: All of them, with keys as routes have them.
        column: The column of keys.
        parts: The rows of each key, without that column.
    """

    frame: pd.DataFrame
    column: str
    parts: dict[str, pd.DataFrame]

    @classmethod
    def of(cls, frame: pd.DataFrame, column: str) -> "Rows":
        """Split rows.

        Raises:
            DataError: If there is no such column, or a row has no key.
            RefusedError: If a key cannot be one.
        """
        if column not in frame:
            raise DataError(
                problem(
                    f"a column {column!r} of keys", f"{list(frame.columns)}", "Name it as `?key=…`."
                )
            )
        if frame[column].isna().any():
            raise DataError(
                problem(f"a key in every row of {column!r}", "none in one", "Leave out such rows.")
            )
        named = frame.assign(**{column: [_name(value) for value in frame[column]]})
        parts = {str(key): part for key, part in named.groupby(column, sort=False)}
        return cls(named, column, {key: p.drop(columns=column) for key, p in parts.items()})

    def of_keys(self, keys: list[str]) -> "Rows":
        """The rows of some of the keys."""
        if len(keys) == len(self.parts):
            return self
        frame = self.frame[self.frame[self.column].isin(keys)]
        return Rows(frame, self.column, {key: self.parts[key] for key in keys})


class Done(dict[str, tuple[sgp.ContinualGP, sgp.UpdateReport]]):
    """Models by key that have learned their rows, with their reports.

    Attributes:
        errors: What went wrong with other keys.
    """

    def __init__(self) -> None:
        super().__init__()
        self.errors: dict[str, Exception] = {}


def learn(engine: Engine, fleet: str, column: str, batch: Batch) -> Future:
    """Learn rows of any number of keys. All of it is on disk when the result is there.

    A key whose rows cannot be learned is as it was, and the result has the reason.

    Args:
        engine: Has the fleet.
        fleet: The name of the fleet.
        column: The column that has the keys.
        batch: The observations.

    Returns:
        What was done in all, and whether it is the answer to an earlier request with the same key.
    """

    def work() -> tuple[Spoken, bool]:
        engine.read(names.fleet_key(fleet))
        rows = Rows.of(_framed(batch), column)
        keys = [names.member_key(fleet, key) for key in rows.parts]
        return engine.until_fresh(keys, lambda: _learn_once(engine, fleet, rows, batch))

    return engine.lanes.submit(names.fleet_key(fleet), work)


def _learn_once(engine: Engine, fleet: str, rows: Rows, batch: Batch) -> tuple[Spoken, bool]:
    own = names.fleet_key(fleet)
    at = {key: names.member_key(fleet, key) for key in rows.parts}
    # Every model keeps that it has handled the request. One that was deleted since has not.
    request = None if batch.request is None else f"{_KEYED}{batch.request}"
    kept = {} if request is None else engine.store.answers(request, [own, *at.values()])
    before = {place: first_answer(answer, batch) for place, answer in kept.items()}
    first = before.get(own)
    over = {} if first is None else first["errors"]
    left = [key for key in at if at[key] not in before and key not in over]
    if before and not left:
        return _said(Done(), []) if first is None else first, True
    begin = time.perf_counter()
    blank = engine.read(own).model
    rows = rows.of_keys(left)
    there = engine.store.versions(at[key] for key in left)
    new = [key for key in left if at[key] not in there]
    engine.check_room(len(new))
    found = engine.cache.get_many([*there])
    now = {key: found[at[key]] for key in left if at[key] in there}
    if new:
        now |= dict.fromkeys(new, Live(engine.fleets.begun(fleet), 0))
    done = _done(blank, now, rows)
    said = _said(done, new)
    with engine.store.transaction() as change:
        for key, (draft, report) in done.items():
            if report.observations:
                Bookkeeping.of(now[key].model).after(draft, report).put_into(draft)
            change.put(at[key], draft, version=now[key].version)
            if request is not None:
                change.record(request, answered({}, batch), model=at[key])
        if request is not None and first is None:
            change.record(request, answered(said, batch), model=own)
    seconds = (time.perf_counter() - begin) / max(len(done), 1)
    for key, (draft, report) in done.items():
        live = Live(draft, change.versions[at[key]], spoken(report))
        engine.publish(at[key], live, rows.parts[key])
        engine.metrics.learned(report, seconds)
    return said, False


def _done(blank: sgp.ContinualGP, now: dict[str, Live], rows: Rows) -> Done:
    """Copies of models that have learned their rows."""
    done = Done()
    specifications.check_columns(blank, rows.frame.drop(columns=rows.column))
    drafts = {key: copy.copy(live.model) for key, live in now.items()}
    if specifications.learns_samples(blank):
        for key, draft in drafts.items():
            try:
                done[key] = (draft, updated(draft, rows.parts[key]))
            except StreamGPError as error:
                done.errors[key] = error
        return done
    fleet = sgp.Fleet(blank)
    for key, draft in drafts.items():
        try:
            fleet.add(key, draft)
        except StreamGPError as error:  # a file of another kind was imported there
            done.errors[key] = error
    fine = rows.frame[~rows.frame[rows.column].isin(done.errors)]
    report = fleet.update(fine, key=rows.column, **specifications.layout_of(blank))
    done.errors.update({str(key): error for key, error in report.errors.items()})
    lines: dict[Any, list[Line]] = {}
    for line in report._lines:
        lines.setdefault(line.key, []).append(line)
    learned = set(report.learned)
    for name in report.keys:
        own = lines.get(name, [])
        told = _report_of(fleet[name], own, report, name, learned=name in learned)
        done[str(name)] = (fleet[name], told)
    return done


def _report_of(
    model: sgp.ContinualGP, lines: list[Line], report: FleetReport, key: Any, *, learned: bool
) -> sgp.UpdateReport:
    """What became of one key, as its model would report it, as far as that is known."""
    result = Result.LEARNED if learned else Result.KEPT_HYPERPARAMETERS
    state, progress = model.state, model._version.progress
    return sgp.UpdateReport(
        update=progress.updates,
        result=result if lines else Result.NOTHING_OBSERVED,
        observations={line.channel: line.observations for line in lines},
        log_predictive={line.channel: line.log_predictive for line in lines},
        log_predictive_rows={},
        surprise={line.channel: line.surprise for line in lines},
        changed=tuple(line.channel for line in lines if line.changed),
        outliers={line.channel: line.outliers for line in lines},
        bound=np.nan,
        inducing_before=(),
        inducing_after=() if state is None else state.sizes,
        kept_rows=model.kept_rows,
        open_variance=model.open_variance,
        budget_spent=False,
        e_rounds=0,
        m_evaluations=0,
        seconds=report.seconds,
        channels=model.channels,
        _model=None if state is None else state.model,
        axes=model.axes,
        dropped=dict(report.dropped.get(key, {})),
        _calibrations=progress.calibrations,
    )


def _said(done: Done, new: list[str]) -> Spoken:
    """What a request did to all keys together."""
    observations: dict[str, int] = {}
    for _, report in done.values():
        for name, count in report.observations.items():
            observations[name] = observations.get(name, 0) + count
    return {
        "updated": len(done),
        "begun": [key for key in new if key in done],
        "learned": sum(report.result is Result.LEARNED for _, report in done.values()),
        "observations": observations,
        "changed": [
            {"key": key, "channel": name}
            for key, (_, report) in done.items()
            for name in report.changed
        ],
        "errors": {key: explained(error) for key, error in done.errors.items()},
    }


def _framed(batch: Batch) -> pd.DataFrame:
    return pd.DataFrame() if batch.frame is None else batch.frame


def _name(value: Any) -> str:
    """A key as routes have it. Whole numbers may have come as 7.0."""
    whole = isinstance(value, float) and value.is_integer()
    return names.check_name(str(int(value) if whole else value))
