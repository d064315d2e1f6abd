"""The continual bound, in site form."""

from typing import Protocol

import numpy as np

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
    """Σ_n E_q[log p(y_n | f_n)], over all observations that rows stand for."""
    total = 0.0
    groups = of_groups(model, batch, at_rows.mean, at_rows.covariance)
    for group, likelihood, mean, covariance in groups:
        value = likelihood.expected(group.y, mean, covariance).value
        if batch.count is not None and batch.energy is not None:
            scatter = likelihood.strength * batch.energy[group.rows]
            value = batch.count[group.rows] * value - 0.5 * scatter
        total += float(np.sum(value))
    return total


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
