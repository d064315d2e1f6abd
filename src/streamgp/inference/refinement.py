"""Refinement: inducing points moved by gradient to where they serve past and new data best.

The past is read through the points at their new places. Cells are seen through them anew. Without
cells, with C = L_o⁻¹K_on L_n⁻ᵀ an old whitened value is v_o = C·v_n + rest, as `carry`
`Projection` has it. What the rest leaves open costs ½ tr(Λ(I − CCᵀ)) nats beside the bound, so that
points with much evidence stay where they are. A point that has just been added has none, and may go
anywhere.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from streamgp.data.batch import Batch
from streamgp.inference.bound_gradient import (
    BySite,
    adjoint,
    carried_adjoint,
    point_gradient,
)
from streamgp.inference.carry import transitions
from streamgp.inference.e_step import DenseSetting, Fit
from streamgp.inference.memory import Vector
from streamgp.inference.prior import Factors, Points, Prior
from streamgp.inference.sites import RowSites, Site, through
from streamgp.inference.state import State
from streamgp.inference.vem import Episode, Options, Trial
from streamgp.model.multitask import MultiTaskGP
from streamgp.numerics.linalg import solve_lower

ByPoints = list[Float[np.ndarray, "_ P"]]


def refine_points(
    state: State,
    batch: Batch,
    start: MultiTaskGP,
    free: Sequence[Bool[np.ndarray, " _"]],
    options: Options,
    *,
    evaluations: int,
) -> Points:
    """The state's points, some of them elsewhere, at a higher bound of past and batch together.

    Hyperparameters stay, and so do the rows' sites, as in an M step.

    Args:
        state: With all points. Those that were just added have no site yet.
        batch: The new rows.
        start: The hyperparameters. While there is a past, those of the state count.
        free: Which points of each latent function may move.
        options: How E steps are made.
        evaluations: How often the bound may be evaluated.
    """
    from scipy.optimize import minimize  # here, because it is slow to import

    model = state.model if state.count else start
    episode = Episode(state, batch, options)
    here = episode.trial(model)
    rows = episode.learn(here, None).fit.rows
    place = _Place(state, here, rows)
    unit = _spacing(state.points, batch)
    ends = np.cumsum([int(flags.sum()) * len(unit) for flags in free])
    size = max(batch.size, 1)

    def moved(shift: Vector) -> Points:
        points = []
        for z, flags, piece in zip(state.points, free, np.split(shift, ends[:-1]), strict=True):
            z = z.copy()
            z[flags] += piece.reshape(-1, len(unit)) * unit
            points.append(z)
        return tuple(points)

    def loss(shift: Vector) -> tuple[float, Vector]:
        value, by_points = place.bound(moved(shift))
        parts = [np.ravel(by[flags] * unit) for by, flags in zip(by_points, free, strict=True)]
        gradient = np.concatenate(parts) / size
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return np.inf, np.zeros(len(shift))
        return -value / size, -gradient

    still = np.zeros(ends[-1])
    found = minimize(loss, still, jac=True, method="L-BFGS-B", options={"maxfun": evaluations})
    return moved(found.x) if found.fun < loss(still)[0] else state.points


class _Place(NamedTuple):
    """A batch and a state whose points may be elsewhere, at fixed hyperparameters and row sites."""

    state: State
    here: Trial
    rows: RowSites

    def bound(self, points: Points) -> tuple[float, ByPoints]:
        """The bound with the points at these places, and its derivative by every point."""
        there = Prior.of(self.here.setting.model, points)
        return self._of_cells(there) if self.here.seen else self._of_sums(there)

    def _of_cells(self, there: Prior) -> tuple[float, ByPoints]:
        model, reading, seen = self.here.setting.model, self.here.reading, self.here.seen
        assert seen is not None
        seen = dataclasses.replace(seen, prior=there)
        past = seen.past(model)
        fit, by, by_points = self._of_rows(there, reading.site(past))
        by_cells = seen.by_projection(model, by.linear, by.precision)
        found = [*map(np.add, by_points, seen.by_points(by_cells))]
        return fit.bound + reading.beside(past), found

    def _of_sums(self, there: Prior) -> tuple[float, ByPoints]:
        said, way = self.state.site, _Way.of(self.here.prior, there)
        fit, by, found = self._of_rows(there, through(said, way.maps))
        by_maps, lost = carried_adjoint(said, way.maps, by, there.sizes).maps, 0.0
        for q, kernel in enumerate(there.kernels):
            own = _own(said, q, there.sizes)
            lost += way.lost(q, own)
            by_chol, by_old = way.adjoint(q, by_maps[q] + own @ way.maps[q])
            z, old = there.points[q] - there.origin, self.state.points[q] - there.origin
            by_gram = there.gram_adjoint(q, by_chol)
            found[q] += 2 * kernel.input_gradient(z, z, by_gram, there.grams[q])
            found[q] += kernel.input_gradient(z, old, by_old, way.cross[q].T)
        return fit.bound - lost, found

    def _of_rows(self, there: Prior, said: Site) -> tuple[Fit, BySite, ByPoints]:
        """The fit of the new rows beside what the past says, and what they ask of the points."""
        model, batch, mixed = self.here.setting.model, self.here.setting.batch, self.here.mixed
        cross = there.cross(batch.x)
        projection = there.project(batch.x, cross)
        setting = DenseSetting(model, batch, mixed.features(projection), said)
        fit, by_rows, by = adjoint(setting, self.rows, parameters=False)
        by_projection, _ = mixed.adjoint(projection, by.design, by_rows.by_covariance)
        by_points = point_gradient(there, batch.x, cross, projection, by_projection)
        return fit, by, by_points


class _Way(NamedTuple):
    """From old places of the points to new ones, C = L_o⁻¹K_on L_n⁻ᵀ of each latent function."""

    old: Prior
    new: Prior
    cross: Factors  # K_on
    maps: Factors  # C

    @classmethod
    def of(cls, old: Prior, new: Prior) -> "_Way":
        cross = old.cross_to(new.points)
        return cls(old, new, cross, tuple(t.T for t in transitions(old, new, cross)))

    def lost(self, q: int, precision: Float[np.ndarray, "M M"]) -> float:
        """½ tr(Λ(I − CCᵀ)): what is open of the past that was not before, in nats."""
        c = self.maps[q]
        return 0.5 * float(np.trace(precision) - np.vdot(c, precision @ c))

    def adjoint(
        self, q: int, by_map: Float[np.ndarray, "M M"]
    ) -> tuple[Float[np.ndarray, "_M _M"], Float[np.ndarray, "M M"]]:
        """Derivatives by L_n and by K_no, from those by C."""
        by_half = solve_lower(self.new.chols[q], by_map.T, transpose=True)
        by_cross = solve_lower(self.old.chols[q], by_half.T, transpose=True).T
        return -(by_half @ self.maps[q]), by_cross


def _own(said: Site, q: int, sizes: Sequence[int]) -> Float[np.ndarray, "M M"]:
    """The part of Λ that is about one latent function."""
    begin = sum(sizes[:q])
    return said.precision[begin : begin + sizes[q], begin : begin + sizes[q]]


def _spacing(points: Points, batch: Batch) -> Float[np.ndarray, " P"]:
    """About the distance between neighbours along each input."""
    known = np.concatenate([*points, batch.x])
    most = max(map(len, points))
    return np.std(known, axis=0) / max(most, 1) ** (1 / known.shape[1])
