"""Pruning: which inducing points can go at the least cost to the bound.

Dropping point i leaves the whitened direction that only it can express to the prior. With w the
i-th column of L⁻¹ and ŵ = w/‖w‖, that costs the bound

    ½ [ (ŵᵀm)² / ŵᵀSŵ + log ŵᵀSŵ + ŵᵀ(I + Λ)ŵ − 1 ],   S = (I + Λ)⁻¹, m the mean of v:

the evidence that is lost with the direction, and the variance that data had explained and that is
open from now on (`carry`). Dropping it projects ŵ out of the other columns and
conditions q on nothing being known along it, so points are dropped one at a time, each judged by
what is left.
"""

import itertools

import numpy as np
from jaxtyping import Bool, Float
from scipy.linalg import block_diag

from streamgp.inference.posterior import Posterior
from streamgp.inference.sites import Site
from streamgp.inference.sparse.prior import Prior
from streamgp.numerics.linalg import solve_lower, symmetric


class _Search:
    """Column by column: w, and its products with itself, I + Λ, S and m."""

    def __init__(self, prior: Prior, site: Site, posterior: Posterior):
        self.precision = symmetric(site.precision) + np.eye(len(site.precision))
        self.covariance, self.mean = posterior.covariance, posterior.mean
        w = block_diag(*[solve_lower(chol, np.eye(len(chol))) for chol in prior.chols])
        # The weights of the mean functions are part of v, but no point expresses them.
        w = np.pad(w, ((0, len(self.mean) - len(w)), (0, 0)))
        self.directions = w
        self.size = np.sum(w**2, axis=0)
        self.said = np.sum(w * (self.precision @ w), axis=0)
        self.left = np.sum(w * (self.covariance @ w), axis=0)
        self.moved = self.mean @ w
        self.kept = np.ones(w.shape[1], bool)

    def costs(self) -> Float[np.ndarray, " S"]:
        """What dropping each point alone would cost the bound, in nats."""
        size = np.where(self.kept, self.size, 1.0)  # of those that went, nothing is left
        said = self.said / size
        left = np.maximum(self.left / size, 1e-300)
        return 0.5 * (self.moved**2 / (size * left) + np.log(left) + said - 1)

    def drop(self, index: int) -> None:
        """One point less, by rank-one changes: w ← w − ŵŵᵀw; S and m given nothing along ŵ."""
        unit = self.directions[:, index] / np.sqrt(self.size[index])
        part = unit @ self.directions
        pulled, spread, mean = self.precision @ unit, self.covariance @ unit, unit @ self.mean
        own = unit @ spread
        crossed = spread @ self.directions
        rest = crossed - own * part  # ŵᵀS of the other columns, once ŵ is out of them
        self.said = self.said - 2 * part * (pulled @ self.directions) + part**2 * (unit @ pulled)
        self.left = self.left - 2 * part * crossed + part**2 * own - rest**2 / own
        self.moved = self.moved - part * mean - rest * (mean / own)
        self.size = np.maximum(self.size - part**2, 1e-300)
        self.directions = self.directions - np.outer(unit, part)
        self.covariance = self.covariance - np.outer(spread, spread) / own
        self.mean = self.mean - spread * (mean / own)
        self.kept[index] = False


def costs(prior: Prior, site: Site, posterior: Posterior) -> list[Float[np.ndarray, " _"]]:
    """What dropping each point alone would cost the bound, in nats, per latent function."""
    ends = np.cumsum(prior.sizes)[:-1]
    return np.split(_Search(prior, site, posterior).costs(), ends)


def prune(
    prior: Prior,
    site: Site,
    posterior: Posterior,
    budget: int,
    spare: Float[np.ndarray, " Q"] | float = 0.0,
) -> list[Bool[np.ndarray, " _"]]:
    """Which points to keep so that no latent function has more than `budget`.

    Args:
        prior: The points, and the prior there.
        site: What data said of them.
        posterior: What follows from it.
        budget: The largest number of points of any latent function.
        spare: Points that the others explain but for this part of their prior variance go too.
    """
    search = _Search(prior, site, posterior)
    sizes = prior.sizes
    variances = np.concatenate([np.diagonal(gram) for gram in prior.grams])
    spares = np.repeat(np.broadcast_to(spare, len(sizes)), sizes)
    ends = np.cumsum([0, *sizes])
    while True:
        counts = [np.sum(search.kept[a:b]) for a, b in itertools.pairwise(ends)]
        over = np.repeat([count > budget for count in counts], sizes)
        droppable = search.kept & (over | (spares * search.size * variances > 1.0))
        if not droppable.any():
            return np.split(search.kept, ends[1:-1])
        search.drop(int(np.argmin(np.where(droppable, search.costs(), np.inf))))
