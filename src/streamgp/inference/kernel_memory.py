"""What a batch says of the kernels, for later: its expected log-density under other kernels.

q(u) stays as it was. Whitened by another prior, u = L_learned·v is L⁻¹·L_learned·v, so rows see v
through A·(L⁻¹L_learned).
"""

import numpy as np

from streamgp.inference.bound_gradient import by_kernels, expected_adjoint, kernel_gradient
from streamgp.inference.e_step import DenseSetting
from streamgp.inference.memory import Memory, Vector, expand, with_right_sign
from streamgp.inference.posterior import Posterior, add
from streamgp.inference.prior import Prior
from streamgp.inference.sites import inner, times
from streamgp.model.mixing import Mixed
from streamgp.model.multitask import MultiTaskGP
from streamgp.numerics.linalg import solve_lower
from streamgp.parameters import free_gradient, free_vector, replaced, unwrap, with_free


def expand_kernels(
    wrapped: MultiTaskGP, setting: DenseSetting, prior: Prior, mixed: Mixed, posterior: Posterior
) -> Memory:
    """The expansion of a batch's expected log-density in the kernels' parameters."""

    def gradient(theta: Vector) -> Vector:
        kernels = with_free(wrapped.kernels, theta)
        return _gradient(kernels, setting, prior, mixed, posterior)

    here, hessian = expand(gradient, free_vector(wrapped.kernels))
    return Memory(here, with_right_sign(hessian))


def _gradient(
    wrapped_kernels: tuple, setting: DenseSetting, prior: Prior, mixed: Mixed, posterior: Posterior
) -> Vector:
    """The derivative of Σ E_q[log p(y|f)] by the kernels' free parameters, q(u) fixed."""
    model, batch = replaced(setting.model, kernels=unwrap(wrapped_kernels)), setting.batch
    other = Prior.of(model, prior.points)
    cross = other.cross(batch.x)
    projection = other.project(batch.x, cross)
    features = mixed.features(projection)
    maps = tuple(map(solve_lower, other.chols, prior.chols))  # L⁻¹·L_learned
    ends = np.cumsum(prior.sizes)
    *designs, basis = np.split(features.design, ends, axis=1)
    seen = np.concatenate([*(a @ c for a, c in zip(designs, maps, strict=True)), basis], axis=1)
    spread = seen @ posterior.covariance
    mean = features.offset + seen @ posterior.mean
    covariance = add(features.slack, inner(batch, spread, seen))
    by_rows = expected_adjoint(model, batch, mean, covariance, parameters=False)
    by_seen = np.outer(by_rows.by_mean, posterior.mean)
    by_seen += 2 * times(batch, by_rows.by_covariance, spread)
    by_designs, by_chols = [], []
    *by_parts, by_basis = np.split(by_seen, ends, axis=1)
    for q, (a, c, by) in enumerate(zip(designs, maps, by_parts, strict=True)):
        by_designs.append(by @ c.T)
        by_map = solve_lower(other.chols[q], a.T @ by, transpose=True)
        by_chols.append(-(by_map @ c.T))
    by_design = np.concatenate([*by_designs, by_basis], axis=1)
    by_projection, _ = mixed.adjoint(projection, by_design, by_rows.by_covariance)
    by_latents = kernel_gradient(other, batch.x, cross, projection, by_projection, by_chols)
    return free_gradient(wrapped_kernels, by_kernels(model, by_latents))
