"""The factor: rows as scalar observations with noise of unit variance, and what follows from them.

A row's site exp(bᵀg − ½gᵀPg) with P = SSᵀ is the likelihood of S⁻¹b = Sᵀg + noise. With the
covariance C of Sᵀg, LLᵀ = I + C and z = L⁻¹S⁻¹b, everything is read through ℓ = L⁻¹Cov(Sᵀg, ·):

    mean ℓᵀz,  covariance prior − ℓᵀℓ,  log ∫ p(g) t(g) dg = ½|S⁻¹b|² − ½|z|² − Σ log diag L.

Rows that come later border L and leave what is there as it is.
"""

import dataclasses

import numpy as np
from jaxtyping import Float

from streamgp.inference.dense.design import Design, Matrix, covariance, joined
from streamgp.kernels import Kernel
from streamgp.numerics.linalg import cholesky_of_identity_plus, solve_lower


@dataclasses.dataclass(frozen=True, eq=False)
class Factor:
    """Scalar observations and their Cholesky factor.

    Attributes:
        kernels: Of the latent functions.
        rows: The design of Sᵀg.
        chol: L.
        z: The innovations L⁻¹S⁻¹b.
    """

    kernels: tuple[Kernel, ...]
    rows: Design
    chol: Float[np.ndarray, "R R"]
    z: Float[np.ndarray, " R"]

    @classmethod
    def of(
        cls, kernels: tuple[Kernel, ...], rows: Design, value: Float[np.ndarray, " R"]
    ) -> "Factor":
        """The factor of some scalar observations."""
        chol = cholesky_of_identity_plus(covariance(kernels, rows, rows))
        return cls(kernels, rows, chol, solve_lower(chol, value))

    @property
    def size(self) -> int:
        """How many scalar observations there are."""
        return len(self.z)

    @property
    def evidence(self) -> float:
        """log ∫ p(g) t(g) dg, but for ½|S⁻¹b|²."""
        return -0.5 * float(self.z @ self.z) - float(np.sum(np.log(self.chol.diagonal())))

    def explained(self, design: Design) -> Matrix:
        """ℓ of each number of a design."""
        return solve_lower(self.chol, covariance(self.kernels, self.rows, design))

    def appended(self, rows: Design, value: Float[np.ndarray, " n"]) -> "Factor":
        """With further scalar observations."""
        if not rows.size:
            return self
        cross = self.explained(rows)
        own = covariance(self.kernels, rows, rows)
        own -= cross.T @ cross
        corner = cholesky_of_identity_plus(own)
        old, whole = self.size, self.size + rows.size
        chol = np.empty((whole, whole), order="F")
        chol[:old, :old], chol[:old, old:] = self.chol, 0.0
        chol[old:, :old], chol[old:, old:] = cross.T, corner
        new = solve_lower(corner, value - cross.T @ self.z)
        return Factor(self.kernels, joined([self.rows, rows]), chol, np.concatenate([self.z, new]))
