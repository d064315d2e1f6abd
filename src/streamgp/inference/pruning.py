"""Pruning: which inducing points can go at the least cost to the posterior.

Without point i, q(u) becomes q(u_rest)·p(u_i | u_rest). In whitened terms, with w the i-th column
of L⁻¹ and ŵ = w/‖w‖, the KL divergence from the one to the other is

    ½ [ ŵᵀ(S + mmᵀ)ŵ − 1 + log ŵᵀ(I + Λ)ŵ ],   S = (I + Λ)⁻¹, m the mean of v:

how far data have moved the direction that only this point can express. Dropping it projects ŵ out
of the other columns, so points are dropped one at a time, each judged by what is left.
"""

import itertools

import numpy as np
from jaxtyping import Bool, Float
from scipy.linalg import block_diag

from streamgp.inference.posterior import Posterior
from streamgp.inference.prior import Prior
from streamgp.inference.sites import Site
from streamgp.numerics.linalg import solve_lower, symmetric


class _Search:
    """Column by column: w, and its squares under the identity, E[vvᵀ] and the precision of q."""

    def __init__(self, prior: Prior, site: Site, posterior: Posterior):
        self.second = block_diag(*posterior.second)  # factorised blocks lie along the diagonal
        self.precision = block_diag(*[symmetric(p) + np.eye(len(p)) for p in site.precision])
        w = block_diag(*[solve_lower(chol, np.eye(len(chol))) for chol in prior.chols])
        # The weights of the mean functions are part of v, but no point expresses them.
        w = np.pad(w, ((0, len(self.second) - len(w)), (0, 0)))
        self.directions = w
        self.size = np.sum(w**2, axis=0)
        self.moved = np.sum(w * (self.second @ w), axis=0)
        self.narrowed = np.sum(w * (self.precision @ w), axis=0)
        self.kept = np.ones(w.shape[1], bool)

    def costs(self) -> Float[np.ndarray, " S"]:
        """The KL divergence that dropping each point alone would cost, in nats."""
        size = np.where(self.kept, self.size, 1.0)  # of those that went, nothing is left
        ratio = np.maximum(self.narrowed / size, 1e-300)
        return 0.5 * (self.moved / size - 1 + np.log(ratio))

    def drop(self, index: int) -> None:
        """One point less, by rank-one changes: w ← w − ŵŵᵀw; q over the rest is its marginal."""
        unit = self.directions[:, index] / np.sqrt(self.size[index])
        part = unit @ self.directions
        spread, pulled = self.second @ unit, self.precision @ unit
        crossed = spread @ self.directions
        self.narrowed = self.narrowed - (pulled @ self.directions) ** 2 / (unit @ pulled)
        self.moved = self.moved - 2 * part * crossed + part**2 * (unit @ spread)
        self.size = np.maximum(self.size - part**2, 1e-300)
        self.directions = self.directions - np.outer(unit, part)
        self.precision = self.precision - np.outer(pulled, pulled) / (unit @ pulled)
        self.kept[index] = False


def costs(prior: Prior, site: Site, posterior: Posterior) -> list[Float[np.ndarray, " _"]]:
    """The KL divergence that dropping each point alone would cost, in nats, per latent function."""
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
