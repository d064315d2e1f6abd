"""Streaming: one sample at a time, as fast as the samples allow.

Most samples of a stream change neither inducing points nor hyperparameters. Runs of such samples go
together, once points have been placed for them; an M step and the first sample of a channel
are ordinary updates. At fixed points the result is that of as many ordinary updates.
"""

import dataclasses
import time
from collections.abc import Callable

import numpy as np
from jaxtyping import Bool

from streamgp.data.batch import Rows
from streamgp.inference.engine import AnyState
from streamgp.model.initial_scales import spread_of
from streamgp.online.batch_update import Updater
from streamgp.online.folding import Work, check, total
from streamgp.online.outliers import judged
from streamgp.online.progress import Progress, Scores
from streamgp.online.report import Result, UpdateReport
from streamgp.online.spacing import spaced

_MANY = 8  # so many points are never at one place


@dataclasses.dataclass(frozen=True)
class Streamer:
    """An updater that takes samples in order. Without `learn` hyperparameters stay as they are."""

    updater: Updater
    learn: bool = True

    def stream(
        self, progress: Progress, rows: Rows, advance: Callable[[int], None]
    ) -> tuple[Progress, UpdateReport]:
        """Fold rows in one by one. `advance` is told how many have just been taken."""
        begin, done, pieces, works = time.perf_counter(), 0, [], [Work()]
        now = spaced(self.updater.specification, progress, rows)
        while done < rows.size:
            now, run, work = self._run(now, rows.take(slice(done, done + self._most(now))))
            run, filtered = self._filtered(now, run)
            if filtered is not None:
                now, scores = filtered
            else:
                run = rows.take(slice(done, done + 1))
                now, report = self.updater.update(now, run, learn=self.learn)
                scores = _scores_of(report)
                work = _work_of(report)
            pieces.append(scores)
            works.append(work)
            done += run.size
            advance(run.size)
        learned = now.learned_at > progress.learned_at
        result = Result.LEARNED if learned else Result.KEPT_HYPERPARAMETERS
        work = total(works)._replace(bound=np.nan)
        return now, self.updater.report(progress, now, _joined(pieces), work, result, begin)

    def _most(self, progress: Progress) -> int:
        """How many samples are taken together at most."""
        if progress.state is None:
            return 1
        return self.updater.engines.of(progress.state).learner.pace.samples

    def _run(self, progress: Progress, rows: Rows) -> tuple[Progress, Rows, Work]:
        """The leading rows that only need to be conditioned on, perhaps none, and points for them.

        Where they cannot be placed ahead, a row that wants a point is left to an update.
        """
        rows = self._plain(progress, rows)
        if not rows.size:
            return progress, rows, Work()
        state = progress.state
        assert state is not None
        placer = self.updater.engines.of(state).placer
        settled, work = placer.settled(state, rows), Work()
        if not settled[0] and placer.foresees:
            ready, spent = placer.prepared(state, rows, progress.updates + 1)
            settled = placer.settled(ready, rows)
            if settled[0]:
                work = Work(budget_spent=spent)
                progress = dataclasses.replace(progress, state=ready)
        return progress, rows.take(slice(_leading(settled))), work

    def _plain(self, progress: Progress, rows: Rows) -> Rows:
        """The leading rows of known channels before the next M step."""
        none, updater = rows.take(slice(0)), self.updater
        state = progress.state
        if state is None or updater.forgetting.factor < 1:
            return none
        if not _has_spread(state):
            return none
        introduced = np.asarray([progress.seen[name] > 0 for name in rows.names])
        rows = rows.take(slice(_leading(introduced[rows.channel])))
        before = updater.schedule(state).samples_before_next(progress, rows, learn=self.learn)
        return rows.take(slice(before))

    def _filtered(
        self, progress: Progress, run: Rows
    ) -> tuple[Rows, tuple[Progress, Scores] | None]:
        """The leading rows that have been learned, perhaps none, and what became of them.

        Rows behind an outlier that is not learned as it is depend on what is done about it. They
        are left for another run, and the outlier for an update.
        """
        if not run.size:
            return run, None
        assert progress.state is not None
        updater = self.updater
        learner = updater.engines.of(progress.state).learner
        after, scored = learner.filter_scored(progress.state, run)
        if updater.outliers != "keep":
            verdict = judged(progress, run, scored, one_by_one=True)
            before = _leading(~verdict.is_outlier)
            if before < run.size:
                return self._filtered(progress, run.take(slice(before)))
        if self.learn and updater.schedule(progress.state).on_rows:
            before = progress.doubt.until_strong(scored.normal)
            if before < run.size:  # an update of that row learns from it at once
                return self._filtered(progress, run.take(slice(before)))
        check(after.is_finite(progress.state))
        return run, updater.seen(progress, after, run, scored, learned=False, one_by_one=True)


def _scores_of(report: UpdateReport) -> Scores:
    """The scores that a report has."""
    return Scores(report.log_predictive_rows, report.surprise, report.changed, report.outliers)


def _work_of(report: UpdateReport) -> Work:
    """The work that a report counts."""
    return Work(report.bound, report.e_rounds, report.m_evaluations, report.budget_spent)


def _has_spread(state: AnyState) -> bool:
    return max(state.sizes) > _MANY or bool(spread_of(state.explored).any())


def _leading(flags: Bool[np.ndarray, " N"]) -> int:
    """How many flags are true before the first that is not."""
    return len(flags) if flags.all() else int(np.argmin(flags))


def _joined(pieces: list[Scores]) -> Scores:
    """Scores of consecutive rows, put together."""
    names = dict.fromkeys(name for piece in pieces for name in piece.rows)
    return Scores(
        {n: np.concatenate([p.rows[n] for p in pieces if n in p.rows]) for n in names},
        {n: max(p.surprise[n] for p in pieces if n in p.surprise) for n in names},
        tuple(dict.fromkeys(name for piece in pieces for name in piece.changed)),
        {n: sum(p.outliers.get(n, 0) for p in pieces) for n in names},
    )
