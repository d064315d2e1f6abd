"""The E step: natural-gradient rounds on the rows' sites (conjugate-computation VI).

One round replaces every row's site by the local quadratic of its expected log-density at the
current q(f). For conjugate channels that is the exact site and one round ends it; for the others
rounds are damped so that the bound never falls.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Batch, Group
from streamgp.inference.bounds import HasEvidence, expected_log_density, site_bound
from streamgp.inference.posterior import Marginals
from streamgp.inference.sites import RowSites, RunBlocks, times
from streamgp.model.mixing import Features
from streamgp.model.multitask import MultiTaskGP, of_groups

SMALLEST_STEP = 8.0**-8
ROUNDING = 1e-11  # relative: how far a bound may fall and still count as equal


class Setting(Protocol):
    """What a choice of hyperparameters implies for a batch, before its own sites."""

    @property
    def model(self) -> MultiTaskGP:
        """The hyperparameters, plain."""

    @property
    def batch(self) -> Batch:
        """The rows."""

    @property
    def features(self) -> Features:
        """The rows' latent parameters before any data."""

    def conditioned(self, rows: RowSites) -> tuple[HasEvidence, Marginals]:
        """q given the past and these row sites, and what it says at the rows."""

    def resolved(self, rows: RowSites) -> RowSites:
        """Sites that say no more than the algebra can hold."""


class Fit(NamedTuple):
    """A set of row sites and all that follows from it."""

    rows: RowSites
    posterior: Any  # of the setting's kind
    marginals: Any  # `Marginals`, or None if there is no fit
    bound: float


@np.errstate(over="ignore", invalid="ignore")  # whoever asks refuses a bound that is no number
def fit_rows(setting: Setting, rows: RowSites) -> Fit:
    """q conditioned on the past and these row sites, with its bound."""
    if not all(np.isfinite(own).all() for own in (rows.linear, *rows.precision)):
        return Fit(rows, None, None, -np.inf)  # an expectation was beyond all numbers: no fit
    posterior, at_rows = setting.conditioned(rows)
    expected = expected_log_density(setting.model, setting.batch, at_rows)
    bound = site_bound(setting.batch, expected, rows, posterior, at_rows)
    return Fit(rows, posterior, at_rows, bound)


Method = Callable[..., tuple[np.ndarray, np.ndarray]]


def per_row(
    method: Method,
    model: MultiTaskGP,
    batch: Batch,
    mean: Float[np.ndarray, " R"],
    covariance: RunBlocks,
) -> tuple[Float[np.ndarray, " R"], RunBlocks]:
    """A vector and a matrix per row: `method(likelihood, y, mean, covariance)` of each channel."""
    vectors = np.zeros(batch.flat_size)
    matrices = tuple(np.zeros_like(c) for c in covariance)
    for group, likelihood, m, c in of_groups(model, batch, mean, covariance):
        vector, matrix = counted(batch, group, *method(likelihood, group.y, m, c))
        matrices[group.run][group.within] = matrix
        vectors[group.flat] = vector.ravel()
    return vectors, matrices


def counted(
    batch: Batch, group: Group, vector: Float[np.ndarray, "n J"], matrix: Float[np.ndarray, "n J J"]
) -> tuple[Float[np.ndarray, "n J"], Float[np.ndarray, "n J J"]]:
    """What single observations say, as rows that stand for several of them say it."""
    if batch.count is None:
        return vector, matrix
    count = batch.count[group.rows]
    return count[:, None] * vector, count[:, None, None] * matrix


def curvature(
    model: MultiTaskGP, batch: Batch, mean: Float[np.ndarray, " R"], covariance: RunBlocks
) -> tuple[Float[np.ndarray, " R"], RunBlocks]:
    """E_q[∇ log p] and −E_q[∇∇ log p] of every row."""
    return per_row(lambda c, *row: c.curvature(*row), model, batch, mean, covariance)


def natural_step(setting: Setting, now: Fit, step: float = 1.0) -> RowSites:
    """A step of that length along the natural gradient: b → ∂E/∂m + P·m, P → −2·∂E/∂S."""
    batch, at_rows, old = setting.batch, now.marginals, now.rows
    gradient, target = curvature(setting.model, batch, at_rows.mean, at_rows.covariance)
    wanted = gradient + times(batch, target, at_rows.centred)
    for group in batch.groups:
        if not group.is_observed:  # there is nothing but the site
            wanted[group.flat] = old.linear[group.flat]
            target[group.run][group.within] = old.precision[group.run][group.within]
    precision = tuple(p + step * (new - p) for p, new in zip(old.precision, target, strict=True))
    return setting.resolved(RowSites(old.linear + step * (wanted - old.linear), precision))


def no_sites(setting: Setting) -> RowSites:
    """Rows that have said nothing yet."""
    return RowSites(
        np.zeros(setting.batch.flat_size),
        tuple(np.zeros_like(s) for s in setting.features.slack),
    )


def first_sites(setting: Setting) -> RowSites:
    """The sites that rows begin with, by what carried and conjugate sites say of them."""
    model, batch = setting.model, setting.batch
    exact = exact_sites(setting, no_sites(setting))
    if model.conjugate:
        return exact
    _, before = setting.conditioned(exact)
    gradient, precision = per_row(
        lambda c, *row: c.first_site(*row), model, batch, before.mean, before.covariance
    )
    return RowSites(times(batch, precision, before.centred) + gradient, precision)


def exact_sites(setting: Setting, held: RowSites) -> RowSites:
    """`held`, with the sites of conjugate channels made exact for the model's parameters.

    It lets the M step see the collapsed bound of Gaussian channels in the noise.
    """
    return exact_sites_at(setting.model, setting.batch, setting.features.offset, held)


def exact_sites_at(
    model: MultiTaskGP, batch: Batch, offset: Float[np.ndarray, " R"], held: RowSites
) -> RowSites:
    """As `exact_sites`, for latent parameters with these offsets."""
    if not any(c.likelihood.conjugate for c in model.channels):
        return held
    linear = held.linear.copy()
    precision = tuple(p.copy() for p in held.precision)
    for group, likelihood, own_offset, place in of_groups(model, batch, offset, precision):
        if likelihood.conjugate:
            own = likelihood.curvature(group.y, own_offset, np.zeros(place.shape))
            slope, place[:] = counted(batch, group, *own)
            linear[group.flat] = slope.ravel()
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
    while count < rounds and fit.bound > -np.inf:
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
