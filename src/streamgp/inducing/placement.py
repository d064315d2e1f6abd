"""Placement: move a state to the inducing points that a strategy wants."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
import paramax
from jaxtyping import Array, Bool, Float, Int
from tinygp.kernels import Kernel

from streamgp.data import Batch, Rows
from streamgp.inducing.slots import extended, extends, inducing
from streamgp.inducing.strategy import AbstractStrategy, View, place
from streamgp.inference.learner import Learner, State
from streamgp.inference.pruning import prune
from streamgp.model.multitask import Generative
from streamgp.numerics.compiling import compiled

_move = compiled(Learner.move)


@compiled
def _refined(
    learner: Learner,
    state: State,
    batch: Batch,
    fresh: Bool[Array, "Q M"],
    start: Generative,
    evaluations: int,
) -> State:
    return learner.refined(state, batch, fresh, start, evaluations=evaluations)


@compiled
def _seen(model: Generative, batch: Batch) -> tuple[tuple[Kernel, ...], Float[Array, "Q N"]]:
    """The latent functions' kernels, and how precisely each row observes them."""
    plain = paramax.unwrap(model)
    return plain.latent_kernels, plain.latent_precision(batch)


def settled(strategy: AbstractStrategy, state: State, batch: Batch) -> Bool[Array, " N"]:
    """Which rows are known to change no point; none where the strategy cannot tell."""
    plain, slots = paramax.unwrap(state.model), state.inducing
    precision = plain.latent_precision(batch)
    return strategy.settled(plain.latent_kernels, slots.points, slots.mask, batch.x, precision)


_settled = compiled(settled)


@compiled
def _pruned(
    strategy: AbstractStrategy, state: State, batch: Batch, budget: Int[Array, ""]
) -> Bool[Array, "Q M"]:
    plain = paramax.unwrap(state.model)
    precision = plain.latent_precision(batch)
    spare = [
        strategy.spare(kernel, batch.x, p)
        for kernel, p in zip(plain.latent_kernels, precision, strict=True)
    ]
    return prune(plain, state.inducing, state.site, budget, jnp.asarray(spare, float))


_STRETCHES = (128, 32, 8, 1)  # samples that points are placed for together
_FEW = 8  # part of the budget that new points may take before they are learned

Points = tuple[Float[np.ndarray, "_ P"], ...]


@dataclasses.dataclass(frozen=True)
class Placer:
    """A strategy at work on states."""

    strategy: AbstractStrategy
    learner: Learner

    def wanted(self, before: State, rows: Rows, model: Generative, update: int) -> Points:
        """Where the strategy puts points for these rows, under that model's kernels."""
        return place(self.strategy, self._view(before, rows, model, update))

    def settled(self, state: State, batch: Batch) -> Bool[np.ndarray, " N"]:
        """Which rows change no point."""
        return np.asarray(_settled(self.strategy, state, batch))

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

    def prepared(self, state: State, rows: Rows, update: int) -> State:
        """The state with points for the first of these rows, as many as there is room for.

        It loses nothing but, where the budget is full, the points that go for new ones.
        """
        for size in _STRETCHES:
            ahead = rows.take(slice(size))
            room, points = self.room(
                state, self.wanted(state, ahead, state.model, update), ahead.pack()
            )
            if not self.exceeds_budget(points):
                return self.move(room, points)
        return state

    def room(self, before: State, points: Points, batch: Batch) -> tuple[State, Points]:
        """Where a few points come to a full budget: the state without those that go for them.

        They go first, and some more with them, so that not every new point has to wait for one.
        Judged together, a new point that has seen little would itself be the one to go. Many new
        points are learned first: then they can be judged with the old ones.
        """
        old = points_of(before)
        if self.budget is None or not extends(old, points):
            return before, points
        fresh = [p[len(o) :] for p, o in zip(points, old, strict=True)]
        more, few = max(map(len, fresh)), max(self.budget // _FEW, 1)
        if not self.exceeds_budget(points) or not 0 < more <= few or not before.count:
            return before, points
        left = self._kept(before, batch, max(self.budget - more - few // 2, 1))
        both = tuple(np.concatenate(pair) for pair in zip(left, fresh, strict=True))
        return self.move(before, left), both

    def move(self, before: State, points: Points) -> State:
        """The state at these points. Where they extend the old ones nothing is computed."""
        if extends(points_of(before), points):
            return extended(before, inducing(points))
        return _move(self.learner, before, inducing(points))

    def refined(self, before: State, moved: State, batch: Batch, start: Generative) -> State:
        """The moved state with its new points refined, if the strategy asks for it."""
        old, new = points_of(before), points_of(moved)
        if not self.strategy.refinement or not extends(old, new):
            return moved
        slots = np.arange(moved.inducing.mask.shape[1])
        known = np.asarray([len(points) for points in old])
        fresh = np.asarray(moved.inducing.mask) & (slots >= known[:, None])
        return _refined(
            self.learner, moved, batch, jnp.asarray(fresh), start, self.strategy.refinement
        )

    def pruned(self, before: State, state: State, batch: Batch) -> State:
        """The state without the points that its posterior needs least.

        Points go when there are more than the budget, and spare ones before a larger padded size
        than that of the state before is opened: the cost of an update is in that size.
        """
        if self.budget is None:
            return state
        grown = state.inducing.mask.shape > before.inducing.mask.shape and before.count > 0
        if not self.exceeds_budget(points_of(state)) and not grown:
            return state
        left = self._kept(state, batch, self.budget)
        return (
            state if sum(map(len, left)) == np.sum(state.inducing.mask) else self.move(state, left)
        )

    def _kept(self, state: State, batch: Batch, budget: int) -> Points:
        """The points that stay when there may be no more than that of any latent function."""
        kept: Any = self.strategy.kept(state, budget)
        if kept is None:
            kept = _pruned(self.strategy, state, batch, jnp.asarray(budget))
        points = np.asarray(state.inducing.points)
        return tuple(p[k] for p, k in zip(points, np.asarray(kept), strict=True))

    def _view(self, before: State, rows: Rows, model: Generative, update: int) -> View:
        kernels, precision = _seen(model, rows.pack())
        seen = np.asarray(precision)[:, : rows.size]
        return View(points_of(before), rows.x, kernels, update, seen)


def points_of(state: State) -> Points:
    """The inducing points of each latent function."""
    points, mask = np.asarray(state.inducing.points), np.asarray(state.inducing.mask)
    return tuple(p[m] for p, m in zip(points, mask, strict=True))
