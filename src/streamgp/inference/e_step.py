"""The E step: natural-gradient rounds on the rows' sites (conjugate-computation VI).

One round replaces every row's site by the local quadratic of its expected log-density at the
current q(f). For conjugate channels that is the exact site and one round ends it; for the others
rounds are damped so that the bound never falls.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from streamgp.data import Batch
from streamgp.inference.bounds import site_bound
from streamgp.inference.conditioning import Marginals, Posterior, condition, marginals
from streamgp.inference.sites import RowSites, Site, aggregate
from streamgp.model.mixing import Features
from streamgp.model.multitask import Generative
from streamgp.numerics.linalg import cholesky_of_identity_plus, solve_lower

_SMALLEST_SHARE = 8.0**-8
_ROUNDING = 1e-11  # relative: how far a bound may fall and still count as equal


class Fit(NamedTuple):
    """A set of row sites and all that follows from it."""

    rows: RowSites
    site: Site  # carried and rows together
    posterior: Posterior
    marginals: Marginals
    bound: Float[Array, ""]


class _Loop(NamedTuple):
    fit: Fit
    share: Float[Array, ""]  # ρ, the damping
    rounds: Int[Array, ""]
    done: Bool[Array, ""]


def fit_rows(
    model: Generative, batch: Batch, features: Features, carried: Site, rows: RowSites
) -> Fit:
    """q conditioned on the carried site and these row sites, with its bound."""
    site = carried + aggregate(rows, features)
    posterior = condition(site)
    at_rows = marginals(posterior, features)
    bound = site_bound(model, batch, rows, posterior, at_rows)
    return Fit(rows, site, posterior, at_rows, bound)


def blank_fit(
    model: Generative, batch: Batch, features: Features, carried: Site, rows: RowSites
) -> Fit:
    """These row sites with nothing computed from them yet, and a bound that anything beats."""
    shapes = jax.eval_shape(fit_rows, model, batch, features, carried, rows)
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    return zeros._replace(rows=rows, bound=jnp.asarray(-jnp.inf))


def natural_step(
    model: Generative,
    batch: Batch,
    features: Features,
    carried: Site,
    now: Fit,
    share: float | Float[Array, ""] = 1.0,
) -> RowSites:
    """A step of that share along the natural gradient: b → ∂E/∂m + P·m, P → −2·∂E/∂S.

    Factorised blocks go one after the other, each seeing the means the ones before it moved to.
    """
    means, mean = now.marginals.block_means, now.marginals.mean
    gradient, target = model.curvature(batch, mean, now.marginals.covariance)
    precision = now.rows.precision + share * (target - now.rows.precision)
    blocks = means.shape[-1]
    if blocks > 1:
        site = aggregate(RowSites(now.rows.linear, precision), features)
        chol = cholesky_of_identity_plus(carried.precision + site.precision)
    columns = []
    for g in range(blocks):
        old = now.rows.linear[..., g]
        wanted = gradient + jnp.einsum("njk,nk->nj", target, now.marginals.block_means[..., g])
        columns.append(old + share * (wanted - old))
        if g + 1 < blocks:
            design = features.design[:, :, g]
            pull = carried.linear[g] + jnp.einsum("njs,nj->s", design, columns[g])
            half = solve_lower(chol[g], pull[:, None])
            moved = design @ solve_lower(chol[g], half, transpose=True)[:, 0]
            means = means.at[..., g].set(moved)
            mean = features.offset + jnp.sum(means, axis=-1)
            gradient, _ = model.curvature(batch, mean, now.marginals.covariance)
    return RowSites(jnp.stack(columns, axis=-1), precision)


def no_sites(features: Features) -> RowSites:
    """Rows that have said nothing yet."""
    blocks = features.design.shape[2]
    return RowSites(jnp.zeros((*features.offset.shape, blocks)), jnp.zeros_like(features.slack))


def first_sites(model: Generative, batch: Batch, features: Features, carried: Site) -> RowSites:
    """The sites that rows begin with, by what carried and conjugate sites say of them."""
    exact = exact_sites(model, batch, features, no_sites(features))
    before = marginals(condition(carried + aggregate(exact, features)), features)
    gradient, precision = model.per_row(
        lambda likelihood, *row: likelihood.first_site(*row), batch, before.mean, before.covariance
    )
    pull = jnp.einsum("njk,nkg->njg", precision, before.block_means)
    return RowSites(pull + gradient[..., None] / pull.shape[-1], precision)


def exact_sites(model: Generative, batch: Batch, features: Features, held: RowSites) -> RowSites:
    """`held`, with the sites of conjugate channels made exact for the model's parameters.

    It lets the M step see the collapsed bound of Gaussian channels in the noise. Factorised
    blocks share rows, so no row's site is exact there and all are held.
    """
    if features.design.shape[2] > 1:
        return held
    zeros = jnp.zeros_like(features.slack)
    gradient, precision = model.curvature(batch, features.offset, zeros)
    exact = jnp.asarray([c.likelihood.conjugate for c in model.channels])[batch.channel]
    return RowSites(
        jnp.where(exact[:, None, None], gradient[..., None], held.linear),
        jnp.where(exact[:, None, None], precision, held.precision),
    )


def e_step(
    model: Generative,
    batch: Batch,
    features: Features,
    carried: Site,
    rows: RowSites,
    *,
    rounds: int | Int[Array, ""],
    tolerance: float | Float[Array, ""],
) -> tuple[Fit, Int[Array, ""]]:
    """A better fit, from these row sites on, and how many rounds it took."""

    def better(loop: _Loop) -> _Loop:
        old = loop.fit
        candidate = natural_step(model, batch, features, carried, old, loop.share)
        new = fit_rows(model, batch, features, carried, candidate)
        slack = _ROUNDING * (1 + jnp.abs(new.bound))
        accepted = new.bound >= old.bound - slack  # false for NaN
        small = jnp.abs(new.bound - old.bound) < tolerance
        share = jnp.where(accepted, jnp.minimum(4 * loop.share, 1.0), loop.share / 8)
        # The first pass, of share zero, only evaluates the rows' sites as they came.
        share = jnp.where(loop.rounds == 0, 1.0, share)
        done = (accepted & small & (loop.share == 1.0)) | (share < _SMALLEST_SHARE)
        fit = jax.tree.map(lambda a, b: jnp.where(accepted, a, b), new, old)
        return _Loop(fit, share, loop.rounds + 1, done)

    rows = exact_sites(model, batch, features, rows)
    start = _Loop(
        blank_fit(model, batch, features, carried, rows),
        jnp.zeros(()), jnp.asarray(0), jnp.asarray(False),
    )  # fmt: skip
    end = jax.lax.while_loop(lambda loop: ~loop.done & (loop.rounds <= rounds), better, start)
    return end.fit, end.rounds - 1
