"""Updating: from a model's progress and new rows to new progress and a report.

Nothing is changed in place, so an update that breaks off leaves no trace.
"""

import dataclasses
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from streamgp.data import Batch, Rows, blank_batch
from streamgp.errors import NumericalError
from streamgp.inducing import AbstractStrategy
from streamgp.inducing.placement import Placer, Points, points_of, settled
from streamgp.inference.learner import Info, Learner, State
from streamgp.model.multitask import Generative
from streamgp.model.specification import Specification
from streamgp.numerics.compiling import compiled
from streamgp.online import lifecycle
from streamgp.online.forgetting import Forgetting
from streamgp.online.progress import Progress, Scores, watched
from streamgp.online.report import Result, UpdateReport
from streamgp.online.schedule import Schedule


@compiled
def _step(
    learner: Learner,
    strategy: AbstractStrategy,
    state: State,
    batch: Batch,
    start: Generative | None,
    *,
    learn: bool,
) -> tuple[State, Info, Bool[Array, ""]]:
    """A step, and whether the strategy would have left the points as they are.

    In one program, because a sample costs less than calling one. `start` is None for the state's
    own hyperparameters.
    """
    after, info = learner.step(state, batch, start, learn=learn)
    return after, info, jnp.asarray(False) if learn else jnp.all(settled(strategy, state, batch))


_log_predictive = compiled(Learner.log_predictive)

_PLACEMENTS = 3  # how often one update may place points anew as its kernels are learned


class Work(NamedTuple):
    """What an update took, the bound it ended at, and whether points had to go for want of room."""

    bound: float = np.nan
    e_rounds: int = 0
    m_evaluations: int = 0
    budget_spent: bool = False


def total(works: Iterable[Work]) -> Work:
    """The work of several pieces together."""
    bounds, rounds, evaluations, spent = zip(*works, strict=True)
    return Work(float(np.sum(bounds)), sum(rounds), sum(evaluations), any(spent))


