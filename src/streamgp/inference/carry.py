"""Carry: take what past data said from the old inducing points to new ones.

Two rules behind one interface: (old prior, site, new prior) → site at the new points, both under
the hyperparameters the site was learned with. Both give Λ ⪰ 0, both lose nothing when the new
points include the old ones, and they differ only when points are dropped:

- `Marginals` keeps the old posterior's marginals at the new points, the paper's continual prior
  (Eq. 7).
- `Projection` reads the old site through E[u_old | u_new], as pseudo-observations of the old
  inducing values: the variational optimum of streaming sparse GPs (Bui et al., 2017).

A change of hyperparameters afterwards is `rewhitened`, exactly.
"""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from streamgp.inference.posterior import condition
from streamgp.inference.prior import Factors, Prior
from streamgp.inference.sites import Site, as_blocks
from streamgp.numerics.linalg import solve_lower, symmetric
from streamgp.registry import storable

_LARGEST_PART = 1 - 1e-12  # of a direction's prior variance that data may have explained


class Carry(ABC):
    """A rule for moving the site to inducing points that do not include the old ones."""

    @abstractmethod
    def __call__(self, old: Prior, site: Site, new: Prior) -> Site:
        """The site at the points of `new`, under the same hyperparameters."""


@storable
@dataclasses.dataclass(frozen=True)
class Projection(Carry):
    """Keep the old site as pseudo-observations: with v_old = C·v_new, λ ← Cᵀλ and Λ ← CᵀΛC."""

    def __call__(self, old: Prior, site: Site, new: Prior) -> Site:
        return through(site, [t.T for t in _transition(old, new)])


@storable
@dataclasses.dataclass(frozen=True)
class Marginals(Carry):
    """Keep the old posterior's marginals at the new points (the paper's rule).

    With T = E[v_new | v_old] and S the old posterior covariance, the continual prior is
    N(T·m, I − Ω), Ω = T(I − S)Tᵀ = U diag(ω) Uᵀ; its site is Λ = U diag(ω/(1−ω)) Uᵀ.
    """

    def __call__(self, old: Prior, site: Site, new: Prior) -> Site:
        transitions = as_blocks(_transition(old, new), len(site.linear))
        posterior = condition(site)
        linears, precisions = [], []
        for t, mean, chol in zip(transitions, posterior.mean, posterior.chols, strict=True):
            half = solve_lower(chol, t.T)
            omega, vectors = np.linalg.eigh(symmetric(t @ t.T - half.T @ half))
            omega = np.clip(omega, 0.0, _LARGEST_PART)
            precision = symmetric((vectors * (omega / (1 - omega))) @ vectors.T)
            moved = t @ mean
            linears.append(moved + precision @ moved)
            precisions.append(precision)
        return Site(tuple(linears), tuple(precisions))


def rewhitened(site: Site, old: Factors, new: Factors) -> Site:
    """The same site on u, whitened by other prior factors: v_old = L_old⁻¹ L_new v_new."""
    return through(site, [solve_lower(a, b) for a, b in zip(old, new, strict=True)])


def _transition(old: Prior, new: Prior) -> Factors:
    """T = L_n⁻¹ K_no L_o⁻ᵀ: E[v_new | v_old] = T·v_old, and E[v_old | v_new] = Tᵀ·v_new."""
    maps = []
    for q, cross in enumerate(old.cross_to(new.points)):
        half = solve_lower(old.chols[q], cross)  # L_o⁻¹ K_on
        maps.append(solve_lower(new.chols[q], half.T))
    return tuple(maps)


def through(site: Site, maps: Sequence[np.ndarray]) -> Site:
    """The site on v_new when v_old = C·v_new: λ ← Cᵀλ, Λ ← CᵀΛC."""
    blocks = as_blocks(maps, len(site.linear))
    return Site(
        tuple(c.T @ linear for c, linear in zip(blocks, site.linear, strict=True)),
        tuple(symmetric(c.T @ p @ c) for c, p in zip(blocks, site.precision, strict=True)),
    )
