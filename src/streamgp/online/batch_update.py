"""Updating: from a model's progress and new rows to new progress and a report.

Nothing is changed in place, so an update that breaks off leaves no trace.
"""

import dataclasses
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from streamgp.data.axes import Axis, input_names
from streamgp.data.batch import Rows
from streamgp.inducing.engines import Engines
from streamgp.inference.engine import AnyState
from streamgp.inference.scoring import Scored
from streamgp.model.multitask import MultiTaskGP
from streamgp.model.specification import Specification
from streamgp.online import lifecycle
from streamgp.online.folding import Folding, How, Work, total
from streamgp.online.forgetting import Forgetting
from streamgp.online.outliers import Rule, apart, check_rule, judged, taken
from streamgp.online.progress import Progress, Scores, watched
from streamgp.online.report import Result, UpdateReport
from streamgp.online.schedule import Schedule
from streamgp.online.spacing import spaced
from streamgp.online.starts import Starts, better
from streamgp.parameters import replaced


@dataclasses.dataclass(frozen=True)
class Updater:
    """How a model takes in data: what it is, where points go, how it learns, what it forgets."""

    specification: Specification
    engines: Engines
    forgetting: Forgetting
    outliers: Rule = "keep"  # what becomes of them

    def __post_init__(self) -> None:
        check_rule(self.outliers)

    def folding(self, state: AnyState) -> Folding:
        """How rows are folded into states of that kind."""
        engine, seed = self.engines.of(state), self.specification.seed
        return Folding(engine, self.schedule(state), seed)

    def schedule(self, state: AnyState) -> Schedule:
        """When hyperparameters are learned."""
        learner = self.engines.of(state).learner
        channels = self.specification.channels
        rule, own = learner.learning, (learner.on_rows, learner.pace.growth, learner.pace.brief)
        return Schedule(rule, self.forgetting, channels, *own)

    # -- a batch -------------------------------------------------------------------------------

    def update(
        self, progress: Progress, rows: Rows, *, learn: bool = True
    ) -> tuple[Progress, UpdateReport]:
        """Fold in rows that came together; hyperparameters are learned if that is due."""
        begin = time.perf_counter()
        progress = spaced(self.specification, progress, rows)
        usual = rows if self.outliers == "keep" else rows.take(~apart(progress, rows))
        before = self._faded(self._ready(progress, usual), progress, rows)
        axes = progress.schema.axes
        came, scores = rows, None
        if self.outliers != "keep":
            scores = self.folding(before).scores(before, came)
            rows = taken(self.outliers, came, scores, judged(progress, came, scores))
            if not rows.size:
                now, seen = self.seen(progress, before, came, scores, learned=False)
                return now, self.report(progress, now, seen, Work(), Result.SKIPPED, begin)
        start = lifecycle.restarted(self.specification, before, rows, axes)

        def surprise() -> float:
            _, scores = watched(
                progress, rows, self.folding(before).scores(before, rows).log_predictive
            )
            return max(scores.surprise.values())

        asked, schedule, engine = self.specification, self.schedule(before), self.engines.of(before)
        afresh = not before.count
        due = schedule.is_due(progress, rows, surprise, learn=learn)
        due = due and not engine.placer.is_starved(before)
        if due and start is None:
            start = lifecycle.widened(asked, before, rows, axes)
        if due and not before.count:
            start = Starts(asked, engine, before, rows, axes).best()
        elif due and schedule.is_time_for_starts(progress, rows):
            start = self._better_start(before, rows, axes)
            afresh = True
        how = How(progress.updates + 1, due)
        folding = self.folding(before).with_rule(schedule.rule_for(progress, rows))
        after, found, work = folding.fold(before, rows, start, how)
        gain = work.bound - float(np.sum(found.log_predictive))
        waits = not due and learn and schedule.on_rows
        if waits and schedule.is_in_doubt(progress.doubt.seen(found.normal)):
            nothing, due, afresh = rows.take(slice(0)), True, True
            start = self._better_start(after, nothing, axes)
            how = How(progress.updates + 1, learn=True)
            after, more, _ = folding.step(after, nothing, start, how)
            work, gain = total([work, more]), more.bound
        now, seen = self.seen(progress, after, came, scores or found, learned=due)
        if due:
            now = now.having_learned(gain, afresh=afresh)
        result = Result.LEARNED if due else Result.KEPT_HYPERPARAMETERS
        return now, self.report(progress, now, seen, work, result, begin)

    def _better_start(self, state: Any, rows: Rows, axes: Sequence[Axis]) -> MultiTaskGP:
        """Hyperparameters as they are, or begun anew from all kept rows, if these say so."""
        engine, asked = self.engines.of(state), self.specification
        every = state.rows_with(rows)
        anew = lifecycle.afresh(asked, engine.learner, state, every, axes)
        blank = engine.learner.begin(anew, rows.x.shape[1])
        other = Starts(asked, engine, blank, every, axes).best()
        return better(engine.learner, state, rows, (state.model, other))

    def seen(
        self,
        progress: Progress,
        after: AnyState,
        rows: Rows,
        scored: Scored,
        *,
        learned: bool,
        one_by_one: bool = False,
    ) -> tuple[Progress, Scores]:
        """The progress once rows have come, and what their scores say.

        Args:
            progress: Before the rows.
            after: The state after them.
            rows: In the order in which they came.
            scored: Before they were learned.
            learned: Whether hyperparameters were.
            one_by_one: Whether each row was an update of its own.
        """
        verdict = judged(progress, rows, scored, one_by_one=one_by_one)
        records = progress.recorded(rows, scored, verdict.in_a_row, one_by_one=one_by_one)
        learner = self.engines.of(after).learner
        horizons = progress.horizons_with(rows, after, learner, one_by_one=one_by_one)
        updates = rows.size if one_by_one else 1
        now = progress.after(rows, after, updates=updates, learned=learned)
        now = replaced(now, doubt=progress.doubt.seen(scored.normal))
        log_predictive = scored.log_predictive
        now, scores = watched(
            now, rows, log_predictive, one_by_one=one_by_one,
            calibrations=records, horizons=horizons,
        )  # fmt: skip
        outliers = dict.fromkeys(scores.rows, 0)
        if verdict.in_a_row:
            outliers |= {n: int(verdict.is_outlier[own].sum()) for n, own in rows.by_channel()}
        changed = tuple(dict.fromkeys(scores.changed + verdict.changed))
        return now, scores._replace(changed=changed, outliers=outliers)

    def refine(self, progress: Progress) -> tuple[Progress, UpdateReport]:
        """Learn hyperparameters from what is kept."""
        begin, state = time.perf_counter(), progress.state
        assert state is not None
        nothing = Rows(np.zeros((0, len(progress.schema.axes))), np.zeros((0, 1)), np.zeros(0, int))
        how = How(progress.updates, learn=True)
        folding = self.folding(state)
        after, work, _ = folding.step(state, nothing, None, how)
        now = dataclasses.replace(progress, state=after, learned_at=progress.total)
        return now, self.report(progress, now, Scores(), work, Result.REFINED, begin)

    def pass_over(self, progress: Progress) -> UpdateReport:
        """A report of a batch in which nothing was observed."""
        nothing = Scores()
        result = Result.NOTHING_OBSERVED
        return self.report(progress, progress, nothing, Work(), result, time.perf_counter())

    def _ready(self, progress: Progress, rows: Rows) -> Any:
        """The state before the rows, with every channel among them on a scale."""
        asked, state = self.specification, progress.state
        first = {
            name: rows.of(index, likelihood.observation_dim)
            for index, (name, likelihood) in enumerate(asked.channels.items())
            if not progress.seen[name] and np.any(rows.channel == index)
        }
        axes = progress.schema.axes
        if state is None:
            learner = self.engines.chosen(asked.prototype(input_names(axes), axes)).learner
            state = lifecycle.begin(asked, learner, rows.x, first, axes)
        if first:
            learner = self.engines.of(state).learner
            state = lifecycle.introduce(asked, learner, state, first, rows, axes)
        return lifecycle.above_rounding(asked, state, first, rows)

    def _faded(self, state: AnyState, progress: Progress, rows: Rows) -> Any:
        if self.forgetting.factor == 1.0:
            return state
        advance = float(np.max(rows.x[:, 0])) - progress.latest if progress.updates else 0.0
        left = self.forgetting.left_after(advance)
        return state if left == 1.0 else self.engines.of(state).learner.tempered(state, left)

    # -- what happened -------------------------------------------------------------------------

    def report(
        self,
        before: Progress,
        now: Progress,
        scores: Scores,
        work: Work,
        result: Result,
        begin: float,
    ) -> UpdateReport:
        """An account of what lies between two points of progress."""
        return UpdateReport(
            update=now.updates,
            result=result,
            channels=self.specification.names,
            axes=now.schema.axes,
            observations={name: len(row) for name, row in scores.rows.items()},
            log_predictive={name: _mean(row) for name, row in scores.rows.items()},
            log_predictive_rows=scores.rows,
            surprise=scores.surprise,
            changed=scores.changed,
            outliers=scores.outliers,
            _calibrations=now.calibrations,
            bound=work.bound,
            inducing_before=self._sizes(before),
            inducing_after=self._sizes(now),
            kept_rows=0 if now.state is None else now.state.kept_rows,
            kept_bytes=0 if now.state is None else now.state.kept_bytes,
            kept_of=now.total,
            open_variance=self._open_variance(now),
            budget_spent=work.budget_spent,
            _model=None if now.state is None else now.state.model,
            e_rounds=work.e_rounds,
            m_evaluations=work.m_evaluations,
            seconds=time.perf_counter() - begin,
        )

    def _open_variance(self, progress: Progress) -> tuple[float, ...]:
        """The part of each latent function's variance at past rows that its points leave open."""
        if progress.state is None:
            return (0.0,) * sum(self.specification.draws)
        return tuple(map(float, progress.state.open_variance))

    def _sizes(self, progress: Progress) -> tuple[int, ...]:
        """How many inducing points each latent function has."""
        if progress.state is None:
            return (0,) * sum(self.specification.draws)
        return progress.state.sizes


def _mean(row: Float[np.ndarray, " n"]) -> float:
    return float(row[0] if len(row) == 1 else np.mean(row))
