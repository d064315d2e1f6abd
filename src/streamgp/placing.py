"""Placing: move a state to the inducing points that a strategy wants."""

import dataclasses
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import paramax
from jaxtyping import Array, Bool, Float, Int

from streamgp import setup
from streamgp.data import Batch, Rows
from streamgp.generative import Generative
from streamgp.inducing import Refined, Strategy, View, place
from streamgp.inference.pruning import prune
from streamgp.learner import Learner, State

_move = eqx.filter_jit(Learner.move)


@eqx.filter_jit
def _refined(
    learner: Learner,
    state: State,
    batch: Batch,
    fresh: Bool[Array, "Q M"],
    start: Generative,
    evaluations: int,
) -> State:
    return learner.refined(state, batch, fresh, start, evaluations=evaluations)


_latent_precision = eqx.filter_jit(Generative.latent_precision)


def settled(strategy: Any, state: State, batch: Batch) -> Bool[Array, " N"]:
    """Which rows are known to change no point; none where the strategy cannot tell."""
    if not hasattr(strategy, "settled"):
        return jnp.zeros(len(batch.y), bool)
    plain, inducing = paramax.unwrap(state.model), state.inducing
    precision = plain.latent_precision(batch)
    kernels = plain.latent_kernels
    return strategy.settled(kernels, inducing.points, inducing.mask, batch.x, precision)


_settled = eqx.filter_jit(settled)


@eqx.filter_jit
def _pruned(
    strategy: Any, state: State, batch: Batch, budget: Int[Array, ""]
) -> Bool[Array, "Q M"]:
    plain = paramax.unwrap(state.model)
    precision = plain.latent_precision(batch)
    spare = [
        strategy.spare(kernel, batch.x, p)
        for kernel, p in zip(plain.latent_kernels, precision, strict=True)
    ]
    return prune(plain, state.inducing, state.site, budget, jnp.stack(spare))


Points = tuple[Float[np.ndarray, "_ P"], ...]


@dataclasses.dataclass(frozen=True)
class Placer:
    """A strategy at work on states."""

    strategy: Strategy
    learner: Learner

    def wanted(self, before: State, rows: Rows, model: Generative, update: int) -> Points:
        """Where the strategy puts points for these rows, under that model's kernels."""
        return place(self.strategy, self._view(before, rows, model, update))

    def settled(self, state: State, batch: Batch) -> Bool[np.ndarray, " N"]:
        """Which rows change no point."""
        return np.asarray(_settled(self.strategy, state, batch))

    @property
    def follows_kernels(self) -> bool:
        """Whether other kernels would mean other points for the same rows."""
        return getattr(self.strategy, "follows_kernels", False)

    def move(self, before: State, points: Points) -> State:
        """The state at these points. Where they extend the old ones nothing is computed."""
        if setup.extends(points_of(before), points):
            return setup.extended(before, setup.inducing(points))
        return _move(self.learner, before, setup.inducing(points))

    def refined(self, before: State, moved: State, batch: Batch, start: Generative) -> State:
        """The moved state with its new points refined, if the strategy asks for it."""
        old, new = points_of(before), points_of(moved)
        if not isinstance(self.strategy, Refined) or not setup.extends(old, new):
            return moved
        slots = np.arange(moved.inducing.mask.shape[1])
        known = np.asarray([len(points) for points in old])
        fresh = np.asarray(moved.inducing.mask) & (slots >= known[:, None])
        return _refined(
            self.learner, moved, batch, jnp.asarray(fresh), start, self.strategy.evaluations
        )

    def pruned(self, before: State, state: State, batch: Batch) -> State:
        """The state without the points that its posterior needs least.

        Points go when there are more than the budget, and spare ones before a larger padded size
        than that of the state before is opened: the cost of an update is in that size.
        """
        budget = getattr(self.strategy, "budget", None)
        if budget is None:
            return state
        most = max(map(len, points_of(state)))
        grown = state.inducing.mask.shape > before.inducing.mask.shape and before.count > 0
        if most <= budget and not grown:
            return state
        drop = getattr(self.strategy, "drop", None)
        if drop is None:
            kept = _pruned(self.strategy, state, batch, jnp.asarray(budget))
        else:
            kept = drop(state, budget)
        points = np.asarray(state.inducing.points)
        left = tuple(p[k] for p, k in zip(points, np.asarray(kept), strict=True))
        return (
            state if sum(map(len, left)) == np.sum(state.inducing.mask) else self.move(state, left)
        )

    def _view(self, before: State, rows: Rows, model: Generative, update: int) -> View:
        plain = paramax.unwrap(model)
        precision = np.asarray(_latent_precision(plain, rows.pack()))[:, : rows.size]
        return View(points_of(before), rows.x, plain.latent_kernels, update, precision)


def points_of(state: State) -> Points:
    """The inducing points of each latent function."""
    points, mask = np.asarray(state.inducing.points), np.asarray(state.inducing.mask)
    return tuple(p[m] for p, m in zip(points, mask, strict=True))