@dataclasses.dataclass(frozen=True)
class Updater:
    """How a model takes in data: what it is, where points go, how it learns, what it forgets."""

    specification: Specification
    placer: Placer
    learner: Learner
    forgetting: Forgetting
    batch_rows: int  # rows that are held in memory together

    @property
    def schedule(self) -> Schedule:
        """When hyperparameters are learned."""
        return Schedule(self.learner.learning, self.forgetting, self.specification.channels)

    # -- a batch -------------------------------------------------------------------------------

    def update(
        self, progress: Progress, rows: Rows, *, learn: bool = True
    ) -> tuple[Progress, UpdateReport]:
        """Fold in rows that came together; hyperparameters are learned if that is due."""
        begin = time.perf_counter()
        before = self._faded(self._ready(progress, rows), progress, rows)
        start = lifecycle.restarted(self.specification, before, rows)

        def surprise() -> float:
            _, scores = watched(progress, rows, self._scores(before, rows))
            return max(scores.surprise.values())

        learn = self.schedule.is_due(progress, rows, surprise, learn=learn)
        fold = self._fold if rows.size <= self.batch_rows else self._fold_in_parts
        after, scores, work = fold(before, rows, start, progress.updates + 1, learn)
        now = progress.after(rows, after, updates=1, learned=learn)
        now, seen = watched(now, rows, scores)
        result = Result.LEARNED if learn else Result.KEPT_HYPERPARAMETERS
        return now, self.report(progress, now, seen, work, result, begin)

    def refine(self, progress: Progress) -> tuple[Progress, UpdateReport]:
        """Learn hyperparameters from what is carried, without data."""
        begin, state = time.perf_counter(), progress.state
        assert state is not None
        batch = blank_batch(state.inducing.points.shape[-1])
        after, work, _, _ = self._step(state, batch, None, learn=True)
        now = dataclasses.replace(progress, state=after, learned_at=progress.total)
        return now, self.report(progress, now, Scores({}, {}, ()), work, Result.REFINED, begin)

    def pass_over(self, progress: Progress) -> UpdateReport:
        """A report of a batch in which nothing was observed."""
        nothing = Scores({}, {}, ())
        result = Result.NOTHING_OBSERVED
        return self.report(progress, progress, nothing, Work(), result, time.perf_counter())

    def _ready(self, progress: Progress, rows: Rows) -> State:
        """The state before the rows, with every channel among them on a scale."""
        first = {name: rows.y[own] for name, own in rows.by_channel() if not progress.seen[name]}
        state = progress.state
        if state is None:
            state = lifecycle.begin(self.specification, self.learner, rows.x, first)
        return lifecycle.introduce(self.specification, state, first) if first else state

    def _faded(self, state: State, progress: Progress, rows: Rows) -> State:
        advance = float(np.max(rows.x[:, 0])) - progress.latest if progress.updates else 0.0
        left = self.forgetting.left_after(advance)
        return state if left == 1.0 else self.learner.tempered(state, left)

    def _fold(
        self, before: State, rows: Rows, start: Generative | None, update: int, learn: bool
    ) -> tuple[State, Float[np.ndarray, " N"], Work]:
        """Place points, learn, and look whether the learned kernels want more points."""
        points, scores, batch = None, None, rows.pack()
        if not learn and update > 1:  # more often than not there is no point to place
            after, work, numbers, stays = self._step(before, batch, start, learn=False)
            if stays:
                return after, numbers[: rows.size], work
        for _ in range(_PLACEMENTS):
            wanted = self.placer.wanted(before, rows, start or before.model, update)
            if points is not None and _suffice(points, wanted):
                break
            points = wanted
            room, placed = self.placer.room(before, points, batch)
            moved = self.placer.move(room, placed)
            moved = self.placer.refined(room, moved, batch, start or before.model)
            after, work, numbers, _ = self._step(moved, batch, start, learn=learn)
            if scores is None:  # of the rows before anything was learned from them
                scores = numbers[: rows.size]
            start = after.model
            if not (learn and self.placer.strategy.follows_kernels):
                break
        assert points is not None
        assert scores is not None
        work = work._replace(budget_spent=self.placer.exceeds_budget(points))
        return self.placer.pruned(before, after, batch), scores, work

    def _step(
        self, state: State, batch: Batch, start: Generative | None, *, learn: bool
    ) -> tuple[State, Work, Float[np.ndarray, " _"], bool]:
        """The state after, what it took, the rows' scores, and whether no point was wanted."""
        strategy = self.placer.strategy
        if learn and start is None:  # one program for both
            start = state.model
        after, info, stays = _step(self.learner, strategy, state, batch, start, learn=learn)
        info, stays = jax.device_get((info, stays))
        check(info.finite)
        work = Work(float(info.bound), int(info.e_rounds), int(info.m_evaluations))
        return after, work, info.log_predictive, bool(stays)

    def _fold_in_parts(
        self, before: State, rows: Rows, start: Generative | None, update: int, learn: bool
    ) -> tuple[State, Float[np.ndarray, " N"], Work]:
        """A batch too large to hold at once, in random parts.

        Exact for Gaussian channels at fixed hyperparameters.
        """
        scores = self._scores(before, rows)
        order = np.random.default_rng(self.specification.seed).permutation(rows.size)
        state, works, learned_at = before, [], 0
        for begin in range(0, rows.size, self.batch_rows):
            part = rows.take(order[begin : begin + self.batch_rows])
            due = learn and self.schedule.is_due_in_parts(begin + part.size, learned_at)
            state, _, work = self._fold(state, part, start, update, due)
            learned_at = begin + part.size if due else learned_at
            start = state.model
            works.append(work)
        return state, scores, total(works)

    def _scores(self, state: State, rows: Rows) -> Float[np.ndarray, " N"]:
        """The log predictive density of each row, for a bounded number of them at a time."""
        scores = []
        for begin in range(0, rows.size, self.batch_rows):
            part = rows.take(slice(begin, begin + self.batch_rows))
            numbers = _log_predictive(self.learner, state, part.pack())
            scores.append(np.asarray(numbers)[: part.size])
        return np.concatenate(scores)

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
            observations={name: now.seen[name] - before.seen[name] for name in scores.rows},
            log_predictive={name: float(np.mean(row)) for name, row in scores.rows.items()},
            log_predictive_rows=scores.rows,
            surprise=scores.surprise,
            changed=scores.changed,
            bound=work.bound,
            inducing_before=self._sizes(before),
            inducing_after=self._sizes(now),
            budget_spent=work.budget_spent,
            _model=None if now.state is None else now.state.model,
            e_rounds=work.e_rounds,
            m_evaluations=work.m_evaluations,
            seconds=time.perf_counter() - begin,
        )

    def _sizes(self, progress: Progress) -> tuple[int, ...]:
        """How many inducing points each latent function has."""
        if progress.state is None:
            return (0,) * sum(self.specification.draws)
        return tuple(len(points) for points in points_of(progress.state))


def check(finite: Any) -> None:
    """Refuse what an update ended in, unless it is finite."""
    if not finite:
        raise NumericalError(
            "the update did not end in finite numbers; the model is as it was. "
            "Please report the batch that did this."
        )


def _suffice(points: Points, wanted: Points) -> bool:
    """Whether points placed under the old kernels still do: not too few, nor far too many."""
    pairs = [(len(p), len(w)) for p, w in zip(points, wanted, strict=True)]
    return all(0.75 * have <= want <= have for have, want in pairs)
