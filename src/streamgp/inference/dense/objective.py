"""What learning makes as large as possible: the bound of all kept rows, in hyperparameters.

Sites of conjugate rows are exact. The others are held, and q follows the posterior as
hyperparameters move (Adam et al., 2021), so that it stays a lower bound of the evidence however far
they go. With T = S(I + SᵀKS)⁻¹Sᵀ, α = T·P⁻¹b, A = I − KT, q(g) = N(Kα, AK), and the derivatives r
and D of Σ E[log p] − E[log t] of rows whose sites are held, by their means and covariances,

    ∂bound/∂K = ½(ααᵀ − T) + sym(Aᵀr αᵀ) + AᵀDA.
"""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Batch
from streamgp.inference.beliefs import Beliefs
from streamgp.inference.bounds import at_top
from streamgp.inference.dense.design import Design, Matrix, adjoint, mixed
from streamgp.inference.dense.setting import flats, limits_of, not_negative, scalars, transposed
from streamgp.inference.e_step import counted, exact_sites_at
from streamgp.inference.gradients import by_kernels, expected_adjoint, summed
from streamgp.inference.m_step import Answer, Vector
from streamgp.inference.sites import RowSites, RunBlocks, times
from streamgp.model.mixing import offsets
from streamgp.model.multitask import MultiTaskGP
from streamgp.numerics.linalg import cholesky_of_identity_plus, inverse_of, solve_lower
from streamgp.parameters import free_gradient, free_size, unwrap, with_free


class _At(NamedTuple):
    """Rows under some hyperparameters."""

    model: MultiTaskGP
    design: Design
    matrices: list[Matrix]
    covariance: Matrix  # K
    sites: RowSites
    roots: RunBlocks  # S
    value: Float[np.ndarray, " R"]  # S⁻¹b
    chol: Matrix
    z: Float[np.ndarray, " R"]

    @property
    def evidence(self) -> float:
        """log ∫ p(g) t(g) dg, but for ½|S⁻¹b|²."""
        return -0.5 * float(self.z @ self.z) - float(np.sum(np.log(self.chol.diagonal())))


