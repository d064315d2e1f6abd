"""Sites: what data said about the inducing values, as an unnormalised Gaussian.

t(v) = exp(λᵀv − ½ vᵀΛv). v has the whitened inducing values L⁻¹u of each latent function and, last,
the whitened weights of the channels' mean functions.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Batch
from streamgp.model.mixing import Features
from streamgp.numerics.linalg import symmetric
from streamgp.registry import storable

NOTHING = 1e-200  # the precision of a conjugate row that says nothing

RunBlocks = tuple[Float[np.ndarray, "_n _J _J"], ...]


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Site:
    """λ and Λ of a site on the whitened inducing values."""

    linear: Float[np.ndarray, " S"]
    precision: Float[np.ndarray, "S S"]

    def __add__(self, other: "Site") -> "Site":
        return Site(self.linear + other.linear, self.precision + other.precision)

    def scaled(self, part: float) -> "Site":
        """The site with that part of its say."""
        return Site(part * self.linear, part * self.precision)

    def toward(self, other: "Site", step: float) -> "Site":
        """The site after that part of the way to another."""
        return other if step == 1.0 else self.scaled(1 - step) + other.scaled(step)


class RowSites(NamedTuple):
    """The site of each row, on its centred latent parameters."""

    linear: Float[np.ndarray, " R"]
    precision: RunBlocks


def firm(
    linear: np.ndarray, precision: np.ndarray, at: np.ndarray, limit: float
) -> tuple[np.ndarray, np.ndarray]:
    """b and P of sites on one number each that ask for nothing farther than a limit from `at`.

    Their pull at `at` stays the same, and their curvature is larger where it has to be.
    """
    pull = linear - precision * at
    held = np.maximum(precision, np.abs(pull) / limit)
    return pull + held * at, held


def through(site: Site, maps: Sequence[Float[np.ndarray, "_ _"]]) -> Site:
    """The site on v_new when v_old = C·v_new: λ ← Cᵀλ, Λ ← CᵀΛC, C of each latent function.

    The weights of the mean functions stay as they are.
    """
    turned = [c.T for c in maps]
    half = mapped_rows(site.precision, turned)
    return Site(mapped_rows(site.linear, turned), symmetric(mapped_rows(half.T, turned)))


def mapped_rows(
    matrix: Float[np.ndarray, "S ..."], maps: Sequence[Float[np.ndarray, "_ _"]]
) -> Float[np.ndarray, "R ..."]:
    """C·matrix, C block-diagonal with these blocks and an identity for the rows that are left."""
    found, begin = [], 0
    for c in maps:
        end = begin + c.shape[1]
        found.append(c @ matrix[begin:end])
        begin = end
    return np.concatenate([*found, matrix[begin:]])


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
    design = features.design
    return Site(design.T @ rows.linear, design.T @ times(batch, rows.precision, design))
