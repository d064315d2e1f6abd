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
    """Column by column: w, and its products with the precision, the covariance and the mean of q."""

    def __init__(self, prior: Prior, site: Site, posterior: Posterior):
        self.precision = block_diag(*[symmetric(p) + np.eye(len(p)) for p in site.precision])
        self.covariance = block_diag(*posterior.covariance)
        self.mean = np.concatenate(posterior.mean)
        w = block_diag(*[solve_lower(chol, np.eye(len(chol))) for chol in prior.chols])
        w = np.pad(w, ((0, len(self.mean) - len(w)), (0, 0)))
        self.directions = w
        self.size = np.sum(w**2, axis=0)
        self.said = np.sum(w * (self.precision @ w), axis=0)
        self.left = np.sum(w * (self.covariance @ w), axis=0)
        self.moved = self.mean @ w
        self.kept = np.ones(w.shape[1], bool)

    def costs(self) -> Float[np.ndarray, " S"]:
        import os
        size = np.where(self.kept, self.size, 1.0)
        said = np.maximum(self.said / size, 1e-300)
        left = np.maximum(self.left / size, 1e-300)
        moved = self.moved**2 / size
        if os.environ.get('KL'):
            return 0.5 * (left + moved - 1 + np.log(said))
        return 0.5 * (moved / left + np.log(left) + said - 1)

    def drop(self, index: int) -> None:
        unit = self.directions[:, index] / np.sqrt(self.size[index])
        part = unit @ self.directions
        pulled, spread = self.precision @ unit, self.covariance @ unit
        own = unit @ spread
        # w <- w - u (u.w)
        said_u = pulled @ self.directions
        self.said = self.said - 2 * part * said_u + part**2 * (unit @ pulled)
        # covariance of the rest, given that the direction is zero
        gain = spread / own
        mean_u = unit @ self.mean
        import os
        if os.environ.get('KL'):
            spread_u = spread @ self.directions
            self.left = self.left - 2*part*spread_u + part**2*own
            self.moved = self.moved - part * mean_u
            self.said = self.said  # approximately
        else:
            spread_w = spread @ self.directions - own * part  # u.S.w_new
            self.covariance = self.covariance - np.outer(spread, spread) / own
            self.left = np.sum(self.directions * (self.covariance @ self.directions), axis=0) if False else self.left - 2*part*(spread@self.directions) + part**2*own - spread_w**2/own
            self.mean = self.mean - gain * mean_u
            self.moved = self.moved - part * mean_u - spread_w / own * mean_u
        self.size = np.maximum(self.size - part**2, 1e-300)
        self.directions = self.directions - np.outer(unit, part)
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
