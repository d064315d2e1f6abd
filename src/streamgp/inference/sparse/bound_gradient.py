"""The reverse pass: derivatives of the bound by every hyperparameter, in closed form.

Forward (docs/method.md has the derivation):

    V = L⁻¹K(Z, x),  A = w∘V,  λ = Cᵀλ₀ + Aᵀb,  Λ = CᵀΛ₀C + AᵀPA,  Σ = (I + Λ)⁻¹,  m = Σλ,
    bound = Σ E[log p] + evidence(λ, Λ) − bᵀAm + ½ mᵀAᵀPAm + ½ tr(P AΣAᵀ),

where q(f) has mean offset + Am and covariance AΣAᵀ + slack. A bar over a name is the derivative of
the bound by it; the code calls it `by_name`.
"""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.inference.bounds import site_bound
from streamgp.inference.e_step import Fit, exact_sites
from streamgp.inference.gradients import ByRows, expected_adjoint, summed
from streamgp.inference.posterior import condition, marginals
from streamgp.inference.sites import (
    RowSites,
    RunBlocks,
    Site,
    aggregate,
    inner,
    mapped_rows,
    outer,
    times,
)
from streamgp.inference.sparse.prior import Factors, Prior
from streamgp.inference.sparse.setting import SparseSetting
from streamgp.model.mixing import Projection
from streamgp.numerics.linalg import solve_lower


class BySite(NamedTuple):
    """Derivatives by what v is conditioned on."""

    linear: Float[np.ndarray, " S"]  # by λ
    precision: Float[np.ndarray, "S S"]  # by Λ
    design: Float[np.ndarray, "R S"]  # by A
    row_linear: Float[np.ndarray, " R"]  # by b
    row_precision: RunBlocks  # by P, but for what is explained


def adjoint(
    setting: SparseSetting, held: RowSites, *, parameters: bool = True
) -> tuple[Fit, ByRows, BySite]:
    """The bound with the rows' sites held, and its derivatives by all that it is made of.

    Those by parameters of likelihoods are left out if nobody asks for them.
    """
    model, batch, features, carried = setting
    rows = exact_sites(setting, held)
    site = carried + aggregate(batch, rows, features)
    posterior = condition(site)
    at_rows = marginals(batch, posterior, features)
    by_rows = expected_adjoint(
        model, batch, at_rows.mean, at_rows.covariance, parameters=parameters
    )
    value = site_bound(batch, float(np.sum(by_rows.value)), rows, posterior, at_rows)
    fit = Fit(rows, posterior, at_rows, value)
    return fit, by_rows, site_adjoint(setting, fit, by_rows)


def site_adjoint(setting: SparseSetting, fit: Fit, by_rows: ByRows) -> BySite:
    """Derivatives by λ, Λ, A, b and P."""
    batch, design = setting.batch, setting.features.design
    b, precision = fit.rows
    mean, covariance, centred = fit.posterior.mean, fit.posterior.covariance, fit.marginals.centred
    by_centred = by_rows.by_mean - b + times(batch, precision, centred)
    by_explained = tuple(e + 0.5 * p for e, p in zip(by_rows.by_covariance, precision, strict=True))
    spread = design @ covariance  # AΣ
    weighted = times(batch, by_explained, spread)
    pulled = covariance @ (design.T @ by_centred)
    by_linear = mean + pulled
    crossed = np.outer(pulled, mean)
    by_precision = -0.5 * (np.outer(mean, mean) + covariance + crossed + crossed.T)
    by_precision -= spread.T @ weighted
    through = design @ by_precision
    by_design = 2 * (times(batch, precision, through) + weighted)
    by_design += np.outer(b, by_linear)
    by_design += np.outer(by_centred, mean)
    return BySite(
        by_linear,
        by_precision,
        by_design,
        design @ by_linear - centred,
        tuple(
            t + 0.5 * o
            for t, o in zip(
                inner(batch, through, design), outer(batch, centred, centred), strict=True
            )
        ),
    )


