"""The continual bound, in site form."""

from typing import Protocol

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Batch, Group
from streamgp.inference.posterior import Marginals
from streamgp.inference.sites import NOTHING, RowSites, times
from streamgp.likelihoods import Likelihood
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
    for group, _, mean, covariance in groups:
        total += float(np.sum(expected_of(model, batch, group, mean, covariance)))
    return total


def at_top(
    model: MultiTaskGP, batch: Batch, sites: RowSites, offset: Float[np.ndarray, " R"]
) -> float:
    """What conjugate rows say at the tops of their sites, beside which they are those sites."""
    total = 0.0
    for group in batch.groups:
        if not (group.is_observed and model.channels[group.channel].likelihood.conjugate):
            continue
        precision = np.maximum(sites.precision[group.run][group.within][:, 0, 0], NOTHING)
        top = (offset[group.flat] + sites.linear[group.flat] / precision)[:, None]
        total += float(np.sum(expected_of(model, batch, group, top, np.zeros((len(top), 1, 1)))))
    return total


def expected_of(
    model: MultiTaskGP,
    batch: Batch,
    group: Group,
    mean: Float[np.ndarray, "n J"],
    covariance: Float[np.ndarray, "n J J"],
) -> Float[np.ndarray, " n"]:
    """E_q[log p] of each row of a group, over all observations that it stands for."""
    likelihood = model.channels[group.channel].likelihood
    return of_all(batch, group, likelihood, likelihood.expected(group.y, mean, covariance).value)


def of_all(
    batch: Batch, group: Group, likelihood: Likelihood, value: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " n"]:
    """Expected log densities of single observations, as rows that stand for several have them."""
    if batch.count is None or batch.energy is None:
        return value
    scatter = likelihood.strength * batch.energy[group.rows]
    return batch.count[group.rows] * value - 0.5 * scatter


def expected_log_sites(batch: Batch, rows: RowSites, at_rows: Marginals) -> float:
    """E_q[log t(v)] of the rows' sites: what conditioning on them added to the evidence.

    A row that has nothing but its site is left out: that is its likelihood.
    """
    total, mean, pull = 0.0, at_rows.centred, times(batch, rows.precision, at_rows.centred)
    for group in batch.groups:
        if group.is_observed:
            own, run, within = group.flat, group.run, group.within
            total += float((rows.linear[own] - 0.5 * pull[own]) @ mean[own])
            total -= 0.5 * float(
                np.vdot(rows.precision[run][within], at_rows.explained[run][within])
            )
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
