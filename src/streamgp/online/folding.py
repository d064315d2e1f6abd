"""Folding: rows into a state, at once or, if they are too many, in parts."""

import dataclasses
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from streamgp.data.batch import Parts, Rows
from streamgp.errors import NumericalError
from streamgp.inducing.engines import Engine
from streamgp.inference.engine import AnyState, Points
from streamgp.inference.scoring import Scored, joined
from streamgp.inference.vem import VEM
from streamgp.model.multitask import MultiTaskGP
from streamgp.online.schedule import Schedule

_PLACEMENTS = 3  # how often one update may place points anew as its kernels are learned
_PASSES = 2  # over a large batch in the order of time, if hyperparameters are learned from it


class Work(NamedTuple):
    """What an update took, the bound it ended at, and whether points had to go for want of room."""

    bound: float = np.nan
    e_rounds: int = 0
    m_evaluations: int = 0
    budget_spent: bool = False


class How(NamedTuple):
    """The number of an update, and whether it learns hyperparameters beside folding its rows in."""

    update: int
    learn: bool


def total(works: Iterable[Work]) -> Work:
    """The work of several pieces together."""
    bounds, rounds, evaluations, spent = zip(*works, strict=True)
    return Work(float(np.sum(bounds)), sum(rounds), sum(evaluations), any(spent))


@dataclasses.dataclass(frozen=True)
class Folding:
    """An engine at work on rows.

    Attributes:
        engine: Places points and learns.
        schedule: When hyperparameters are learned.
        seed: Of random parts.
    """

    engine: Engine
    schedule: Schedule
    seed: int

    @property
    def _together(self) -> int:
        """How many rows are held in memory together."""
        return self.engine.learner.pace.rows

    def with_rule(self, rule: VEM | None) -> "Folding":
        """The same with another rule of learning."""
        learner = self.engine.learner
        if rule is learner.learning:
            return self
        return dataclasses.replace(
            self, engine=self.engine._replace(learner=learner.with_rule(rule))
        )

    def fold(
        self, before: AnyState, rows: Rows, start: MultiTaskGP | None, how: How
    ) -> tuple[Any, Scored, Work]:
        """The state with the rows, their scores before they were learned, and what it took.

        Args:
            before: The state before the rows.
            rows: The new observations.
            start: The hyperparameters to begin from, if not the state's own.
            how: What else to do.
        """
        if rows.size <= self._together:
            return self._at_once(before, rows, start, how)
        if self.engine.learner.pace.in_time:
            return self._in_time(before, rows, start, how)
        return self._in_parts(before, rows, start, how)

    def scores(self, state: AnyState, rows: Rows) -> Scored:
        """The scores of each row, for a bounded number of them at a time."""
        scores = []
        for begin in range(0, rows.size, self._together):
            part = rows.take(slice(begin, begin + self._together))
            scores.append(self.engine.learner.scored(state, part))
        return joined(scores)

    def step(
        self, state: AnyState, rows: Rows, start: MultiTaskGP | None, how: How
    ) -> tuple[Any, Work, Scored]:
        """The state after a step of learning, what it took, and the rows' scores."""
        after, info = self.engine.learner.step(state, rows, start, learn=how.learn)
        check(info.finite)
        work = Work(info.bound, info.e_rounds, info.m_evaluations)
        return after, work, info.scored

    def _at_once(
        self, before: AnyState, rows: Rows, start: MultiTaskGP | None, how: How
    ) -> tuple[Any, Scored, Work]:
        """Place points, learn, and look whether the learned kernels want more points."""
        learn, update, placer = how.learn, how.update, self.engine.placer
        if not learn and update > 1 and placer.settled(before, rows).all():
            after, work, numbers = self.step(before, rows, start, how)
            return after, numbers, work
        points, scores = None, None
        for _ in range(_PLACEMENTS):
            wanted = placer.wanted(before, rows, start or before.model, update)
            if points is not None and _suffice(points, wanted):
                break
            points = wanted
            moved = placer.placed(before, points, rows, start or before.model)
            after, work, numbers = self.step(moved, rows, start, how)
            if scores is None:  # of the rows before anything was learned from them
                scores = numbers
            start = after.model
            if not (learn and placer.follows_kernels):
                break
        assert points is not None
        assert scores is not None
        work = work._replace(budget_spent=placer.exceeds_budget(points))
        return placer.pruned(before, after, rows), scores, work

    def _in_parts(
        self, before: AnyState, rows: Rows, start: MultiTaskGP | None, how: How
    ) -> tuple[Any, Scored, Work]:
        """A batch too large to hold at once, in random parts.

        Hyperparameters are learned from ever larger pieces of it.
        """
        scores, parts = self.scores(before, rows), Parts.of(rows, self._together, self.seed)
        state, works, seen, learned_at = before, [], 0, 0
        for part in parts:
            seen += part.size
            due = how.learn and self.schedule.is_due_in_parts(seen, learned_at)
            state, _, work = self._at_once(state, part, start, how._replace(learn=due))
            learned_at = seen if due else learned_at
            start = state.model
            works.append(work)
        return state, scores, total(works)

    def _in_time(
        self, before: AnyState, rows: Rows, start: MultiTaskGP | None, how: How
    ) -> tuple[Any, Scored, Work]:
        """A batch too large to hold at once, in the order of time.

        If hyperparameters are learned, it is from all parts together, and a second pass puts times
        where the learned kernels want them.
        """
        scores, parts = self.scores(before, rows), Parts.of(rows, self._together, None)
        works, fixed, none = [], how._replace(learn=False), rows.take(slice(0))
        for _ in range(_PASSES if how.learn else 1):
            state = before if start is None else before.replace(model=start)
            works = [Work(0.0)]
            for part in parts:
                state, _, work = self._at_once(state, part, None, fixed)
                works.append(work)
            if how.learn:
                state, work, _ = self.step(state, none, None, how)
                works.append(work)
                start = state.model
        return state, scores, total(works)


def check(finite: bool) -> None:
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