class ByCarried(NamedTuple):
    """Derivatives by what the past says before it is whitened anew, and by the map that does it."""

    linear: Float[np.ndarray, " S"]  # by λ₀
    precision: Float[np.ndarray, "S S"]  # by Λ₀
    maps: list[Float[np.ndarray, "_M _M"]]  # by C of each latent function


def carried_adjoint(
    site: Site, maps: Factors | None, by: BySite, sizes: Sequence[int]
) -> ByCarried:
    """Derivatives by λ₀, Λ₀ and C, where carried = (Cᵀλ₀, CᵀΛ₀C).

    `maps` is None where C is the identity; `sizes` are the numbers of inducing points.
    """
    linear, half, precision = by.linear, by.precision, by.precision  # half is CΛ̄
    if maps is not None:
        linear, half = mapped_rows(linear, maps), mapped_rows(half, maps)
        precision = mapped_rows(half.T, maps)
    by_maps = []
    for begin, end in itertools.pairwise(np.cumsum([0, *sizes])):
        by_map = 2 * (site.precision[begin:end] @ half[:, begin:end])
        by_maps.append(by_map + np.outer(site.linear[begin:end], by.linear[begin:end]))
    return ByCarried(linear, precision, by_maps)


def kernel_gradient(
    prior: Prior,
    x: Float[np.ndarray, "N P"],
    cross: tuple[Float[np.ndarray, "_ N"], ...],
    projection: Projection,
    by_projection: Projection,
    by_chols: list[Float[np.ndarray, "_M _M"]] | None = None,
) -> list[dict[str, Any]]:
    """Derivatives by the parameters of each latent function's kernel.

    Args:
        prior: The factors.
        x: The rows' inputs.
        cross: K(Z, x).
        projection: V, and the variance left open.
        by_projection: The derivatives by both.
        by_chols: Derivatives by L that do not come through V, if there are any.
    """
    found, centred = [], x - prior.origin
    for q, kernel in enumerate(prior.kernels):
        by_gram, by_cross, by_diagonal = gram_adjoints(
            prior, q, projection, by_projection, None if by_chols is None else by_chols[q]
        )
        z = prior.points[q] - prior.origin
        gradient = kernel.pullback(z, z, by_gram, prior.grams[q])
        gradient = summed(gradient, kernel.pullback(z, centred, by_cross, cross[q]))
        found.append(summed(gradient, kernel.diagonal_pullback(centred, by_diagonal)))
    return found


def point_gradient(
    prior: Prior,
    x: Float[np.ndarray, "N P"],
    cross: tuple[Float[np.ndarray, "_ N"], ...],
    projection: Projection,
    by_projection: Projection,
) -> list[Float[np.ndarray, "_ P"]]:
    """Derivatives by the inducing points of each latent function; see `kernel_gradient`."""
    found, centred = [], x - prior.origin
    for q, kernel in enumerate(prior.kernels):
        by_gram, by_cross, _ = gram_adjoints(prior, q, projection, by_projection)
        z = prior.points[q] - prior.origin
        # Each point stands in a row and in a column of K(Z, Z), which is symmetric.
        by_z = 2 * kernel.input_gradient(z, z, by_gram, prior.grams[q])
        found.append(by_z + kernel.input_gradient(z, centred, by_cross, cross[q]))
    return found


def gram_adjoints(
    prior: Prior,
    q: int,
    projection: Projection,
    by_projection: Projection,
    by_chol: Float[np.ndarray, "M M"] | None = None,
) -> tuple[Float[np.ndarray, "_M _M"], Float[np.ndarray, "M N"], Float[np.ndarray, " N"]]:
    """Derivatives by K(Z, Z), K(Z, x) and k(x, x) of latent function q.

    V = L⁻¹K(Z, x) and open = max(k(x, x) − ΣV², 0).
    """
    values, left = projection.values[q], projection.open[q]
    by_open = np.where(left > 0, by_projection.open[q], 0.0)
    by_values = by_projection.values[q] - 2 * values * by_open
    by_cross = solve_lower(prior.chols[q], by_values, transpose=True)
    total = -(by_cross @ values.T)
    if by_chol is not None:
        total += by_chol
    return prior.gram_adjoint(q, total), by_cross, by_open
