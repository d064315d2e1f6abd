"""Posterior: q(v) from a site, and q(f) at rows.

The only place that conditions on sites and computes marginals. Only I + Λ is factorised here, and
that cannot fail.
"""

import dataclasses
import functools

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Batch
from streamgp.inference.sites import Blocks, RunBlocks, Site, inner
from streamgp.model.mixing import Features, Projection
from streamgp.numerics.linalg import cholesky_of_identity_plus, inverse_of, solve_lower


@dataclasses.dataclass(frozen=True, eq=False)
class Posterior:
    """q(v) ∝ N(v; 0, I)·t(v), per block.

    Attributes:
        mean: Of v.
        chols: Of the precision I + Λ.
        log_evidence: log ∫ N(v; 0, I) t(v) dv.
    """

    mean: tuple[Float[np.ndarray, " _"], ...]
    chols: Blocks
    log_evidence: float

    @functools.cached_property
    def covariance(self) -> Blocks:
        """(I + Λ)⁻¹ of each block, whole."""
        return tuple(map(inverse_of, self.chols))

    @property
    def second(self) -> Blocks:
        """E[vvᵀ] of each block."""
        return tuple(c + np.outer(m, m) for m, c in zip(self.mean, self.covariance, strict=True))


@dataclasses.dataclass(frozen=True, eq=False)
class Marginals:
    """q(f) of each row. The parts that come from v alone are kept for the bound."""

    mean: Float[np.ndarray, " R"]
    covariance: RunBlocks
    block_means: Float[np.ndarray, "R G"]
    explained: RunBlocks


def condition(site: Site) -> Posterior:
    """q(v) and its evidence: B = I + Λ = L_B L_Bᵀ, c = L_B⁻¹λ, mean L_B⁻ᵀc."""
    means, chols, evidence = [], [], 0.0
    for linear, precision in zip(site.linear, site.precision, strict=True):
        chol = cholesky_of_identity_plus(precision)
        c = solve_lower(chol, linear)
        means.append(solve_lower(chol, c, transpose=True))
        chols.append(chol)
        evidence += 0.5 * float(c @ c) - float(np.sum(np.log(chol.diagonal())))
    return Posterior(tuple(means), tuple(chols), evidence)


def marginals(batch: Batch, posterior: Posterior, features: Features) -> Marginals:
    """q(f_n) = ∫ p(f_n | v) q(v) dv."""
    means, explained = [], None
    for mean, chol, design in zip(posterior.mean, posterior.chols, features.design, strict=True):
        half = solve_lower(chol, design.T).T
        means.append(design @ mean)
        own = inner(batch, half, half)
        explained = own if explained is None else add(explained, own)
    assert explained is not None
    block_means = np.stack(means, axis=-1)
    return Marginals(
        mean=features.offset + block_means.sum(axis=-1),
        covariance=add(explained, features.slack),
        block_means=block_means,
        explained=explained,
    )


def latent_means(posterior: Posterior, projection: Projection) -> Float[np.ndarray, "N Q"]:
    """E_q[u] of each latent function at the inputs of a projection."""
    sizes = [len(values) for values in projection.values]
    *means, _ = np.split(np.concatenate(posterior.mean), np.cumsum(sizes))
    return np.stack([v.T @ m for v, m in zip(projection.values, means, strict=True)], axis=1)


def add(a: RunBlocks, b: RunBlocks) -> RunBlocks:
    """The sum of two sets of matrices per row."""
    return tuple(x + y for x, y in zip(a, b, strict=True))
