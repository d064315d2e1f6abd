"""Sites: what data said about the inducing values, as an unnormalised Gaussian.

t(v) = exp(λᵀv − ½ vᵀΛv), v = L⁻¹u the whitened inducing values. A site has blocks: one of size ΣM_q
when the latent functions are kept jointly, Q of size M_q when they are factorised.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import block_diag

from streamgp.data.batch import Batch
from streamgp.model.mixing import Features
from streamgp.registry import storable

Blocks = tuple[Float[np.ndarray, "_ _"], ...]
RunBlocks = tuple[Float[np.ndarray, "n J J"], ...]


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Site:
    """λ and Λ of a site on the whitened inducing values, per block."""

    linear: tuple[Float[np.ndarray, " _"], ...]
    precision: Blocks

    def __add__(self, other: "Site") -> "Site":
        return Site(
            tuple(a + b for a, b in zip(self.linear, other.linear, strict=True)),
            tuple(a + b for a, b in zip(self.precision, other.precision, strict=True)),
        )

    def scaled(self, part: float) -> "Site":
        """The site with that part of its say."""
        return Site(tuple(part * a for a in self.linear), tuple(part * a for a in self.precision))


class RowSites(NamedTuple):
    """The site of each row, on its centred latent parameters.

    Factorised blocks see the same precision but a linear term each: a block explains what the
    others leave over.
    """

    linear: Float[np.ndarray, "R G"]
    precision: RunBlocks


def empty(sizes: Sequence[int], *, factorised: bool) -> Site:
    """The site of no data, for latent functions with so many inducing points."""
    blocks = list(sizes) if factorised else [sum(sizes)]
    return Site(
        tuple(np.zeros(size) for size in blocks), tuple(np.zeros((size, size)) for size in blocks)
    )


def as_blocks(maps: Sequence[Float[np.ndarray, "_ _"]], blocks: int) -> Blocks:
    """Matrices per latent function as so many blocks: block-diagonal where those are joint."""
    return tuple(maps) if blocks == len(maps) else (block_diag(*maps),)


def times(
    batch: Batch, precision: RunBlocks, matrix: Float[np.ndarray, "R ..."]
) -> Float[np.ndarray, "R ..."]:
    """P·A, row by row, P being (n, J, J) per run."""
    product = np.empty_like(matrix)
    for run, p in zip(batch.runs, precision, strict=True):
        part = matrix[run.flat]
        if run.latents == 1:
            np.multiply(p.reshape(-1, *[1] * (matrix.ndim - 1)), part, out=product[run.flat])
        else:
            rows = part.reshape(len(p), run.latents, part[0].size)
            product[run.flat] = (p @ rows).reshape(part.shape)
    return product


def inner(batch: Batch, a: Float[np.ndarray, "R S"], b: Float[np.ndarray, "R S"]) -> RunBlocks:
    """a_nj · b_nk of each row, (n, J, J) per run."""
    found = []
    for run in batch.runs:
        left, right = a[run.flat], b[run.flat]
        if run.latents == 1:
            found.append(np.einsum("ns,ns->n", left, right)[:, None, None])
        else:
            shape = (run.rows.stop - run.rows.start, run.latents, a.shape[1])
            found.append(left.reshape(shape) @ np.swapaxes(right.reshape(shape), 1, 2))
    return tuple(found)


def outer(batch: Batch, a: Float[np.ndarray, " R"], b: Float[np.ndarray, " R"]) -> RunBlocks:
    """a_nj · b_nk of each row's numbers, (n, J, J) per run."""
    return inner(batch, a[:, None], b[:, None])


def aggregate(batch: Batch, rows: RowSites, features: Features) -> Site:
    """The site on v that the rows make together: λ = Σ Aᵀb, Λ = Σ AᵀPA."""
    linear = tuple(a.T @ rows.linear[:, g] for g, a in enumerate(features.design))
    precision = tuple(a.T @ times(batch, rows.precision, a) for a in features.design)
    return Site(linear, precision)
