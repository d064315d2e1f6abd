"""Scatter: what the function does within a cell is not called noise.

Values y, y' of two cells of masses m and n differ by noise and by f − f'. Once the cells are
joined only their sum is known, and all of mn/(m + n) (y − y')² would be left to the noise. What
E_q[f − f'] explains of that is remembered, with the direction in which the function changed.
Where later hyperparameters or points let it change less in that direction, less is explained:
2κ − κ² of it, with κ the change now as a part of the change then.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from streamgp.inference.cells import Cells
from streamgp.inference.posterior import Posterior
from streamgp.inference.prior import Prior
from streamgp.inference.seen_cells import SeenCells
from streamgp.model.multitask import MultiTaskGP
from streamgp.numerics.linalg import solve_lower

_SHORT = 1e-3  # a step in such a direction, in standard deviations of the inputs
_LEAST = 1e-12  # of the largest change: where it is less, nothing was explained


class Steps(NamedTuple):
    """What is remembered of pairs of cells that become one, for each pair.

    Attributes:
        path: mn/(m + n) (x − x')δ, with δ the change E_q[f − f'] of the function.
        varied: mn/(m + n) δ².
        explained: mn/(m + n) times (y − y')² − E_q[(y − y' − f + f')²].
    """

    path: Float[np.ndarray, "n P"]
    varied: Float[np.ndarray, " n"]
    explained: Float[np.ndarray, " n"]


def steps(
    model: MultiTaskGP,
    cells: Cells,
    pairs: tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]],
    prior: Prior,
    posterior: Posterior,
) -> Steps:
    """What to remember of pairs of cells. Where noise does not scale sites, that is nothing."""
    scaling = np.array([channel.likelihood.scales_sites for channel in model.channels])
    known = scaling[cells.channel[pairs[0]]]
    one, other = (own[known] for own in pairs)
    design = _design(model, cells, prior)
    step = design[one] - design[other]  # of f − f' as a map of v
    change = step @ posterior.mean
    spread = np.sum(solve_lower(posterior.chol, step.T) ** 2, axis=0)
    m, n = np.maximum(cells.mass[one], 1e-300), np.maximum(cells.mass[other], 1e-300)
    apart = cells.linear[one, 0] / m - cells.linear[other, 0] / n
    weight = m * n / (m + n)
    found = Steps(np.zeros((len(known), cells.x.shape[1])), *np.zeros((2, len(known))))
    found.path[known] = (weight * change)[:, None] * (cells.x[one] - cells.x[other])
    found.varied[known] = weight * change**2
    found.explained[known] = weight * (2 * apart * change - change**2 - spread)
    return found


def energy_left(
    model: MultiTaskGP, cells: Cells, prior: Prior, posterior: Posterior
) -> Float[np.ndarray, " D"]:
    """Σ P⁻¹b² of each channel without what the function explains within its cells."""
    own = np.flatnonzero(cells.varied > _LEAST * np.max(cells.varied, initial=0.0))
    if not len(own):
        return cells.energy
    joined = cells.taken(own)
    size = np.max(np.abs(joined.path) / np.maximum(np.std(cells.x, axis=0), 1e-300), axis=1)
    short = _SHORT / np.maximum(size, 1e-300)
    there = joined.moved(model, short[:, None] * joined.path)
    step = _design(model, there, prior) - _design(model, joined, prior)
    part = np.clip(step @ posterior.mean / (short * joined.varied), 0.0, 2.0)  # κ
    explained = (2 * part - part**2) * joined.explained
    return cells.energy - np.bincount(joined.channel, explained, len(model.channels))


def _design(model: MultiTaskGP, cells: Cells, prior: Prior) -> Float[np.ndarray, "C S"]:
    """The first latent parameter at each cell as a linear map of v."""
    batch = cells.batch(model)
    place = np.empty(cells.size, int)
    for group in batch.groups:
        place[batch.order[group.rows]] = np.arange(group.flat.start, group.flat.stop, group.latents)
    return SeenCells(cells, batch, prior, cells.energy).design(model)[1][place]
