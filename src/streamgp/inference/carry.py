"""Carry: take what past data said from the old inducing points to new ones.

Two rules behind one interface, both under the hyperparameters that the state has. Both give Λ ⪰ 0,
both lose nothing when the new points include the old ones, and they differ only when points are
dropped:

- `Projection` reads what was said through E[u_old | u_new], as pseudo-observations of the old
  inducing values: the variational optimum of streaming sparse GPs (Bui et al., 2017). It is linear,
  so each channel keeps its own part.
- `Marginals` keeps the old posterior's marginals at the new points, the paper's continual prior
  (Eq. 7). It is not linear, so channels can no longer be told apart afterwards.
"""

import dataclasses
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from scipy.linalg import block_diag

from streamgp.inference import past
from streamgp.inference.prior import Factors, Points, Prior
from streamgp.inference.sites import Site, through
from streamgp.inference.state import State
from streamgp.inference.weight_memory import expand_weights
from streamgp.numerics.linalg import solve_lower, symmetric
from streamgp.registry import storable

_LARGEST_PART = 1 - 1e-12  # of a direction's prior variance that data may have explained


class Carry(ABC):
    """A rule for moving a state to inducing points that do not include the old ones."""

    # Whether each channel's sums move by themselves, so that nothing is lost by moving often.
    is_linear: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, state: State, points: Points) -> State:
        """The state at these points, under the same hyperparameters."""


@storable
@dataclasses.dataclass(frozen=True)
class Projection(Carry):
    """Keep what was said as pseudo-observations of the old inducing values."""

    is_linear: ClassVar[bool] = True

    def __call__(self, state: State, points: Points) -> State:
        new = Prior.of(state.plain, points)
        maps = transitions(state.prior, new)
        merged = state.merged
        if merged is not None:
            merged = through(merged, [t.T for t in maps])
        moved = state.replace(points=points, past=state.past.projected(maps), merged=merged)
        vars(moved).update(plain=state.plain, prior=new)
        return moved


@storable
@dataclasses.dataclass(frozen=True)
class Marginals(Carry):
    """Keep the old posterior's marginals at the new points (the paper's rule).

    With T = E[v_new | v_old] and S the old posterior covariance, the continual prior is
    N(T·m, I − Ω), Ω = T(I − S)Tᵀ = U diag(ω) Uᵀ; its site is Λ = U diag(ω/(1−ω)) Uᵀ. That site is
    of all channels together, mixed as they are now: weights and noises that are learned later do
    not reinterpret it. What the past said of them is kept as an expansion instead.
    """

    def __call__(self, state: State, points: Points) -> State:
        new = Prior.of(state.plain, points)
        site = _with_marginals_kept(state, transitions(state.prior, new))
        sizes, basis = [len(z) for z in points], state.past.sizes[-1]
        blank = past.empty(state.model.outputs, sizes, basis, factorised=state.past.is_factorised)
        said = state.memory + expand_weights(state)
        moved = state.replace(points=points, past=blank, merged=site, memory=said)
        vars(moved).update(plain=state.plain, prior=new)
        return moved


def _with_marginals_kept(state: State, maps: Factors) -> Site:
    posterior, weights = state.posterior, state.plain.basis_spreads().size
    linears, precisions = [], []
    for t, mean, chol in zip(
        _as_blocks(maps, weights, len(posterior.mean)),
        posterior.mean,
        posterior.chols,
        strict=True,
    ):
        half = solve_lower(chol, t.T)
        omega, vectors = np.linalg.eigh(symmetric(t @ t.T - half.T @ half))
        omega = np.clip(omega, 0.0, _LARGEST_PART)
        precision = symmetric((vectors * (omega / (1 - omega))) @ vectors.T)
        moved = t @ mean
        linears.append(moved + precision @ moved)
        precisions.append(precision)
    return Site(tuple(linears), tuple(precisions))


def _as_blocks(maps: Factors, weights: int, blocks: int) -> Factors:
    """Maps of each latent function, and none of the mean functions' weights, as so many blocks."""
    every = (*maps, np.eye(weights))
    return every if blocks == len(every) else (block_diag(*every),)


def transitions(old: Prior, new: Prior, cross: Factors | None = None) -> Factors:
    """T = L_n⁻¹ K_no L_o⁻ᵀ: E[v_new | v_old] = T·v_old, and E[v_old | v_new] = Tᵀ·v_new.

    Args:
        old: The prior at the old points.
        new: The prior at the new ones.
        cross: K_on of each latent function, if it is known.
    """
    maps = []
    for q, k in enumerate(old.cross_to(new.points) if cross is None else cross):
        half = solve_lower(old.chols[q], k)  # L_o⁻¹ K_on
        maps.append(solve_lower(new.chols[q], half.T))
    return tuple(maps)
