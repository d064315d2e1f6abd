"""Designs: scalar numbers that are linear in latent functions and in weights of mean functions.

Number r is g_r = Σ_q w_rq u_q(x_r) + h_r·β with independent u_q and β ~ N(0, I). Their covariance
follows from the kernels. A row with J latent parameters is J such numbers, and so is its site.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Batch
from streamgp.inference.sites import RunBlocks, times
from streamgp.kernels import Kernel
from streamgp.model.mixing import Mixed
from streamgp.model.multitask import MultiTaskGP

Matrix = Float[np.ndarray, "_ _"]


class Design(NamedTuple):
    """Scalar numbers.

    Attributes:
        x: The input of each, from the kernels' origin.
        weights: w, of each latent function.
        basis: h, whitened by the prior spreads of β.
    """

    x: Float[np.ndarray, "R P"]
    weights: Float[np.ndarray, "R Q"]
    basis: Float[np.ndarray, "R K"]

    @classmethod
    def of(cls, model: MultiTaskGP, batch: Batch) -> "Design":
        """The latent parameters of a batch's rows, less their offsets."""
        mixed = Mixed.of(model, batch)
        centred = batch.x - model.origin
        x = [np.repeat(centred[run.rows], run.latents, axis=0) for run in batch.runs]
        weights = [own.reshape(-1, own.shape[2]) for own in mixed.weights]
        none = np.zeros((0, batch.x.shape[1])), np.zeros((0, sum(model.draws)))
        return cls(np.concatenate([none[0], *x]), np.concatenate([none[1], *weights]), mixed.basis)

    @property
    def size(self) -> int:
        """R."""
        return len(self.x)

    def take(self, which: slice | np.ndarray) -> "Design":
        """Some of the numbers."""
        return Design(self.x[which], self.weights[which], self.basis[which])

    def through(self, batch: Batch, blocks: RunBlocks) -> "Design":
        """The numbers that matrices of a batch's rows make of these, row by row."""
        return Design(self.x, times(batch, blocks, self.weights), times(batch, blocks, self.basis))


def joined(parts: Sequence[Design]) -> Design:
    """The numbers of several designs, one after the other."""
    return Design(*map(np.concatenate, zip(*parts, strict=True)))


def covariance(kernels: Sequence[Kernel], a: Design, b: Design) -> Matrix:
    """Cov(g_r, g_s) a priori, of every number of one design with every number of another."""
    return mixed(a, b, [kernel.matrix(a.x, b.x) for kernel in kernels])


def mixed(a: Design, b: Design, matrices: Sequence[Matrix]) -> Matrix:
    """The same from the matrices of the kernels, which stay as they are."""
    total = a.basis @ b.basis.T
    for q, matrix in enumerate(matrices):
        left, right = a.weights[:, q], b.weights[:, q]
        if left.size and right.size and np.ptp(left) == 0 == np.ptp(right):
            total += (left[0] * right[0]) * matrix
        else:
            total += (left[:, None] * matrix) * right
    return total


def variances(kernels: Sequence[Kernel], design: Design) -> Float[np.ndarray, " R"]:
    """Var(g_r) a priori."""
    total = np.einsum("rk,rk->r", design.basis, design.basis)
    for q, kernel in enumerate(kernels):
        total += design.weights[:, q] ** 2 * kernel.diagonal(design.x)
    return total


class ByDesign(NamedTuple):
    """Derivatives by what a covariance is made of.

    Attributes:
        kernels: By the parameters of each latent function's kernel.
        weights: By w.
    """

    kernels: list[dict[str, Any]]
    weights: Float[np.ndarray, "R Q"]


def adjoint(
    kernels: Sequence[Kernel], design: Design, matrices: Sequence[Matrix], by: Matrix
) -> ByDesign:
    """Derivatives of a number that depends on the covariance of a design with itself.

    Args:
        kernels: Of the latent functions.
        design: The numbers.
        matrices: Of the kernels between their inputs.
        by: The derivative by each entry of the covariance, symmetric.
    """
    gradients, weights = [], np.empty(design.weights.shape)
    for q, (kernel, matrix) in enumerate(zip(kernels, matrices, strict=True)):
        own = design.weights[:, q]
        product = by * matrix
        weights[:, q] = 2 * (product @ own)
        by_kernel = (own[:, None] * by) * own
        gradients.append(kernel.pullback(design.x, design.x, by_kernel, matrix))
    return ByDesign(gradients, weights)
