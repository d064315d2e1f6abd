"""Sites: what data said about the inducing values, as an unnormalised Gaussian.

t(v) = exp(λᵀv − ½ vᵀΛv), v = L⁻¹u the whitened inducing values. All arrays have a leading axis of
blocks: one block of size QM when the latents are kept jointly, Q blocks of size M when factorised.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import block_diag
from jaxtyping import Array, Float

from streamgp.model.mixing import Features
from streamgp.registry import storable


@storable
class Site(eqx.Module):
    """λ and Λ of a site on the whitened inducing values."""

    linear: Float[Array, "G S"]
    precision: Float[Array, "G S S"]

    def __add__(self, other: "Site") -> "Site":
        return Site(self.linear + other.linear, self.precision + other.precision)


class RowSites(eqx.Module):
    """The site of each row, on its centred latent parameters.

    Factorised blocks see the same precision but a linear term each: a block explains what the
    others leave over.
    """

    linear: Float[Array, "N J G"]
    precision: Float[Array, "N J J"]


def empty(blocks: int, size: int) -> Site:
    """The site of no data. NumPy's zeros: each shape of JAX's own is a program to compile."""
    linear, precision = np.zeros((blocks, size)), np.zeros((blocks, size, size))
    return Site(jnp.asarray(linear), jnp.asarray(precision))


def as_blocks(maps: Float[Array, "Q M R"], blocks: int) -> Float[Array, "G S T"]:
    """Per-latent matrices as so many blocks: block-diagonal when the latents are joint."""
    return maps if blocks == len(maps) else block_diag(*maps)[None]


def aggregate(rows: RowSites, features: Features) -> Site:
    """The site on v that the rows make together: λ = Σ Aᵀb, Λ = Σ AᵀPA."""
    design = features.design
    linear = jnp.einsum("njgs,njg->gs", design, rows.linear)
    weighted = jnp.einsum("njk,nkgs->njgs", rows.precision, design)
    return Site(linear, jnp.einsum("njgs,njgt->gst", weighted, design))
