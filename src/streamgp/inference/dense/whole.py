"""All rows of a model, new ones among them, under some hyperparameters."""

import dataclasses
import functools
from typing import Any

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Batch, Rows
from streamgp.inference.beliefs import Beliefs
from streamgp.inference.bounds import at_top
from streamgp.inference.dense.design import Design, covariance
from streamgp.inference.dense.factor import Factor
from streamgp.inference.dense.setting import Joint, observed
from streamgp.inference.dense.state import DenseState
from streamgp.inference.e_step import exact_sites, exact_sites_at, first_sites, fit_rows, per_row
from streamgp.inference.kept import Kept, joined
from streamgp.inference.sites import RowSites, times
from streamgp.model.mixing import offsets
from streamgp.model.multitask import MultiTaskGP
from streamgp.parameters import unwrap

_OPEN = 20  # rows that are not conjugate whose sites change as others come, the latest that came
_LEARNED_BY_HEART = 64  # hyperparameters: of more, the next M step learns anew how they bend


@dataclasses.dataclass(frozen=True, eq=False)
class Whole:
    """All rows, new ones among them, under some hyperparameters.

    Attributes:
        before: The state before the new rows.
        wrapped: The hyperparameters.
        kept: All rows, the new ones last.
        new: How many are new.
        heard: The observations of each channel.
        curvature: What M steps have learned of the objective, as an inverse Hessian; None if these
            hyperparameters do not go on from those of the state.
    """

    before: DenseState
    wrapped: MultiTaskGP
    kept: Kept
    new: int
    heard: Float[np.ndarray, " D"]
    curvature: Float[np.ndarray, "T T"] | None

    @classmethod
    def of(cls, state: DenseState, rows: Rows, wrapped: MultiTaskGP) -> "Whole":
        new = Kept.none(state.plain, state.kept.x.shape[1]).like(rows)
        more = np.bincount(new.channel, minlength=len(state.heard))
        curvature = state.curvature if wrapped is state.model else None
        kept = joined([state.kept, new])
        return cls(state, wrapped, kept, rows.size, state.heard + more, curvature)

    @functools.cached_property
    def model(self) -> MultiTaskGP:
        """The hyperparameters, plain."""
        return unwrap(self.wrapped)

    @functools.cached_property
    def batch(self) -> Batch:
        """All rows, sorted for the algebra."""
        return self.kept.batch(self.model)

    @functools.cached_property
    def joint(self) -> Joint:
        """All rows before any of them is learned."""
        design = Design.of(self.model, self.batch)
        own = covariance(self.model.latent_kernels, design, design)
        return Joint(self.model, self.batch, np.zeros(len(own)), own)

    @functools.cached_property
    def factor(self) -> Factor:
        """All rows as scalar observations, where all are conjugate."""
        rows = observed(self.model, self.batch, self.kept.sites(self.batch))
        return Factor.of(self.model.latent_kernels, *rows)

    def beliefs(self) -> Beliefs:
        """What is believed of hyperparameters beside what rows say."""
        return Beliefs.of(self.wrapped, self.heard)

    def first_sites(self) -> RowSites:
        """The sites that rows begin with."""
        return first_of(self.joint, self.kept, self.kept.size - self.new)

    def known(self) -> tuple[RowSites, float]:
        """The sites that all rows have, and the bound."""
        sites = self.kept.sites(self.batch)
        if not self.model.conjugate:
            fit = fit_rows(self.joint, exact_sites(self.joint, sites))
            return fit.rows, fit.bound
        offset = offsets(self.model, self.batch)
        exact = exact_sites_at(self.model, self.batch, offset, sites)
        return exact, self.factor.evidence + at_top(self.model, self.batch, exact, offset)

    def state(self, rows: RowSites) -> DenseState:
        """The state with these rows under these hyperparameters, with sites as given."""
        before = self.before
        changes: dict[str, Any] = {"heard": self.heard, "model": self.wrapped}
        if self.curvature is None or len(self.curvature) <= _LEARNED_BY_HEART:
            changes["curvature"] = self.curvature
        if self.model.conjugate:
            since = before.size
            new = self.kept.take(slice(since, None))
            after = before.following(
                new, self.kept.size, since=since, factor=self.factor, **changes
            )
        else:
            kept = self.kept.with_sites(self.model, self.batch, rows)
            after = before.following(kept, kept.size - left_open(self.model, kept), **changes)
        vars(after).update(plain=self.model)
        return after


def first_of(joint: Joint, kept: Kept, known: int) -> RowSites:
    """The sites that rows begin with: of the first, those that they have; by them, of the others.

    Args:
        joint: The rows.
        kept: The same, in the order in which they came.
        known: How many have sites.
    """
    if not known:
        return first_sites(joint)
    batch = joint.batch
    held = exact_sites(joint, kept.sites(batch))
    if known == kept.size or joint.model.conjugate:
        return held
    _, before = joint.conditioned(held)
    pull, precision = per_row(
        lambda c, *row: c.first_site(*row), joint.model, batch, before.mean, before.covariance
    )
    linear = pull + times(batch, precision, before.centred)
    has_site = batch.order < known
    for group in batch.groups:
        stays = has_site[group.rows]
        if joint.model.channels[group.channel].likelihood.conjugate or not group.is_observed:
            stays = np.ones(len(stays), bool)
        own = precision[group.run][group.within]
        own[stays] = held.precision[group.run][group.within][stays]
        flat = np.repeat(stays, group.latents)
        linear[group.flat][flat] = held.linear[group.flat][flat]
    return RowSites(linear, precision)


def left_open(model: MultiTaskGP, rows: Kept) -> int:
    """How many of the last rows stay open: from the first of the latest that are not conjugate."""
    may = ~np.array([channel.likelihood.conjugate for channel in model.channels])
    candidates = np.flatnonzero(may[rows.channel] & ~np.isnan(rows.y[:, 0]))
    return rows.size - int(candidates[-_OPEN:][0]) if len(candidates) else 0
