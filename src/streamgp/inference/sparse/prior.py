"""Prior: p(u) at the inducing points, factorised once, and what follows from the factors.

Everything is whitened: v = L⁻¹u is standard normal a priori, K = LLᵀ.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from streamgp.kernels import Kernel
from streamgp.model.mixing import Projection
from streamgp.model.multitask import MultiTaskGP
from streamgp.numerics.linalg import (
    NUGGET,
    TINY,
    cholesky,
    cholesky_adjoint,
    solve_lower,
    with_nugget,
)

Points = tuple[Float[np.ndarray, "_ P"], ...]
Factors = tuple[Float[np.ndarray, "_ _"], ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Prior:
    """The prior of Q latent functions at their inducing points, under plain hyperparameters.

    Attributes:
        kernels: Of each latent function.
        origin: Where kernels see inputs from.
        points: The inducing points of each latent function, in the user's units.
        grams: K(Z, Z) of each, without the nugget.
        chols: L of each, with the nugget.
    """

    kernels: tuple[Kernel, ...]
    origin: Float[np.ndarray, " P"]
    points: Points
    grams: Factors
    chols: Factors

    @classmethod
    def of(cls, model: MultiTaskGP, points: Points) -> "Prior":
        """Factorise the prior of a plain model."""
        kernels, origin = model.latent_kernels, model.origin
        centred = [z - origin for z in points]
        grams = tuple(k.matrix(z, z) for k, z in zip(kernels, centred, strict=True))
        chols = tuple(cholesky(with_nugget(gram)) for gram in grams)
        return cls(kernels, origin, points, grams, chols)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of inducing points of each latent function."""
        return tuple(len(z) for z in self.points)

    def cross(self, x: Float[np.ndarray, "N P"]) -> tuple[Float[np.ndarray, "_ N"], ...]:
        """K(Z, x) of each latent function."""
        x = x - self.origin
        return tuple(
            k.matrix(z - self.origin, x) for k, z in zip(self.kernels, self.points, strict=True)
        )

    def project(
        self,
        x: Float[np.ndarray, "N P"],
        cross: tuple[Float[np.ndarray, "_ N"], ...] | None = None,
    ) -> Projection:
        """V = L⁻¹K(Z, x), and the variance of u_q(x) that v leaves open."""
        crosses = self.cross(x) if cross is None else cross
        values = tuple(map(solve_lower, self.chols, crosses))
        left = np.empty((len(self.kernels), len(x)))
        for q, (kernel, part) in enumerate(zip(self.kernels, values, strict=True)):
            left[q] = kernel.diagonal(x - self.origin) - np.einsum("mn,mn->n", part, part)
        return Projection(values, np.maximum(left, 0.0))

    def open_covariance(
        self, x: Float[np.ndarray, "N P"], projection: Projection
    ) -> Float[np.ndarray, "Q N N"]:
        """The covariance of u_q(x) between inputs that v leaves open."""
        centred, found = x - self.origin, []
        for kernel, values, variance in zip(
            self.kernels, projection.values, projection.open, strict=True
        ):
            left = kernel.matrix(centred, centred) - values.T @ values
            np.fill_diagonal(left, variance)  # rounded up to zero
            found.append(left)
        return np.stack(found)

    def cross_to(self, others: Sequence[Float[np.ndarray, "_ P"]]) -> Factors:
        """K(Z, Z') to other inducing points; coinciding points share their nugget."""
        found = []
        for kernel, z, other in zip(self.kernels, self.points, others, strict=True):
            k = kernel.matrix(z - self.origin, other - self.origin)
            same = np.all(z[:, None, :] == other[None, :, :], axis=-1)
            nugget = NUGGET * kernel.diagonal(z - self.origin) + TINY
            found.append(k + same * nugget[:, None])
        return tuple(found)

    def gram_adjoint(self, q: int, by_chol: Float[np.ndarray, "M M"]) -> Float[np.ndarray, "M M"]:
        """The derivative by K(Z, Z) of latent function q, from that by its factor L."""
        by_gram = cholesky_adjoint(self.chols[q], by_chol)
        by_gram.flat[:: len(by_gram) + 1] *= 1 + NUGGET
        return by_gram
