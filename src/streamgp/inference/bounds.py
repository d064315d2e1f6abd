"""The continual bound, in site form and as the paper writes it."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from streamgp.data import Batch
from streamgp.inference.conditioning import Marginals, Posterior
from streamgp.inference.sites import RowSites
from streamgp.model.multitask import Generative


def expected_log_density(model: Generative, batch: Batch, marginals: Marginals) -> Float[Array, ""]:
    """Σ_n E_q[log p(y_n | f_n)]."""
    rows = model.per_row(
        lambda likelihood, *row: likelihood.expected_log_density(*row),
        batch,
        marginals.mean,
        marginals.covariance,
    )
    return jnp.sum(rows)


def expected_log_sites(rows: RowSites, marginals: Marginals) -> Float[Array, ""]:
    """E_q[log t(v)] of the rows' sites: what conditioning on them added to the evidence."""
    means, precision = marginals.block_means, rows.precision
    linear = jnp.sum(rows.linear * means)
    quadratic = jnp.einsum("njg,njk,nkg->", means, precision, means)
    return linear - 0.5 * (quadratic + jnp.sum(precision * marginals.explained))


def site_bound(
    model: Generative,
    batch: Batch,
    rows: RowSites,
    posterior: Posterior,
    marginals: Marginals,
) -> Float[Array, ""]:
    """E_q[log p(y|f)] + E_q[log t̃(u)] − KL[q‖p(u|ψ)], for q conditioned on t̃ and the rows' sites.

    For such a q the last two terms are its log evidence less what the rows contributed to it, so
    no KL is ever formed. For Gaussian rows this is the collapsed bound. The constant that makes
    it the paper's L_C is the carried site's normaliser, subtracted by the caller.
    """
    return (
        expected_log_density(model, batch, marginals)
        + posterior.log_evidence
        - expected_log_sites(rows, marginals)
    )


class Normal(eqx.Module):
    """A multivariate normal by moments, as the paper has it."""

    mean: Float[Array, " S"]
    covariance: Float[Array, "S S"]


def kl_divergence(q: Normal, p: Normal) -> Float[Array, ""]:
    """KL[q‖p]."""
    chol = jnp.linalg.cholesky(p.covariance)
    half = jax.scipy.linalg.solve_triangular(chol, jnp.linalg.cholesky(q.covariance), lower=True)
    shift = jax.scipy.linalg.solve_triangular(chol, p.mean - q.mean, lower=True)
    log_dets = jnp.sum(jnp.log(jnp.abs(jnp.diag(half))))
    return 0.5 * (jnp.sum(half**2) + jnp.sum(shift**2) - len(q.mean)) - log_dets


def paper_bound(
    expected: Float[Array, ""], q: Normal, prior_new: Normal, prior_old: Normal, continual: Normal
) -> Float[Array, ""]:
    """L_C term by term (Eq. 10): E_q[log p(y|f)] − KL[q‖p_new] + KL[q‖p_old] − KL[q‖q̃]."""
    return (
        expected
        - kl_divergence(q, prior_new)
        + kl_divergence(q, prior_old)
        - kl_divergence(q, continual)
    )
