"""Placement: move a state to the inducing points that a strategy wants."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Bool

from streamgp.data.batch import Rows
from streamgp.inducing.strategy import AbstractStrategy, View, place
from streamgp.inference.sparse.learner import Learner
from streamgp.inference.sparse.prior import Points, Prior
from streamgp.inference.sparse.pruning import prune
from streamgp.inference.sparse.state import State
from streamgp.model.mixing import latent_precision
from streamgp.model.multitask import MultiTaskGP
from streamgp.parameters import unwrap

_STRETCHES = (128, 32, 8, 1)  # samples that points are placed for together
_FEW = 8  # part of the budget that new points may take before they are learned
_NEARLY_ALL, _COARSE = 0.9, 0.02  # of the budget, and of the variance at past rows
_ROOM = 32  # points from which spare ones go before the number doubles


@dataclasses.dataclass(frozen=True)
class Placer:
    """A strategy at work on states."""

    strategy: AbstractStrategy
    learner: Learner

    def wanted(self, before: State, rows: Rows, model: MultiTaskGP, update: int) -> Points:
        """Where the strategy puts points for these rows, under that model's kernels."""
        return place(self.strategy, _view(before, rows, model, update))

    def settled(self, state: State, rows: Rows) -> Bool[np.ndarray, " N"]:
        """Which rows change no point."""
        return self.strategy.settled(_view(state, rows, state.model, 0))

    @property
    def foresees(self) -> bool:
        """Whether points may be placed before the rows that want them are learned."""
        return self.strategy.can_settle

    @property
    def budget(self) -> int | None:
        """How many points a latent function may have, where there is a limit."""
        return self.strategy.budget

    def exceeds_budget(self, points: Points) -> bool:
        """Whether some latent function would have more points than it may."""
        return self.budget is not None and max(map(len, points)) > self.budget

    @property
    def follows_kernels(self) -> bool:
        """Whether points depend on the kernels, so that they are placed again once these change."""
        return self.strategy.follows_kernels

    def is_starved(self, state: State) -> bool:
        """Whether the past of one input is held so coarsely that it tells nothing of lengthscales.

        Points that are too far apart leave variance open, and an M step would call that noise.
        """
        full = self.budget is not None and max(state.sizes) >= _NEARLY_ALL * self.budget
        if not full or state.points[0].shape[1] > 1:
            return False
        return float(np.max(state.open_variance)) > _COARSE

    def prepared(self, state: State, rows: Rows, update: int) -> tuple[State, bool]:
        """The state with points for the first of these rows, as many as there is room for.

        It loses nothing but, where the budget is full, the points that go for new ones: whether
        there are such is said beside it.
        """
        for size in _STRETCHES:
            ahead = rows.take(slice(size))
            wanted = self.wanted(state, ahead, state.model, update)
            room, points = self.room(state, wanted, ahead)
            if not self.exceeds_budget(points):
                ready = self.move(room, points)
                return ready, not extends(state.points, ready.points)
        return state, False

    def room(self, before: State, points: Points, rows: Rows) -> tuple[State, Points]:
        """Where a few points come to a full budget: the state without those that go for them.

        They go first, and some more with them, so that not every new point has to wait for one.
        Judged together, a new point that has seen little would itself be the one to go. Many new
        points are learned first: then they can be judged with the old ones.
        """
        old = before.points
        if self.budget is None or not extends(old, points):
            return before, points
        fresh = [p[len(o) :] for p, o in zip(points, old, strict=True)]
        more, few = max(map(len, fresh)), max(self.budget // _FEW, 1)
        if not self.exceeds_budget(points) or not 0 < more <= few or not before.count:
            return before, points
        left = self._kept(before, rows, max(self.budget - more - few // 2, 1))
        both = tuple(np.concatenate(pair) for pair in zip(left, fresh, strict=True))
        return self.move(before, left), both

    def placed(self, before: State, points: Points, rows: Rows, start: MultiTaskGP) -> State:
        """The state at these points, ready to learn the rows."""
        room, points = self.room(before, points, rows)
        return self.refined(room, self.move(room, points), rows, start)

    def move(self, before: State, points: Points) -> State:
        """The state at these points. Where they extend the old ones nothing is lost."""
        if extends(before.points, points):
            return extended(before, points)
        return self.learner.move(before, points)

    def refined(self, before: State, moved: State, rows: Rows, start: MultiTaskGP) -> State:
        """The moved state with its new points refined, if the strategy asks for it."""
        evaluations = self.strategy.refinement
        if not evaluations or not extends(before.points, moved.points):
            return moved
        old = [len(z) for z in before.points]
        if old == [len(z) for z in moved.points]:
            return moved
        free = [np.arange(len(z)) >= count for z, count in zip(moved.points, old, strict=True)]
        points = self.learner.refined(moved, rows, free, start, evaluations=evaluations)
        return moved.replace(points=points)  # new points carry no site

    def pruned(self, before: State, state: State, rows: Rows) -> State:
        """The state without the points that its posterior needs least.

        Points go when there are more than the budget. Spare ones also go whenever the number of
        points has grown much: the cost of an update is in that number.
        """
        if self.budget is None:
            return state
        grown = before.count > 0 and _stage(state.points) > _stage(before.points)
        if not self.exceeds_budget(state.points) and not grown:
            return state
        left = self._kept(state, rows, self.budget)
        same = sum(map(len, left)) == sum(map(len, state.points))
        return state if same else self.move(state, left)

    def _kept(self, state: State, rows: Rows, budget: int) -> Points:
        """The points that stay when there may be no more than that of any latent function."""
        kept: Any = self.strategy.kept(state, budget)
        if kept is None:
            spare = self.strategy.spare(_view(state, rows, state.model, 0))
            kept = prune(state.prior, state.site, state.posterior, budget, spare)
        return tuple(z[flags] for z, flags in zip(state.points, kept, strict=True))


def _view(before: State, rows: Rows, model: MultiTaskGP, update: int) -> View:
    same = model is before.model
    plain = before.plain if same else unwrap(model)
    prior = before.prior if same else Prior.of(plain, before.points)
    batch = plain.batch(rows)
    precision = batch.as_they_came(latent_precision(plain, batch).T).T
    return View(before.points, rows.x, prior, update, precision, before.open_variance)


def _stage(points: Points) -> int:
    """How large the largest set of points is, in steps that grow with it.

    At most 32 points, 64, 96, 128, 192, 256 …: cost is cubic in the number.
    """
    most = max(map(len, points))
    if most <= 2 * _ROOM:
        return _ROOM if most <= _ROOM else 2 * _ROOM
    size = 1 << (most - 1).bit_length()
    return size * 3 // 4 if most <= size * 3 // 4 else size


def extends(old: Points, new: Points) -> bool:
    """Whether each latent function's new points are its old ones, in order, and perhaps more."""
    return all(np.array_equal(a, b[: len(a)]) for a, b in zip(old, new, strict=True))


def extended(state: State, points: Points) -> State:
    """The state with further points behind its own. Nothing is lost or computed.

    A Cholesky factor's leading block is that of the leading points, so the whitened values of
    the old points, and with them the site, are the same numbers as before.
    """
    if [len(z) for z in state.points] == (new := [len(z) for z in points]):
        return state
    wider = state.absorbed.extended(state.sizes, new)
    return state.replace(points=points, absorbed=wider)
