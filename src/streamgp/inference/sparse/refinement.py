"""Refinement: new inducing points moved by gradient to where they serve a batch best.

A point that has just been added has no evidence yet, and may go anywhere: what the past says of the
points before it stays the same numbers.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from streamgp.data.batch import Batch
from streamgp.inference.m_step import Vector
from streamgp.inference.sites import RowSites
from streamgp.inference.sparse.bound_gradient import adjoint, point_gradient
from streamgp.inference.sparse.episode import Episode, Options, Trial
from streamgp.inference.sparse.prior import Points, Prior
from streamgp.inference.sparse.setting import SparseSetting
from streamgp.inference.sparse.state import State
from streamgp.model.multitask import MultiTaskGP

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
    """The state's points, new ones elsewhere, at a higher bound of past and batch together.

    Hyperparameters stay, and so do the rows' sites, as in an M step.

    Args:
        state: With all points, new ones behind the others.
        batch: The new rows.
        start: The hyperparameters. While there is a past, those of the state count.
        free: Which points of each latent function are new: the past says nothing of them.
        options: How E steps are made.
        evaluations: How often the bound may be evaluated.
    """
    from scipy.optimize import minimize  # here, because it is slow to import

    model = state.model if state.count else start
    episode = Episode(state, batch, options)
    here = episode.trial(model)
    rows = episode.learn(here, None).fit.rows
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
        value, by_points = _bound(here, rows, batch, moved(shift))
        parts = [np.ravel(by[flags] * unit) for by, flags in zip(by_points, free, strict=True)]
        gradient = np.concatenate(parts) / size
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return np.inf, np.zeros(len(shift))
        return -value / size, -gradient

    still = np.zeros(ends[-1])
    found = minimize(loss, still, jac=True, method="L-BFGS-B", options={"maxfun": evaluations})
    return moved(found.x) if found.fun < loss(still)[0] else state.points


def _bound(here: Trial, rows: RowSites, batch: Batch, points: Points) -> tuple[float, ByPoints]:
    """The bound with the points at these places, and its derivative by every point."""
    there, mixed = Prior.of(here.setting.model, points), here.mixed
    cross = there.cross(batch.x)
    projection = there.project(batch.x, cross)
    setting = SparseSetting(
        here.setting.model, batch, mixed.features(projection), here.setting.carried
    )
    fit, by_rows, by = adjoint(setting, rows, parameters=False)
    by_projection, _ = mixed.adjoint(projection, by.design, by_rows.by_covariance)
    return fit.bound, point_gradient(there, batch.x, cross, projection, by_projection)


def _spacing(points: Points, batch: Batch) -> Float[np.ndarray, " P"]:
    """About the distance between neighbours along each input."""
    known = np.concatenate([*points, batch.x])
    most = max(map(len, points))
    return np.std(known, axis=0) / max(most, 1) ** (1 / known.shape[1])
