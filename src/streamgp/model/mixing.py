"""The linear model of coregionalisation: f_dj(x) = offset + Σ_q w_djq u_q(x) (Eq. 13)."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from streamgp.model.multitask import Generative


class Features(eqx.Module):
    """f of each row as a linear map of the whitened inducing values v, plus what v leaves open.

    f_n = offset_n + Σ_g design_ng · v_g + residual, residual ~ N(0, slack_n). The blocks g are
    one (v of all latents jointly) or Q (factorised, one a latent).
    """

    design: Float[Array, "N J G S"]
    slack: Float[Array, "N J J"]
    offset: Float[Array, "N J"]


def mix(
    model: Generative,
    channel: Int[Array, " N"],
    projection: Float[Array, "Q M N"],
    variance: Float[Array, "Q N"],
    *,
    factorised: bool,
) -> Features:
    """Features of rows whose latents have E[u_q(x_n)|v] = projection·v and that variance left."""
    weights, offsets = model.loadings()
    w = weights[channel]  # N J Q
    design = jnp.einsum("njq,qmn->njqm", w, projection)
    if not factorised:
        design = design.reshape(*design.shape[:2], 1, -1)
    slack = jnp.einsum("njq,qn,nkq->njk", w, variance, w)
    return Features(design, slack, offsets[channel])
