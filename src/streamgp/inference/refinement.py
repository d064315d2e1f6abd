"""Refinement: new inducing points moved by gradient to where they serve their batch best.

A point that has just been added carries no site, so it may go anywhere without a loss: the factor
of the points before it, and all that is whitened by it, stay the same numbers.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Batch
from streamgp.inference.bound_gradient import (
    adjoint,
    gram_adjoints,
)
from streamgp.inference.m_step import maximise
from streamgp.inference.memory import Vector
from streamgp.inference.prior import Points
from streamgp.inference.sites import RowSites
from streamgp.inference.state import State
from streamgp.inference.vem import Episode, Options, Trial
from streamgp.model.multitask import MultiTaskGP


def refine_points(
    state: State,
    batch: Batch,
    start: MultiTaskGP,
    old: Sequence[int],
    options: Options,
    *,
    evaluations: int,
) -> Points:
    """The state's points with the new ones, which follow all others, at a higher bound.

    Hyperparameters stay, and so do the rows' sites, as in an M step.

    Args:
        state: With the new points among its points.
        batch: The rows that the new points are for.
        start: The hyperparameters.
        old: How many points of each latent function are not new.
        options: How E steps are made.
        evaluations: How often the bound may be evaluated.
    """
    fresh = [slice(count, len(z)) for count, z in zip(old, state.points, strict=True)]
    unit = _unit(batch, max(len(z) - count for count, z in zip(old, state.points, strict=True)))
    shapes = [z[part].shape for z, part in zip(state.points, fresh, strict=True)]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])

    def moved(shift: Vector) -> Points:
        points = []
        pieces = np.split(shift, ends[:-1])
        for z, part, shape, piece in zip(state.points, fresh, shapes, pieces, strict=True):
            z = z.copy()
            z[part] += piece.reshape(shape) * unit
            points.append(z)
        return tuple(points)

    def trial(shift: Vector) -> Trial:
        there = state.replace(points=moved(shift))
        return Episode(there, batch, options).trial(
            start if start is not state.model else there.model
        )

    still = np.zeros(ends[-1])
    episode = Episode(state, batch, options)
    rows = episode.learn(episode.trial(start), None).fit.rows
    size = max(batch.size, 1)

    def objective(shift: Vector) -> tuple[float, Vector]:
        value, by_points = _bound(trial(shift), rows)
        parts = [np.ravel(by[part] * unit) for by, part in zip(by_points, fresh, strict=True)]
        return value / size, np.concatenate(parts) / size

    best, _ = maximise(objective, still, evaluations=evaluations)
    return moved(best)


def _bound(trial: Trial, held: RowSites) -> tuple[float, list[Float[np.ndarray, "_ P"]]]:
    """The bound with the rows' sites held, and its derivative by every inducing point."""
    fit, by_rows, blocks = adjoint(trial.setting, held, parameters=False)
    by_design = tuple(block.design for block in blocks)
    by_projection, _ = trial.mixed.adjoint(trial.projection, by_design, by_rows.by_covariance)
    prior, found = trial.prior, []
    centred = trial.setting.batch.x - prior.origin
    for q, kernel in enumerate(prior.kernels):
        by_gram, by_cross, _ = gram_adjoints(prior, q, trial.projection, by_projection)
        z = prior.points[q] - prior.origin
        # Each point stands in a row and in a column of K(Z, Z), which is symmetric.
        by_z = 2 * kernel.input_gradient(z, z, by_gram, prior.grams[q])
        found.append(by_z + kernel.input_gradient(z, centred, by_cross, trial.cross[q]))
    return fit.bound, found


def _unit(batch: Batch, most: int) -> Float[np.ndarray, " P"]:
    """About the distance between neighbours, were the new points spread over the batch."""
    return np.std(batch.x, axis=0) / max(most, 1)
