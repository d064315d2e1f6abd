"""One observation at a time: low-rank updates of q(v) inside one scan.

At fixed inducing points and hyperparameters an observation moves q(v) along one direction a latent
parameter, so a row costs O(S²), not O(S³). Sites that are known beforehand are folded in a block
of rows at a time: the Cholesky factor of what the block is predicted to be has the order of its
rows in it. The others are found row by row. The scan only serves that order: what each row was
predicted to be, and the site it got. The state they leave behind is the sum of those sites, as if
the rows had come together, so no error of the recursion is carried on.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from streamgp.data import Batch
from streamgp.inference.conditioning import Inducing, Marginals, condition, project
from streamgp.inference.e_step import e_step, exact_sites, first_sites, no_sites
from streamgp.inference.sites import RowSites, Site, aggregate, empty
from streamgp.likelihoods.quadrature import root
from streamgp.model.mixing import Features, mix
from streamgp.model.multitask import Generative
from streamgp.numerics.linalg import cholesky, cholesky_of_identity_plus, solve_lower


class Filtered(NamedTuple):
    """What became of each row of a batch, taken in order."""

    site: Site  # carried and rows together
    features: Features
    rows: RowSites
    before: Marginals  # q(f) of each row before it was learned
    after: Marginals  # and right after
    latent: Marginals  # q(u) at each row right after


_BLOCK = 32  # rows: enough for products of matrices, few beside the inducing points


class _Row(NamedTuple):
    batch: Batch  # of this row alone
    features: Features  # likewise
    projection: Float[Array, "S Q"]  # u at the row is Gᵀv; a block a latent
    variance: Float[Array, " Q"]
    weights: Float[Array, "J Q"]


class _Moments(NamedTuple):
    mean: Float[Array, " S"]
    covariance: Float[Array, "S S"]


class _AtRow(NamedTuple):
    """What q(v) says of the latent functions at a row, their open variance apart."""

    mean: Float[Array, " Q"]
    covariance: Float[Array, "Q Q"]


def filter_rows(
    model: Generative,
    inducing: Inducing,
    chol: Float[Array, "Q M M"],
    site: Site,
    batch: Batch,
    *,
    rounds: int,
    tolerance: float,
) -> Filtered:
    """Fold the rows in one after the other. For a joint site only."""
    projection, variance = project(model, inducing, chol, batch.x)
    features = mix(model, batch.channel, projection, variance, factorised=False)
    latents = jnp.eye(len(chol))
    rows = _Row(
        jax.tree.map(lambda leaf: leaf[:, None], batch),
        jax.tree.map(lambda leaf: leaf[:, None], features),
        jnp.einsum("qmn,qr->nqmr", projection, latents).reshape(len(batch.y), -1, len(latents)),
        variance.T,
        model.loadings()[0][batch.channel],
    )

    def fold(now: _Moments, row: _Row) -> tuple[_Moments, tuple]:
        reach = now.covariance @ row.projection
        at_row = _AtRow(now.mean @ row.projection, row.projection.T @ reach)
        own = _settled(model, row, at_row, rounds, tolerance)
        pull, stiffness = _condition(row.weights, at_row, own)
        towards = reach @ row.weights.T
        moved = _Moments(
            now.mean + towards @ pull, now.covariance - (towards @ stiffness) @ towards.T
        )
        cross = at_row.covariance @ row.weights.T
        after = _AtRow(at_row.mean + cross @ pull, at_row.covariance - cross @ stiffness @ cross.T)
        return moved, (own, at_row, after)

    if model.conjugate:
        own = exact_sites(model, batch, features, no_sites(features))
        before, after = _in_blocks(_moments(site), rows, own)
    else:
        _, (own, before, after) = jax.lax.scan(fold, _moments(site), rows)
    latent = after.covariance + jax.vmap(jnp.diag)(rows.variance)
    return Filtered(
        site + aggregate(own, features),
        features,
        own,
        _marginals(before, rows, features),
        _marginals(after, rows, features),
        Marginals(after.mean, latent, after.mean[..., None], after.covariance),
    )


def _in_blocks(begin: _Moments, rows: _Row, sites: RowSites) -> tuple[_AtRow, _AtRow]:
    """What q(v) says before and after each row, whose sites are known; N is a bucket's size."""
    count = len(rows.weights)
    size = min(_BLOCK, count)

    def split(leaf: Array) -> Array:
        return leaf.reshape(count // size, size, *leaf.shape[1:])

    parts = (rows.projection, rows.weights[:, 0], sites.linear, sites.precision)
    _, found = jax.lax.scan(_fold_block, begin, tuple(map(split, parts)))
    return jax.tree.map(lambda leaf: leaf.reshape(count, *leaf.shape[2:]), found)


def _fold_block(now: _Moments, block: tuple) -> tuple[_Moments, tuple[_AtRow, _AtRow]]:
    """A block of B rows: with E the covariance of their f, I + √P E √P = LLᵀ.

    Column k of E√P L⁻ᵀ is what row k says that those before it did not, so that sums over the
    leading columns are what q(v) says before, and after, each row.
    """
    projection, weights, linear, precision = block  # B S Q, B Q, B 1 1, B 1 1
    weight = jnp.sqrt(precision[:, 0, 0])
    latents = jnp.einsum("bsq,s->bq", projection, now.mean)
    reach = jnp.einsum("st,btq->sbq", now.covariance, projection)
    between = jnp.einsum("bsq,scr->bqcr", projection, reach)
    towards = jnp.einsum("sbq,bq->bs", reach, weights) * weight[:, None]
    shared = jnp.einsum("bqcr,cr->cbq", between, weights) * weight[:, None, None]
    explained = jnp.einsum("cbq,bq->cb", shared, weights) * weight
    chol = cholesky_of_identity_plus(explained)
    seen = jnp.where(weight > 0, linear[:, 0, 0] / jnp.where(weight > 0, weight, 1.0), 0.0)
    surprise = seen - weight * jnp.sum(weights * latents, axis=1)
    size, count = weights.shape
    sides = jnp.concatenate([surprise[:, None], towards, shared.reshape(size, -1)], axis=1)
    news = solve_lower(chol, sides)
    innovation, half, said = news[:, 0], news[:, 1 : -size * count], news[:, -size * count :]
    said = said.reshape(size, size, count)  # by row k, of row b's latent functions

    def at(told: Float[Array, "B B"]) -> _AtRow:
        mean = latents + jnp.einsum("kb,kbq,k->bq", told, said, innovation)
        own = jnp.einsum("bqbr->bqr", between)
        return _AtRow(mean, own - jnp.einsum("kb,kbq,kbr->bqr", told, said, said))

    moved = _Moments(now.mean + innovation @ half, now.covariance - half.T @ half)
    everyone = jnp.ones((size, size))
    return moved, (at(jnp.triu(everyone, 1)), at(jnp.triu(everyone)))


def _moments(site: Site) -> _Moments:
    posterior = condition(site)
    return _Moments(posterior.mean[0], posterior.covariance()[0])


def _marginals(at: _AtRow, rows: _Row, features: Features) -> Marginals:
    means = jnp.einsum("njq,nq->nj", rows.weights, at.mean)
    explained = jnp.einsum("njq,nqr,nkr->njk", rows.weights, at.covariance, rows.weights)
    return Marginals(
        features.offset + means, explained + features.slack, means[..., None], explained
    )


def _settled(
    model: Generative, row: _Row, at_row: _AtRow, rounds: int, tolerance: float
) -> RowSites:
    """The site of one row, by the E step's rounds on the latent values at that row alone.

    They are all that the row can see of q(v): u = μ + root(C)·ξ, ξ standard normal.
    """
    centre = row.weights @ at_row.mean
    design = row.weights @ root(at_row.covariance)
    features = Features(design[None, :, None], row.features.slack, row.features.offset + centre)
    nothing = empty(1, len(at_row.mean))
    begin = first_sites(model, row.batch, features, nothing)
    fit, _ = e_step(model, row.batch, features, nothing, begin, rounds=rounds, tolerance=tolerance)
    pulled = jnp.einsum("njk,k->nj", fit.rows.precision, centre)  # about the offset again
    rows = RowSites(fit.rows.linear + pulled[..., None], fit.rows.precision)
    return jax.tree.map(lambda leaf: leaf[0], rows)


def _condition(
    weights: Float[Array, "J Q"], at_row: _AtRow, site: RowSites
) -> tuple[Float[Array, " J"], Float[Array, "J J"]]:
    """(I + PE)⁻¹(b − Pm) and P(I + EP)⁻¹: how a row's site moves mean and covariance."""
    mean = weights @ at_row.mean
    explained = weights @ at_row.covariance @ weights.T
    residual = site.linear[:, 0] - site.precision @ mean
    if len(mean) == 1:
        shrink = 1.0 / (1.0 + site.precision * explained)
        return shrink[0] * residual, shrink * site.precision
    half = root(site.precision)
    chol = cholesky(jnp.eye(len(mean)) + half.T @ explained @ half)
    half = solve_lower(chol, half.T)
    stiffness = half.T @ half
    return residual - stiffness @ (explained @ residual), stiffness
