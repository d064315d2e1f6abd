"""The continual bound, in site form and as the paper writes it."""

import dataclasses
from typing import Protocol

import numpy as np
from jaxtyping import Float
from scipy.linalg import solve_triangular

from streamgp.data.batch import Batch
from streamgp.inference.posterior import Marginals
from streamgp.inference.sites import RowSites, times
from streamgp.model.multitask import MultiTaskGP, of_groups


class HasEvidence(Protocol):
    """A posterior, of whatever it may be."""

    @property
    def log_evidence(self) -> float:
        """log ∫ p(u) t(u) du of all sites t that it was conditioned on."""


def expected_log_density(model: MultiTaskGP, batch: Batch, at_rows: Marginals) -> float:
    """Σ_n E_q[log p(y_n | f_n)]."""
    return sum(
        float(np.sum(likelihood.expected(group.y, mean, covariance).value))
        for group, likelihood, mean, covariance in of_groups(
            model, batch, at_rows.mean, at_rows.covariance
        )
    )


def expected_log_sites(batch: Batch, rows: RowSites, at_rows: Marginals) -> float:
    """E_q[log t(v)] of the rows' sites: what conditioning on them added to the evidence."""
    mean = at_rows.centred
    total = float(rows.linear @ mean) - 0.5 * float(mean @ times(batch, rows.precision, mean))
    for precision, explained in zip(rows.precision, at_rows.explained, strict=True):
        total -= 0.5 * float(np.vdot(precision, explained))
    return total


def site_bound(
    batch: Batch, expected: float, rows: RowSites, posterior: HasEvidence, at_rows: Marginals
) -> float:
    """E_q[log p(y|f)] + E_q[log t̃(u)] − KL[q‖p(u|ψ)], for q conditioned on t̃ and the rows' sites.

    For such a q the last two terms are its log evidence less what the rows contributed to it, so
    no KL is ever formed. For Gaussian rows this is the collapsed bound. The constant that makes
    it the paper's L_C is the carried site's normaliser, subtracted by the caller.
    """
    return expected + posterior.log_evidence - expected_log_sites(batch, rows, at_rows)


@dataclasses.dataclass(frozen=True, eq=False)
class Normal:
    """A multivariate normal by moments, as the paper has it."""

    mean: Float[np.ndarray, " S"]
    covariance: Float[np.ndarray, "S S"]


def kl_divergence(q: Normal, p: Normal) -> float:
    """KL[q‖p]."""
    chol = np.linalg.cholesky(p.covariance)
    half = solve_triangular(chol, np.linalg.cholesky(q.covariance), lower=True)
    shift = solve_triangular(chol, p.mean - q.mean, lower=True)
    log_dets = np.sum(np.log(np.abs(np.diag(half))))
    return float(0.5 * (np.sum(half**2) + np.sum(shift**2) - len(q.mean)) - log_dets)


def paper_bound(
    expected: float, q: Normal, prior_new: Normal, prior_old: Normal, continual: Normal
) -> float:
    """L_C term by term (Eq. 10): E_q[log p(y|f)] − KL[q‖p_new] + KL[q‖p_old] − KL[q‖q̃]."""
    return (
        expected
        - kl_divergence(q, prior_new)
        + kl_divergence(q, prior_old)
        - kl_divergence(q, continual)
    )
