"""Carry: take what past data said from the old inducing points to new ones.

What was said is read through E[u_old | u_new], as pseudo-observations of the old inducing values:
the variational optimum of streaming sparse GPs (Bui et al., 2017). It is linear, so each channel
keeps its own part, and it loses nothing where the new points include the old ones.
"""

from streamgp.inference.sparse.prior import Factors, Points, Prior
from streamgp.inference.sparse.state import State
from streamgp.numerics.linalg import solve_lower


def carried(state: State, points: Points) -> State:
    """The state at these points, under the same hyperparameters."""
    new = Prior.of(state.plain, points)
    maps = transitions(state.prior, new)
    moved = state.replace(points=points, absorbed=state.absorbed.projected(maps))
    vars(moved).update(plain=state.plain, prior=new)
    return moved


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
