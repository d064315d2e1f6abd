"""Work: one update of a fleet as it goes on."""

import dataclasses
import time
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

import numpy as np

from streamgp.data.reader import Intake
from streamgp.fleet.intakes import Intakes
from streamgp.fleet.members import Members
from streamgp.fleet.plain import plain
from streamgp.fleet.report import FleetReport, Line
from streamgp.fleet.together import Done, made
from streamgp.gp import ContinualGP
from streamgp.inference.asking import Asking, answered_together
from streamgp.inference.chain.many_evidence import answers
from streamgp.online.progress import Progress
from streamgp.online.report import Result, UpdateReport

_RUNNING = 64  # updates that are under way at one time


class _Begun(NamedTuple):
    """An update that is under way: whose, of which model, and from where it began."""

    key: Hashable
    model: ContinualGP
    is_new: bool
    progress: Progress
    intake: Intake


@dataclasses.dataclass
class Work:
    """An update of some keys.

    Attributes:
        members: The models.
        learn: Whether hyperparameters may be learned.
        keys: Those that were updated so far.
        begun: Those of them that are new.
        learned: Those of them whose hyperparameters were learned.
        lines: What came of each of their channels.
        errors: What went wrong, by key.
    """

    members: Members
    learn: bool
    keys: list[Hashable] = dataclasses.field(default_factory=list)
    begun: set[Hashable] = dataclasses.field(default_factory=set)
    learned: list[Hashable] = dataclasses.field(default_factory=list)
    lines: list[Line] = dataclasses.field(default_factory=list)
    errors: dict[Hashable, Exception] = dataclasses.field(default_factory=dict)

    def all(self, intakes: Intakes) -> None:
        """Update all models, those whose updates are plain together, and so those that learn."""
        simple, others = [], {}
        for key, intake in intakes.read.items():
            model = self.members.model(key)
            update = None if model is None else plain(key, model, intake, learn=self.learn)
            if update is None:
                others[key] = intake
            else:
                simple.append(update)
        for begun, result in answered_together(self._begun(others), answers, _RUNNING):
            self._ended(begun, result)
        self.members.put_in_order(key for key in others if key in self.begun)
        for done in made(simple):
            if not (isinstance(done, Done) and self._kept(done)):
                update = done.update if isinstance(done, Done) else done
                self._one(update.key, update.intake)
        if self.learn:
            self.members.learn_shared()

    def _begun(self, intakes: dict[Hashable, Intake]) -> Iterator[tuple["_Begun", Asking[Any]]]:
        """Updates that ask for evaluations. Where that gains nothing, they are made at once."""
        members = self.members
        for key, intake in intakes.items():
            model, rows = members.model(key), intake.rows
            # A new key may start from what those before it have learned.
            alone = model is None and members.has_common and members.population is None
            if rows is None or alone or members.shared is not None:
                self._one(key, intake)
                continue
            own = model or members.blank()
            updater, progress = own._version
            start = dataclasses.replace(progress, schema=intake.schema)
            asking = updater.updating(start, rows, learn=self.learn)
            yield _Begun(key, own, model is None, progress, intake), asking

    def _ended(self, begun: "_Begun", result: Any) -> None:
        """Keep what an update came to."""
        key, model, is_new, progress, intake = begun
        if isinstance(result, Exception):
            self.errors[key] = result
            return
        with model._changing() as version:
            if version.progress is not progress:  # someone else has changed it meanwhile
                self._one(key, intake)
                return
            report = model._keep(result, intake)
        if is_new:
            self.members.models[key] = model
            self.begun.add(key)
        self.keys.append(key)
        self._note(key, intake, report)

    def _one(self, key: Hashable, intake: Intake) -> None:
        """Update one model by itself. A key whose first batch fails does not come to be."""
        members = self.members
        model = members.model(key)
        is_new = model is None
        try:
            model = model or members.blank()
            report = self._alone(model, intake)
        except Exception as error:  # one key's failure must not be that of ten thousand
            self.errors[key] = error
            return
        if is_new:
            members.models[key] = model
            self.begun.add(key)
        self.keys.append(key)
        self._note(key, intake, report)
        if self.learn:  # so that further new keys of a first table start from these
            members.learn_shared()

    def _alone(self, model: ContinualGP, intake: Intake) -> UpdateReport:
        with model._changing() as (updater, progress):
            if intake.rows is None:
                return model._passed_over(intake)
            start = dataclasses.replace(progress, schema=intake.schema)
            return model._keep(updater.update(start, intake.rows, learn=self.learn), intake)

    def _kept(self, done: Done) -> bool:
        """Keep what an update led to, unless the model was changed by someone else meanwhile."""
        update, scores = done.update, done.scores
        with update.model._changing() as version:
            if version.progress is not update.progress:
                return False
            update.model._version = version._replace(progress=done.progress)
        self.keys.append(update.key)
        latest = self.members.saw(update.key, update.rows)
        for name, own in scores.rows.items():
            self.lines.append(
                Line(
                    update.key,
                    name,
                    len(own),
                    float(own.sum()) / len(own),
                    scores.surprise[name],
                    name in scores.changed,
                    scores.outliers[name],
                    latest[name],
                    done.progress.calibrations.get(name),
                )
            )
        return True

    def _note(self, key: Hashable, intake: Intake, report: UpdateReport) -> None:
        latest = self.members.saw(key, intake.rows)
        if report.result is Result.LEARNED:
            self.learned.append(key)
            self.members.note_learned()
        for name, count in report.observations.items():
            self.lines.append(
                Line(
                    key,
                    name,
                    count,
                    report.log_predictive[name],
                    report.surprise.get(name, np.nan),
                    name in report.changed,
                    report.outliers.get(name, 0),
                    latest[name],
                    report._calibrations.get(name),
                )
            )

    def report(self, intakes: Intakes, begin: float) -> FleetReport:
        """What was done since a moment."""
        return FleetReport(
            self.keys,
            self.learned,
            {**intakes.errors, **self.errors},
            {name: intake.dropped for name, intake in intakes.read.items() if intake.dropped},
            self.members.newest,
            time.perf_counter() - begin,
            self.lines,
        )
