"""Updating: from a model's progress and new rows to new progress and a report.

Nothing is changed in place, so an update that breaks off leaves no trace.
"""

import dataclasses
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from streamgp.compiling import compiled
from streamgp.data import Batch, Rows, blank_batch
from streamgp.errors import NumericalError
from streamgp.forgetting import Forgetting
from streamgp.generative import Generative
from streamgp.inducing import Strategy
from streamgp.learner import Info, Learner, State
from streamgp.placing import Placer, Points, points_of, settled
from streamgp.progress import Progress, Scores, watched
from streamgp.report import UpdateReport
from streamgp.scaling import spread_of
from streamgp.setup import Setup


@compiled
def _step(
    learner: Learner,
    strategy: Strategy,
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
_CALM = 2.0  # surprise up to which hyperparameters are learned from a world that fades
_GROWTH = 1.5  # of a large batch between two M steps


class Work(NamedTuple):
    """What an update took, and the bound it ended at."""

    bound: float = np.nan
    e_rounds: int = 0
    m_evaluations: int = 0


@dataclasses.dataclass(frozen=True)
class Updater:
    """How a model takes in data: where points go, how it learns, what it forgets."""

    setup: Setup
    placer: Placer
    learner: Learner
    forgetting: Forgetting
    batch_rows: int  # rows that are held in memory together

    # -- a batch -------------------------------------------------------------------------------

    def update(
        self, progress: Progress, rows: Rows, *, learn: bool = True
    ) -> tuple[Progress, UpdateReport]:
        """Fold in rows that came together; hyperparameters are learned if that is due."""
        begin = time.perf_counter()
        before = self._faded(self._ready(progress, rows), progress, rows)
        start = self._start(before, rows)
        learn = learn and self._is_due(progress, rows.size) and not self.is_flat(progress, rows)
        learn = learn and self._is_calm(progress, before, rows)
        fold = self._fold if rows.size <= self.batch_rows else self._fold_in_parts
        after, scores, work = fold(before, rows, start, progress.updates + 1, learn)
        now = progress.after(rows, after, updates=1, learned=learn)
        now, seen = watched(now, rows, scores)
        return now, self.report(progress, now, seen, work, begin)

    def refine(self, progress: Progress) -> tuple[Progress, UpdateReport]:
        """Learn hyperparameters from what is carried, without data."""
        begin, state = time.perf_counter(), progress.state
        assert state is not None
        batch = blank_batch(state.inducing.points.shape[-1])
        after, work, _, _ = self._step(state, batch, None, learn=True)
        now = dataclasses.replace(progress, state=after, learned_at=progress.total)
        return now, self.report(progress, now, Scores({}, {}, ()), work, begin)

    def _ready(self, progress: Progress, rows: Rows) -> State:
        """The state before the rows, with every channel among them on a scale."""
        first = {
            name: rows.y[rows.channel == index]
            for index, name in enumerate(progress.channels)
            if not progress.seen[name] and np.any(rows.channel == index)
        }
        state = progress.state or self.setup.initial(self.learner, rows.x, first)
        return self.setup.introduce(state, first) if first else state

    def _faded(self, state: State, progress: Progress, rows: Rows) -> State:
        advance = float(np.max(rows.x[:, 0])) - progress.latest if progress.updates else 0.0
        share = self.forgetting.share(advance)
        return state if share == 1.0 else self.learner.tempered(state, share)

    def _start(self, before: State, rows: Rows) -> Generative | None:
        """Hyperparameters to begin from: the kernels' anew while all inputs were at one place."""
        known = np.concatenate([rows.x[:0], *points_of(before)])
        if not len(known) or spread_of(known).any():
            return None
        return self.setup.rescaled(before.model, np.concatenate([known, rows.x]), rows.y)

    def _is_due(self, progress: Progress, more: int) -> bool:
        rule = self.learner.learning
        return rule is not None and rule.is_due(progress.total + more, progress.learned_at)

    def is_flat(self, progress: Progress, rows: Rows) -> bool:
        """Whether every channel, these rows included, has shown one value only, of a continuum.

        The density of such data has no bound: an M step would run off to no noise and an endless
        lengthscale, from where the first other value finds no way back.
        """
        levels = progress.levels_with(rows)
        return all(
            level is not None and not self.setup.channels[name].support.is_discrete
            for name, level in levels.items()
        )

    def _is_calm(self, progress: Progress, state: State, rows: Rows) -> bool:
        """Whether the rows are as usual, where the past fades.

        While it contradicts the present, an M step would call the difference noise, and new data
        would count for little against old data that came when noise was small.
        """
        if self.forgetting.factor == 1.0 or not progress.watches:
            return True
        _, scores = watched(progress, rows, self._scores(state, rows))
        return max(scores.surprise.values()) < _CALM

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
            if not (learn and self.placer.follows_kernels):
                break
        assert scores is not None
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

        Exact for Gaussian channels at fixed hyperparameters. Those are learned from ever larger
        shares of the batch, so that the number of M steps grows with its logarithm.
        """
        scores = self._scores(before, rows)
        order = np.random.default_rng(self.setup.seed).permutation(rows.size)
        state, works, learned_at = before, [], 0
        for begin in range(0, rows.size, self.batch_rows):
            part = rows.take(order[begin : begin + self.batch_rows])
            due = learn and begin + part.size >= _GROWTH * learned_at
            state, _, work = self._fold(state, part, start, update, due)
            learned_at = begin + part.size if due else learned_at
            start = state.model
            works.append(work)
        return state, scores, Work(*(sum(column) for column in zip(*works, strict=True)))

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
        self, before: Progress, now: Progress, scores: Scores, work: Work, begin: float
    ) -> UpdateReport:
        """An account of what lies between two points of progress."""
        assert now.state is not None
        old = (0,) * len(points_of(now.state)) if before.state is None else sizes(before.state)
        return UpdateReport(
            update=now.updates,
            channels=now.channels,
            axes=now.schema.axes,
            observations={name: now.seen[name] - before.seen[name] for name in scores.rows},
            log_predictive={name: float(np.mean(row)) for name, row in scores.rows.items()},
            log_predictive_rows=scores.rows,
            surprise=scores.surprise,
            changed=scores.changed,
            bound=work.bound,
            inducing_before=old,
            inducing_after=sizes(now.state),
            _model=now.state.model,
            e_rounds=work.e_rounds,
            m_evaluations=work.m_evaluations,
            seconds=time.perf_counter() - begin,
        )


def sizes(state: State) -> tuple[int, ...]:
    """How many inducing points each latent function has."""
    return tuple(len(points) for points in points_of(state))


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