@dataclasses.dataclass(frozen=True, eq=False)
class Objective:
    """The bound of rows as a function of hyperparameters.

    Attributes:
        wrapped: The model whose hyperparameters are moved.
        batch: All rows.
        held: The sites of those that are not conjugate.
        beliefs: What is believed of hyperparameters beside.
    """

    wrapped: MultiTaskGP
    batch: Batch
    held: RowSites
    beliefs: Beliefs

    def __call__(self, theta: Vector) -> Answer:
        """Value and gradient at free parameters, per observation."""
        return self.beliefs.objective(theta, *self.bound(theta))

    def bound(self, theta: Vector) -> Answer:
        """What rows say of hyperparameters, up to a constant, and its gradient; no priors."""
        there = with_free(self.wrapped, theta)
        at = self._at(unwrap(there))
        if not np.isfinite(at.chol[-1, -1]):
            return -np.inf, np.zeros(len(theta))
        alpha = times(self.batch, at.roots, solve_lower(at.chol, at.z, transpose=True))
        inverse = inverse_of(at.chol)
        seen = _Seen(at.covariance @ alpha, self._spread(at, inverse))
        t = _both_sides(self.batch, at.roots, inverse)
        told = self._told(at, seen)
        by = -0.5 * t
        by += np.outer(0.5 * alpha, alpha)
        if told.by_mean.any():
            by += self._through_q(at, t, alpha, seen, told)
        by_design = adjoint(at.model.latent_kernels, at.design, at.matrices, by)
        channels = self._by_channels(at.model, by_design.weights, told.by_likelihood)
        gradients = {"kernels": by_kernels(at.model, by_design.kernels), "channels": channels}
        return at.evidence + told.value, free_gradient(there, gradients)

    def _at(self, model: MultiTaskGP) -> _At:
        design, batch = Design.of(model, self.batch), self.batch
        matrices = [kernel.matrix(design.x, design.x) for kernel in model.latent_kernels]
        covariance = mixed(design, design, matrices)
        sites = exact_sites_at(model, batch, offsets(model, batch), self.held)
        roots, value = scalars(batch, sites, limits_of(model, batch))
        chol = cholesky_of_identity_plus(_both_sides(batch, transposed(roots), covariance))
        z = solve_lower(chol, value)
        return _At(model, design, matrices, covariance, sites, roots, value, chol, z)

    def _spread(self, at: _At, inverse: Matrix) -> RunBlocks:
        """Cov_q of each row's latent parameters: S⁻ᵀ(I − (I + SᵀKS)⁻¹)S⁻¹, within rows."""
        found = []
        for run, flat, roots in zip(self.batch.runs, flats(self.batch), at.roots, strict=True):
            inside = np.eye(run.latents) - inverse[flat[:, :, None], flat[:, None, :]]
            half = np.linalg.solve(np.swapaxes(roots, 1, 2), inside)
            spread = np.linalg.solve(np.swapaxes(roots, 1, 2), np.swapaxes(half, 1, 2))
            found.append(not_negative(spread))
        return tuple(found)

    def _told(self, at: _At, seen: "_Seen") -> "_Told":
        """What rows say beside their sites, given q."""
        model, batch, offset = at.model, self.batch, offsets(at.model, self.batch)
        value = at_top(model, batch, at.sites, offset)
        said = expected_adjoint(model, batch, offset + seen.mean, seen.spread)
        by_mean = np.zeros(batch.flat_size)
        by_spread = tuple(np.zeros_like(own) for own in seen.spread)
        pull = times(batch, at.sites.precision, seen.mean)
        for group in batch.groups:
            channel = model.channels[group.channel].likelihood
            if group.is_observed and channel.conjugate:
                continue
            flat, run, within = group.flat, group.run, group.within
            value += 0.5 * float(np.sum(at.value[flat] ** 2))
            if not group.is_observed:
                continue
            precision, b = at.sites.precision[run][within], at.sites.linear[flat]
            value += float(np.sum(said.value[group.rows]))
            value -= float((b - 0.5 * pull[flat]) @ seen.mean[flat])
            value += 0.5 * float(np.vdot(precision, seen.spread[run][within]))
            by_mean[flat] = said.by_mean[flat] - b + pull[flat]
            by_spread[run][within] = said.by_covariance[run][within] + 0.5 * precision
        return _Told(value, by_mean, by_spread, said.by_likelihood)

    def _through_q(
        self, at: _At, t: Matrix, alpha: np.ndarray, seen: "_Seen", told: "_Told"
    ) -> Matrix:
        """By K, as q of rows whose sites are held follows it; by their likelihoods in passing."""
        batch, r = self.batch, told.by_mean
        a = -(at.covariance @ t)
        a.flat[:: len(a) + 1] += 1.0
        pulled = a.T @ r
        by = np.outer(0.5 * pulled, alpha)
        by += by.T
        by += a.T @ times(batch, told.by_spread, a)
        self._add_exact_sites(at, a, seen, told)
        return by

    def _add_exact_sites(self, at: _At, a: Matrix, seen: "_Seen", told: "_Told") -> None:
        """What noises of conjugate channels do to q where other rows hold their sites."""
        offset = offsets(at.model, self.batch)
        for group in self.batch.groups:
            wrapped = self.wrapped.channels[group.channel].likelihood
            if not (wrapped.conjugate and group.is_observed and free_size(wrapped)):
                continue
            spread = a[group.flat] @ at.covariance  # of q, between these rows and all
            bent = times(self.batch, told.by_spread, np.ascontiguousarray(spread.T))
            by_b = spread @ told.by_mean
            by_p = -seen.mean[group.flat] * by_b - np.einsum("nr,rn->n", spread, bent)
            slopes = counted(self.batch, group, by_b[:, None], by_p[:, None, None])
            likelihood = at.model.channels[group.channel].likelihood
            more = likelihood.site_gradient(group.y, offset[group.flat][:, None], *slopes)
            known = told.by_likelihood.get(group.channel, {})
            told.by_likelihood[group.channel] = summed(known, more)

    def _by_channels(
        self,
        model: MultiTaskGP,
        by_weights: Float[np.ndarray, "R Q"],
        by_likelihood: dict[int, dict[str, Any]],
    ) -> tuple[dict[str, Any], ...]:
        channels: list[dict[str, Any]] = [{"likelihood": {}} for _ in model.channels]
        for group in self.batch.groups:
            own = by_weights[group.flat].reshape(-1, group.latents, by_weights.shape[1])
            by_loadings = model.channels[group.channel].by_loadings(own.sum(axis=0))
            by = {"likelihood": by_likelihood.get(group.channel, {}), **by_loadings}
            channels[group.channel] = summed(channels[group.channel], by)
        return tuple(channels)


class _Seen(NamedTuple):
    """q of the rows' latent parameters, less their offsets."""

    mean: Float[np.ndarray, " R"]
    spread: RunBlocks


class _Told(NamedTuple):
    """What rows say beside the evidence of their sites.

    Attributes:
        value: Of the bound.
        by_mean: r, zero of conjugate rows.
        by_spread: D.
        by_likelihood: Derivatives by parameters, by channel.
    """

    value: float
    by_mean: Float[np.ndarray, " R"]
    by_spread: RunBlocks
    by_likelihood: dict[int, dict[str, Any]]


def _both_sides(batch: Batch, blocks: RunBlocks, matrix: Matrix) -> Matrix:
    """M·A·Mᵀ with a matrix M for each row, of a symmetric A."""
    return times(batch, blocks, np.ascontiguousarray(times(batch, blocks, matrix).T))
