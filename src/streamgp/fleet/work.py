"""Work: one update of a fleet as it goes on."""

import dataclasses
import time
from collections.abc import Hashable

import numpy as np

from streamgp.data.reader import Intake
from streamgp.fleet.intakes import Intakes
from streamgp.fleet.members import Members
from streamgp.fleet.report import FleetReport, Line
from streamgp.gp import ContinualGP
from streamgp.online.report import Result, UpdateReport


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
        """Update all models, one after the other."""
        for key, intake in intakes.read.items():
            self._one(key, intake)
        if self.learn:
            self.members.learn_shared()

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
