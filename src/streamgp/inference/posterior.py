"""Posterior: q(v) from a site, and q(f) at rows.

The only place that conditions on sites and computes marginals. Only I + Λ is factorised here, and
that cannot fail.
"""

import dataclasses
import functools

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Batch
from streamgp.inference.sites import RunBlocks, Site, inner
from streamgp.model.mixing import Features, Projection
from streamgp.numerics.linalg import cholesky_of_identity_plus, inverse_of, solve_lower


@dataclasses.dataclass(frozen=True, eq=False)
class Posterior:
    """q(v) ∝ N(v; 0, I)·t(v).

    Attributes:
        mean: Of v.
        chol: Of the precision I + Λ.
        log_evidence: log ∫ N(v; 0, I) t(v) dv.
    """

    mean: Float[np.ndarray, " S"]
    chol: Float[np.ndarray, "S S"]
    log_evidence: float

    @functools.cached_property
    def covariance(self) -> Float[np.ndarray, "S S"]:
        """(I + Λ)⁻¹, whole."""
        return inverse_of(self.chol)

    @property
    def second(self) -> Float[np.ndarray, "S S"]:
        """E[vvᵀ]."""
        return self.covariance + np.outer(self.mean, self.mean)


@dataclasses.dataclass(frozen=True, eq=False)
class Marginals:
    """q(f) of each row. The parts that come from v alone are kept for the bound.

    Attributes:
        mean: Of f.
        covariance: Of f.
        centred: The mean less the offset.
        explained: The covariance less what v leaves open.
    """

    mean: Float[np.ndarray, " R"]
    covariance: RunBlocks
    centred: Float[np.ndarray, " R"]
    explained: RunBlocks


def condition(site: Site) -> Posterior:
    """q(v) and its evidence: B = I + Λ = L_B L_Bᵀ, c = L_B⁻¹λ, mean L_B⁻ᵀc."""
    chol = cholesky_of_identity_plus(site.precision)
    c = solve_lower(chol, site.linear)
    evidence = 0.5 * float(c @ c) - float(np.sum(np.log(chol.diagonal())))
    return Posterior(solve_lower(chol, c, transpose=True), chol, evidence)


def marginals(batch: Batch, posterior: Posterior, features: Features) -> Marginals:
    """q(f_n) = ∫ p(f_n | v) q(v) dv."""
    half = solve_lower(posterior.chol, features.design.T).T
    centred, explained = features.design @ posterior.mean, inner(batch, half, half)
    return Marginals(
        mean=features.offset + centred,
        covariance=add(explained, features.slack),
        centred=centred,
        explained=explained,
    )


def latent_means(posterior: Posterior, projection: Projection) -> Float[np.ndarray, "N Q"]:
    """E_q[u] of each latent function at the inputs of a projection."""
    sizes = [len(values) for values in projection.values]
    *means, _ = np.split(posterior.mean, np.cumsum(sizes))
    return np.stack([v.T @ m for v, m in zip(projection.values, means, strict=True)], axis=1)


def add(a: RunBlocks, b: RunBlocks) -> RunBlocks:
    """The sum of two sets of matrices per row."""
    return tuple(x + y for x, y in zip(a, b, strict=True))
