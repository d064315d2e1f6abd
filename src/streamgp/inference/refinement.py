"""Refinement: inducing points moved by gradient to where they serve past and new data best.

The past is read through the points at their new places: with C = L_o⁻¹K_on L_n⁻ᵀ, an old whitened
value is v_o = C·v_n + rest, as the carry rule `Projection` has it. What the rest leaves open costs
½ tr(Λ(I − CCᵀ)) nats beside the bound, so that points with much evidence stay where they are. A
point that has just been added has none, and may go anywhere.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from streamgp.data.batch import Batch
from streamgp.inference.bound_gradient import adjoint, carried_adjoint, gram_adjoints
from streamgp.inference.carry import transitions
from streamgp.inference.e_step import DenseSetting
from streamgp.inference.memory import Vector
from streamgp.inference.prior import Factors, Points, Prior
from streamgp.inference.sites import RowSites, Site, through
from streamgp.inference.state import State
from streamgp.inference.vem import Episode, Options
from streamgp.model.mixing import Mixed
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
    place = _Place(state, here.setting, here.mixed, here.prior, rows)
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
    setting: DenseSetting
    mixed: Mixed
    prior: Prior
    rows: RowSites

    def bound(self, points: Points) -> tuple[float, ByPoints]:
        """The bound with the points at these places, and its derivative by every point."""
        model, batch, said = self.setting.model, self.setting.batch, self.state.site
        there = Prior.of(model, points)
        cross = there.cross(batch.x)
        projection = there.project(batch.x, cross)
        way = _Way.of(self.prior, there)
        features = self.mixed.features(projection)
        setting = DenseSetting(model, batch, features, through(said, way.maps))
        fit, by_rows, blocks = adjoint(setting, self.rows, parameters=False)
        by_design = tuple(block.design for block in blocks)
        by_projection, _ = self.mixed.adjoint(projection, by_design, by_rows.by_covariance)
        by_maps = carried_adjoint(said, way.maps, blocks, there.sizes).maps
        lost, found, centred = 0.0, [], batch.x - there.origin
        for q, kernel in enumerate(there.kernels):
            own = _own(said, q, there.sizes)
            lost += way.lost(q, own)
            by_chol, by_old = way.adjoint(q, by_maps[q] + own @ way.maps[q])
            by_gram, by_cross, _ = gram_adjoints(there, q, projection, by_projection, by_chol)
            z, old = points[q] - there.origin, self.state.points[q] - there.origin
            # Each point stands in a row and in a column of K(Z, Z), which is symmetric.
            by_z = 2 * kernel.input_gradient(z, z, by_gram, there.grams[q])
            by_z += kernel.input_gradient(z, centred, by_cross, cross[q])
            by_z += kernel.input_gradient(z, old, by_old, way.cross[q].T)
            found.append(by_z)
        return fit.bound - lost, found


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
    if len(said.precision) > 1:
        return said.precision[q]
    begin = sum(sizes[:q])
    return said.precision[0][begin : begin + sizes[q], begin : begin + sizes[q]]


def _spacing(points: Points, batch: Batch) -> Float[np.ndarray, " P"]:
    """About the distance between neighbours along each input."""
    known = np.concatenate([*points, batch.x])
    most = max(map(len, points))
    return np.std(known, axis=0) / max(most, 1) ** (1 / known.shape[1])
