"""Pruning: which inducing points can go at the least cost to the posterior.

Without point i, q(u) becomes q(u_rest)·p(u_i | u_rest). In whitened terms, with w the i-th column
of L⁻¹ and ŵ = w/‖w‖, the KL divergence from the one to the other is

    ½ [ ŵᵀ(S + mmᵀ)ŵ − 1 + log ŵᵀ(I + Λ)ŵ ],   S = (I + Λ)⁻¹, m the mean of v:

how far data have moved the direction that only this point can express. Dropping it projects ŵ out
of the other columns, so points are dropped one at a time, each judged by what is left.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import block_diag
from jaxtyping import Array, Bool, Float, Int

from streamgp.inference.conditioning import Inducing, condition, factorise
from streamgp.inference.sites import Site
from streamgp.model.multitask import Generative
from streamgp.numerics.linalg import solve_lower


class _Search(NamedTuple):
    """Column by column: w, and its squares under the identity, E[vvᵀ] and the precision of q."""

    directions: Float[Array, "S S"]
    size: Float[Array, " S"]
    moved: Float[Array, " S"]
    narrowed: Float[Array, " S"]
    precision: Float[Array, "S S"]  # of q over what is left
    kept: Bool[Array, "Q M"]

    def costs(self) -> Float[Array, " S"]:
        ratio = jnp.maximum(self.narrowed / self.size, 1e-300)
        return 0.5 * (self.moved / self.size - 1 + jnp.log(ratio))


def costs(model: Generative, inducing: Inducing, site: Site) -> Float[Array, "Q M"]:
    """The KL divergence that dropping each point alone would cost, in nats."""
    search, _ = _begin(model, inducing, site)
    return search.costs().reshape(inducing.mask.shape)


def prune(
    model: Generative,
    inducing: Inducing,
    site: Site,
    budget: Int[Array, ""] | int,
    spare: Float[Array, " Q"] | float = 0.0,
) -> Bool[Array, "Q M"]:
    """Which points to keep so that no latent function has more than `budget`.

    Points that the others explain but for a share `spare` of their prior variance go as well.
    """
    shape = inducing.mask.shape
    start, second = _begin(model, inducing, site)
    prior = jnp.stack([k(z) for k, z in zip(model.latent_kernels, inducing.points, strict=True)])

    def droppable(search: _Search) -> Bool[Array, "Q M"]:
        over = jnp.sum(search.kept, axis=1, keepdims=True) > budget
        open_share = 1.0 / (search.size.reshape(shape) * prior)
        return search.kept & (over | (open_share < jnp.reshape(spare, (-1, 1))))

    def drop(search: _Search) -> _Search:
        costs = jnp.where(droppable(search), search.costs().reshape(shape), jnp.inf)
        return _without(search, jnp.argmin(costs), second)

    return jax.lax.while_loop(lambda search: jnp.any(droppable(search)), drop, start).kept


def _begin(
    model: Generative, inducing: Inducing, site: Site
) -> tuple[_Search, Float[Array, "S S"]]:
    """All points in place, and E[vvᵀ]; factorised blocks lie along the diagonal."""
    posterior = condition(site)
    identity, slots = jnp.eye(site.linear.shape[1]), jnp.eye(inducing.mask.shape[1])
    outer = jnp.einsum("gs,gt->gst", posterior.mean, posterior.mean)
    second = block_diag(*(posterior.covariance() + outer))
    precision = block_diag(*(identity + site.precision))
    w = block_diag(*[solve_lower(chol, slots) for chol in factorise(model, inducing)])
    search = _Search(
        directions=w,
        size=jnp.sum(w**2, axis=0),
        moved=jnp.sum(w * (second @ w), axis=0),
        narrowed=jnp.sum(w * (precision @ w), axis=0),
        precision=precision,
        kept=inducing.mask,
    )
    return search, second


def _without(search: _Search, index: Int[Array, ""], second: Float[Array, "S S"]) -> _Search:
    """One point less, by rank-one changes: w ← w − ŵŵᵀw, and q over the rest is its marginal."""
    unit = search.directions[:, index] / jnp.sqrt(search.size[index])
    share = unit @ search.directions
    spread, pulled = second @ unit, search.precision @ unit
    crossed = spread @ search.directions
    narrowing = (pulled @ search.directions) ** 2 / (unit @ pulled)
    return _Search(
        directions=search.directions - jnp.outer(unit, share),
        size=jnp.maximum(search.size - share**2, 1e-300),
        moved=search.moved - 2 * share * crossed + share**2 * (unit @ spread),
        narrowed=search.narrowed - narrowing,
        precision=search.precision - jnp.outer(pulled, pulled) / (unit @ pulled),
        kept=search.kept.at[jnp.unravel_index(index, search.kept.shape)].set(False),
    )
