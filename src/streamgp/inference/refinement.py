"""Refinement: inducing points moved by gradient to where they serve past and new data best.

The past is read through the points at their new places: with C = L_o⁻¹K_on L_n⁻ᵀ, an old whitened
value is v_o = C·v_n + rest, as the carry rule `Projection` has it. What the rest leaves open costs
½ tr(Λ(I − CCᵀ)) nats beside the bound, so that points with much evidence stay where they are. A
point that has just been added has none, and may go anywhere.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from streamgp.data.batch import Batch
from streamgp.inference.bound_gradient import ByBlock, adjoint, carried_adjoint, gram_adjoints
from streamgp.inference.e_step import Setting
from streamgp.inference.memory import Vector
from streamgp.inference.prior import Points, Prior
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
    found = minimize(
        loss, still, jac=True, method="L-BFGS-B",
        options={"maxfun": evaluations},
    )  # fmt: skip
    return moved(found.x) if found.fun < loss(still)[0] else state.points


class _Place(NamedTuple):
    """A batch and a state whose points may be elsewhere, at fixed hyperparameters and row sites."""

    state: State
    setting: Setting
    mixed: Mixed
    prior: Prior
    rows: RowSites

    def bound(self, points: Points) -> tuple[float, ByPoints]:
        """The bound with the points at these places, and its derivative by every point."""
        model, batch, said = self.setting.model, self.setting.batch, self.state.site
        prior = Prior.of(model, points)
        cross = prior.cross(batch.x)
        projection = prior.project(batch.x, cross)
        to_old = self.prior.cross_to(points) if self.state.count else ()
        maps = [
            solve_lower(chol, solve_lower(old, k).T).T
            for chol, old, k in zip(prior.chols, self.prior.chols, to_old, strict=False)
        ]
        carried = through(said, maps) if maps else said
        setting = Setting(model, batch, self.mixed.features(projection), carried)
        fit, by_rows, blocks = adjoint(setting, self.rows, parameters=False)
        by_design = tuple(block.design for block in blocks)
        by_projection, _ = self.mixed.adjoint(projection, by_design, by_rows.by_covariance)
        lost, by_maps = _by_maps(said, maps, blocks, prior.sizes)
        found, centred = [], batch.x - prior.origin
        for q, kernel in enumerate(prior.kernels):
            z = points[q] - prior.origin
            by_chol = by_old = None
            if maps:
                by_half = solve_lower(prior.chols[q], by_maps[q].T, transpose=True)
                by_chol = -(by_half @ maps[q])
                by_old = solve_lower(self.prior.chols[q], by_half.T, transpose=True).T
            by_gram, by_cross, _ = gram_adjoints(prior, q, projection, by_projection, by_chol)
            # Each point stands in a row and in a column of K(Z, Z), which is symmetric.
            by_z = 2 * kernel.input_gradient(z, z, by_gram, prior.grams[q])
            by_z += kernel.input_gradient(z, centred, by_cross, cross[q])
            if by_old is not None:
                old = self.state.points[q] - prior.origin
                by_z += kernel.input_gradient(z, old, by_old, to_old[q].T)
            found.append(by_z)
        return fit.bound - lost, found


def _by_maps(
    said: Site,
    maps: Sequence[Float[np.ndarray, "M M"]],
    blocks: list[ByBlock],
    sizes: Sequence[int],
) -> tuple[float, list[Float[np.ndarray, "M M"]]]:
    """What the moves leave open of the past, in nats, and the derivatives of the bound by C.

    Those by C are complete: ½ tr(Λ(I − CCᵀ)) is subtracted from the bound.
    """
    if not maps:
        return 0.0, []
    by_maps = carried_adjoint(said, tuple(maps), blocks, sizes).maps
    lost = 0.0
    for q, (begin, end) in enumerate(itertools.pairwise(np.cumsum([0, *sizes]))):
        joint = len(said.precision) == 1
        own = said.precision[0][begin:end, begin:end] if joint else said.precision[q]
        seen = own @ maps[q]
        lost += 0.5 * float(np.trace(own) - np.vdot(maps[q], seen))
        by_maps[q] = by_maps[q] + seen
    return lost, by_maps


def _spacing(points: Points, batch: Batch) -> Float[np.ndarray, " P"]:
    """About the distance between neighbours along each input."""
    known = np.concatenate([*points, batch.x])
    most = max(map(len, points))
    return np.std(known, axis=0) / max(most, 1) ** (1 / known.shape[1])
