"""The only place that factorises priors, conditions on sites and computes marginals.

Everything is whitened: v = L⁻¹u is standard normal a priori, K = LLᵀ. Only L and I + Λ are
ever factorised, and neither can fail.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from streamgp.inference.sites import Site
from streamgp.model.mixing import Features, mix
from streamgp.model.multitask import Generative
from streamgp.numerics.linalg import cholesky, cholesky_of_identity_plus, gram, solve_lower
from streamgp.registry import storable


@storable
class Inducing(eqx.Module):
    """M slots for inducing points a latent function; slots whose mask is false are empty."""

    points: Float[Array, "Q M P"]
    mask: Bool[Array, "Q M"]


class Posterior(eqx.Module):
    """q(v) ∝ N(v; 0, I)·t(v), a block at a time."""

    mean: Float[Array, "G S"]
    chol: Float[Array, "G S S"]  # of the precision I + Λ
    log_evidence: Float[Array, ""]  # log ∫ N(v; 0, I) t(v) dv

    def covariance(self) -> Float[Array, "G S S"]:
        """(I + Λ)⁻¹, for the few who need it whole."""
        identity = jnp.broadcast_to(jnp.eye(self.chol.shape[-1]), self.chol.shape)
        half = solve_lower(self.chol, identity)
        return jnp.swapaxes(half, -1, -2) @ half


class Marginals(eqx.Module):
    """q(f) of each row. The parts that come from v alone are kept for the bound."""

    mean: Float[Array, "N J"]
    covariance: Float[Array, "N J J"]
    block_means: Float[Array, "N J G"]
    explained: Float[Array, "N J J"]


def factorise(model: Generative, inducing: Inducing) -> Float[Array, "Q M M"]:
    """L of every latent function's prior at its inducing points."""
    grams = [
        gram(kernel, z, mask)
        for kernel, z, mask in zip(
            model.latent_kernels, inducing.points, inducing.mask, strict=True
        )
    ]
    return cholesky(jnp.stack(grams))


def project(
    model: Generative, inducing: Inducing, chol: Float[Array, "Q M M"], x: Float[Array, "N P"]
) -> tuple[Float[Array, "Q M N"], Float[Array, "Q N"]]:
    """V = L⁻¹K(Z, x), and the variance of u_q(x) that v leaves open."""
    kernels = model.latent_kernels
    cross = jnp.stack(
        [
            jnp.where(mask[:, None], kernel(z, x), 0.0)
            for kernel, z, mask in zip(kernels, inducing.points, inducing.mask, strict=True)
        ]
    )
    projection = solve_lower(chol, cross)
    prior = jnp.stack([kernel(x) for kernel in kernels])
    return projection, jnp.maximum(prior - jnp.sum(projection**2, axis=1), 0.0)


def features(
    model: Generative,
    inducing: Inducing,
    chol: Float[Array, "Q M M"],
    x: Float[Array, "N P"],
    channel: Int[Array, " N"],
    *,
    factorised: bool,
) -> Features:
    """The rows' latent parameters as linear maps of v."""
    projection, variance = project(model, inducing, chol, x)
    return mix(model, channel, projection, variance, factorised=factorised)


def condition(site: Site) -> Posterior:
    """q(v) and its evidence: B = I + Λ = L_B L_Bᵀ, c = L_B⁻¹λ, mean L_B⁻ᵀc."""
    chol = cholesky_of_identity_plus(site.precision)
    c = solve_lower(chol, site.linear[..., None])
    mean = solve_lower(chol, c, transpose=True)[..., 0]
    half_log_det = jnp.sum(jnp.log(jnp.diagonal(chol, axis1=-2, axis2=-1)))
    return Posterior(mean, chol, 0.5 * jnp.sum(c**2) - half_log_det)


def marginals(
    posterior: Posterior, features: Features, maps: Float[Array, "G S S"] | None = None
) -> Marginals:
    """q(f_n) = ∫ p(f_n | v) q(v) dv; with `maps` the features are of C·v instead of v."""
    rows, latents, blocks, size = features.design.shape
    flat = jnp.moveaxis(features.design, 2, 0).reshape(blocks, rows * latents, size)
    columns, mean = jnp.swapaxes(flat, -1, -2), posterior.mean  # G S NJ
    if maps is None:
        half = solve_lower(posterior.chol, columns)
    else:
        half = solve_lower(posterior.chol, jnp.swapaxes(maps, -1, -2)) @ columns
        mean = jnp.einsum("gst,gt->gs", maps, mean)
    half = half.reshape(blocks, size, rows, latents)
    explained = jnp.einsum("gsnj,gsnk->njk", half, half)
    block_means = jnp.einsum("njgs,gs->njg", features.design, mean)
    return Marginals(
        mean=features.offset + jnp.sum(block_means, axis=-1),
        covariance=explained + features.slack,
        block_means=block_means,
        explained=explained,
    )


def joint(
    model: Generative,
    inducing: Inducing,
    chol: Float[Array, "Q M M"],
    posterior: Posterior,
    x: Float[Array, "N P"],
    channel: Int[Array, " N"],
    *,
    factorised: bool,
) -> tuple[Float[Array, "N J"], Float[Array, "N J N J"]]:
    """q(f) of all rows together: as `marginals`, with the covariances between rows."""
    projection, variance = project(model, inducing, chol, x)
    rows = mix(model, channel, projection, variance, factorised=factorised)
    shape = rows.offset.shape
    _, _, blocks, size = rows.design.shape
    flat = jnp.moveaxis(rows.design, 2, 0).reshape(blocks, -1, size)
    half = solve_lower(posterior.chol, jnp.swapaxes(flat, -1, -2)).reshape(blocks * size, -1)
    prior = jnp.stack([kernel(x, x) for kernel in model.latent_kernels])
    left = prior - jnp.swapaxes(projection, -1, -2) @ projection  # open given v
    left = jnp.where(jnp.eye(len(x), dtype=bool), variance[:, None], left)  # rounded up to zero
    weights = model.loadings()[0][channel]
    open_ = jnp.einsum("njq,qnm,mkq->njmk", weights, left, weights)
    explained = (half.T @ half).reshape(*shape, *shape)
    mean = rows.offset + jnp.einsum("njgs,gs->nj", rows.design, posterior.mean)
    return mean, explained + open_


def latent_features(
    projection: Float[Array, "Q M N"], variance: Float[Array, "Q N"], *, factorised: bool
) -> Features:
    """The latent functions themselves as rows' parameters: J = Q, unit weights, no offset."""
    latents, _, rows = projection.shape
    design = jnp.einsum("qr,rmn->nqrm", jnp.eye(latents), projection)
    if not factorised:
        design = design.reshape(rows, latents, 1, -1)
    slack = variance.T[:, :, None] * jnp.eye(latents)
    return Features(design, slack, jnp.zeros((rows, latents)))
