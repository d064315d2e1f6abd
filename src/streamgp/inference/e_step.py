"""The E step: natural-gradient rounds on the rows' sites (conjugate-computation VI).

One round replaces every row's site by the local quadratic of its expected log-density at the
current q(f). For conjugate channels that is the exact site and one round ends it; for the others
rounds are damped so that the bound never falls.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Batch
from streamgp.inference.bounds import expected_log_density, site_bound
from streamgp.inference.posterior import Marginals, Posterior, condition, marginals
from streamgp.inference.sites import RowSites, RunBlocks, Site, aggregate, times
from streamgp.model.mixing import Features
from streamgp.model.multitask import MultiTaskGP, of_groups
from streamgp.numerics.linalg import cholesky_of_identity_plus, solve_lower

SMALLEST_STEP = 8.0**-8
ROUNDING = 1e-11  # relative: how far a bound may fall and still count as equal


class Setting(NamedTuple):
    """What a choice of hyperparameters implies for a batch, before its own sites."""

    model: MultiTaskGP  # plain
    batch: Batch
    features: Features
    carried: Site


class Fit(NamedTuple):
    """A set of row sites and all that follows from it."""

    rows: RowSites
    site: Site  # carried and rows together
    posterior: Posterior
    marginals: Marginals
    bound: float


def fit_rows(setting: Setting, rows: RowSites) -> Fit:
    """q conditioned on the carried site and these row sites, with its bound."""
    model, batch, features, carried = setting
    site = carried + aggregate(batch, rows, features)
    posterior = condition(site)
    at_rows = marginals(batch, posterior, features)
    expected = expected_log_density(model, batch, at_rows)
    bound = site_bound(batch, expected, rows, posterior, at_rows)
    return Fit(rows, site, posterior, at_rows, bound)


Method = Callable[..., tuple[np.ndarray, np.ndarray]]


def per_row(
    method: Method,
    model: MultiTaskGP,
    batch: Batch,
    mean: Float[np.ndarray, " R"],
    covariance: RunBlocks,
) -> tuple[Float[np.ndarray, " R"], RunBlocks]:
    """A vector and a matrix per row: `method(likelihood, y, mean, covariance)` of each channel."""
    vectors = np.empty(batch.flat_size)
    matrices = tuple(np.empty_like(c) for c in covariance)
    for group, likelihood, m, c in of_groups(model, batch, mean, covariance):
        vector, matrices[group.run][group.within] = method(likelihood, group.y, m, c)
        vectors[group.flat] = vector.ravel()
    return vectors, matrices


def curvature(
    model: MultiTaskGP, batch: Batch, mean: Float[np.ndarray, " R"], covariance: RunBlocks
) -> tuple[Float[np.ndarray, " R"], RunBlocks]:
    """E_q[∇ log p] and −E_q[∇∇ log p] of every row."""
    return per_row(lambda c, *row: c.curvature(*row), model, batch, mean, covariance)


def natural_step(setting: Setting, now: Fit, step: float = 1.0) -> RowSites:
    """A step of that length along the natural gradient: b → ∂E/∂m + P·m, P → −2·∂E/∂S.

    Factorised blocks go one after the other, each seeing the means the ones before it moved to.
    """
    model, batch, features, carried = setting
    means, covariance = now.marginals.block_means, now.marginals.covariance
    gradient, target = curvature(model, batch, now.marginals.mean, covariance)
    precision = tuple(
        old + step * (new - old) for old, new in zip(now.rows.precision, target, strict=True)
    )
    blocks = means.shape[-1]
    if blocks > 1:
        means = means.copy()
        moved = aggregate(batch, RowSites(now.rows.linear, precision), features)
    columns = []
    for g in range(blocks):
        old = now.rows.linear[:, g]
        wanted = gradient + times(batch, target, now.marginals.block_means[:, g])
        columns.append(old + step * (wanted - old))
        if g + 1 < blocks:
            chol = cholesky_of_identity_plus(carried.precision[g] + moved.precision[g])
            pull = carried.linear[g] + features.design[g].T @ columns[g]
            half = solve_lower(chol, pull)
            means[:, g] = features.design[g] @ solve_lower(chol, half, transpose=True)
            mean = features.offset + means.sum(axis=-1)
            gradient, _ = curvature(model, batch, mean, covariance)
    return RowSites(np.stack(columns, axis=-1), precision)


def no_sites(batch: Batch, features: Features) -> RowSites:
    """Rows that have said nothing yet."""
    blocks = len(features.design)
    return RowSites(
        np.zeros((batch.flat_size, blocks)), tuple(np.zeros_like(s) for s in features.slack)
    )


def first_sites(setting: Setting) -> RowSites:
    """The sites that rows begin with, by what carried and conjugate sites say of them."""
    model, batch, features, carried = setting
    exact = exact_sites(setting, no_sites(batch, features))
    if model.conjugate and len(features.design) == 1:
        return exact
    before = marginals(batch, condition(carried + aggregate(batch, exact, features)), features)
    gradient, precision = per_row(
        lambda c, *row: c.first_site(*row), model, batch, before.mean, before.covariance
    )
    pull = np.stack([times(batch, precision, mean) for mean in before.block_means.T], axis=-1)
    return RowSites(pull + gradient[:, None] / pull.shape[-1], precision)


def exact_sites(setting: Setting, held: RowSites) -> RowSites:
    """`held`, with the sites of conjugate channels made exact for the model's parameters.

    It lets the M step see the collapsed bound of Gaussian channels in the noise. Factorised
    blocks share rows, so no row's site is exact there and all are held.
    """
    model, batch, features, _ = setting
    if len(features.design) > 1 or not any(c.likelihood.conjugate for c in model.channels):
        return held
    linear = held.linear.copy()
    precision = tuple(p.copy() for p in held.precision)
    for group, likelihood, offset, place in of_groups(model, batch, features.offset, precision):
        if likelihood.conjugate:
            slope, place[:] = likelihood.curvature(group.y, offset, np.zeros(place.shape))
            linear[group.flat, 0] = slope.ravel()
    return RowSites(linear, precision)


def e_step(setting: Setting, rows: RowSites, *, rounds: int, tolerance: float) -> tuple[Fit, int]:
    """A better fit, from these row sites on, and how many rounds it took."""
    return climb(
        fit_rows(setting, exact_sites(setting, rows)),
        lambda fit, step: fit_rows(setting, natural_step(setting, fit, step)),
        rounds=rounds,
        tolerance=tolerance,
    )


class Bounded(Protocol):
    """A fit, of whatever it may be, that has a bound."""

    @property
    def bound(self) -> float: ...


F = TypeVar("F", bound=Bounded)


def climb(
    fit: F, moved: Callable[[F, float], F], *, rounds: int, tolerance: float
) -> tuple[F, int]:
    """Rounds that never lower the bound, and how many there were.

    Args:
        fit: Where they begin.
        moved: A fit after a step of some length, 1.0 being a whole one.
        rounds: The largest number of rounds.
        tolerance: The gain of a whole step below which they end.
    """
    step, count = 1.0, 0
    while count < rounds:
        new = moved(fit, step)
        count += 1
        slack = ROUNDING * (1 + abs(new.bound))
        accepted = new.bound >= fit.bound - slack  # false for NaN
        done = accepted and abs(new.bound - fit.bound) < tolerance and step == 1.0
        fit = new if accepted else fit
        step = min(4 * step, 1.0) if accepted else step / 8
        if done or step < SMALLEST_STEP:
            break
    return fit, count
