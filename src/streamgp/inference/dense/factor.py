"""The factor: rows as scalar observations with noise of unit variance, and what follows from them.

A row's site exp(bᵀg − ½gᵀPg) with P = SSᵀ is the likelihood of S⁻¹b = Sᵀg + noise. With the
covariance C of Sᵀg, LLᵀ = I + C and z = L⁻¹S⁻¹b, everything is read through ℓ = L⁻¹Cov(Sᵀg, ·):

    mean ℓᵀz,  covariance prior − ℓᵀℓ,  log ∫ p(g) t(g) dg = ½|S⁻¹b|² − ½|z|² − Σ log diag L.

Rows that come later border L and leave what is there as it is. L is kept in two parts, so that a
single row does not copy all of it: the last rows are a tail until there are some.
"""

import dataclasses

import numpy as np
from jaxtyping import Float

from streamgp.inference.dense.design import Design, Matrix, covariance, joined
from streamgp.kernels import Kernel
from streamgp.numerics.linalg import cholesky_of_identity_plus, solve_lower

_TAIL = 64  # scalar observations from which a tail joins the rest of the factor


@dataclasses.dataclass(frozen=True, eq=False)
class Factor:
    """Scalar observations and their Cholesky factor L = [[base, 0], [crossᵀ, corner]].

    Attributes:
        kernels: Of the latent functions.
        rows: The design of Sᵀg.
        z: The innovations L⁻¹S⁻¹b.
        base: Of the first observations.
        cross: Between these and the tail.
        corner: Of the tail.
    """

    kernels: tuple[Kernel, ...]
    rows: Design
    z: Float[np.ndarray, " R"]
    base: Matrix
    cross: Matrix
    corner: Matrix

    @classmethod
    def of(
        cls, kernels: tuple[Kernel, ...], rows: Design, value: Float[np.ndarray, " R"]
    ) -> "Factor":
        """The factor of some scalar observations."""
        base = cholesky_of_identity_plus(covariance(kernels, rows, rows))
        none = np.zeros((len(base), 0)), np.zeros((0, 0))
        return cls(kernels, rows, solve_lower(base, value), base, *none)

    @property
    def size(self) -> int:
        """How many scalar observations there are."""
        return len(self.z)

    @property
    def evidence(self) -> float:
        """log ∫ p(g) t(g) dg, but for ½|S⁻¹b|²."""
        diagonal = np.concatenate([self.base.diagonal(), self.corner.diagonal()])
        return -0.5 * float(self.z @ self.z) - float(np.sum(np.log(diagonal)))

    def solve(self, matrix: Matrix) -> Matrix:
        """L⁻¹ times a matrix."""
        if not len(self.corner):
            return solve_lower(self.base, matrix)
        cut = len(self.base)
        first = solve_lower(self.base, matrix[:cut])
        return np.concatenate(
            [first, solve_lower(self.corner, matrix[cut:] - self.cross.T @ first)]
        )

    def explained(self, design: Design) -> Matrix:
        """ℓ of each number of a design."""
        return self.solve(covariance(self.kernels, self.rows, design))

    def appended(
        self, rows: Design, value: Float[np.ndarray, " n"], explained: Matrix | None = None
    ) -> "Factor":
        """With further scalar observations; their ℓ may be known."""
        if not rows.size:
            return self
        seen = self.explained(rows) if explained is None else explained
        own = covariance(self.kernels, rows, rows)
        own -= seen.T @ seen
        corner = cholesky_of_identity_plus(own)
        new = solve_lower(corner, value - seen.T @ self.z)
        cut, known = len(self.base), len(self.corner)
        cross = np.concatenate([self.cross, seen[:cut]], axis=1)
        base, corner = self.base, _bordered(self.corner, seen[cut:], corner)
        if known + rows.size > _TAIL:
            base = _bordered(base, cross, corner)
            cross, corner = np.zeros((len(base), 0)), np.zeros((0, 0))
        z = np.concatenate([self.z, new])
        return Factor(self.kernels, joined([self.rows, rows]), z, base, cross, corner)


def _bordered(chol: Matrix, cross: Matrix, corner: Matrix) -> Matrix:
    """[[chol, 0], [crossᵀ, corner]]."""
    old, whole = len(chol), len(chol) + len(corner)
    found = np.empty((whole, whole), order="F")
    found[:old, :old], found[:old, old:] = chol, 0.0
    found[old:, :old], found[old:, old:] = cross.T, corner
    return found
