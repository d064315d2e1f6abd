"""Rows that meet a state: a window of kept rows with new ones among them."""

import dataclasses
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from streamgp.data.batch import Rows
from streamgp.inference.beliefs import Beliefs
from streamgp.inference.bounds import expected_log_density
from streamgp.inference.e_step import Fit, exact_sites, first_sites, fit_rows, per_row
from streamgp.inference.kept import Kept
from streamgp.inference.over_time.objective import RowObjective
from streamgp.inference.over_time.state import RowState
from streamgp.inference.over_time.states import Around
from streamgp.inference.over_time.window import Window
from streamgp.inference.posterior import Marginals
from streamgp.inference.sites import RowSites, times
from streamgp.model.multitask import MultiTaskGP

_STRETCHES = 4  # in which those of some rows lie that are not the latest
NO_ROWS = Rows(np.zeros((0, 1)), np.zeros((0, 1)), np.zeros(0, int))


class Met(NamedTuple):
    """Rows that meet a state.

    Attributes:
        state: Before the rows.
        row: The number of the first kept row that the window has.
        kept: The rows of the window, new ones among them, sites as they were.
        is_new: Which of them are new.
        window: Their algebra.
    """

    state: RowState
    row: int
    kept: Kept
    is_new: Bool[np.ndarray, " n"]
    window: Window

    @classmethod
    def of(cls, state: RowState, rows: Rows, row: int | None = None) -> "Met":
        """All rows that may change, from a row on; by default from the first that does."""
        if row is None:
            first = state.place_of(float(rows.x[:, 0].min())) if rows.size else state.size
            row = state.filter_before(first).row
        place = state.filter_before(row) if row else None
        before = None if place is None else place.filter
        kept, places = state.since(row).in_time(rows)
        is_new = np.zeros(kept.size, bool)
        is_new[places] = True
        window = Window(state.world, kept.batch(state.plain), Around(before))
        return cls(state, row, kept, is_new, window)

    def some(self, most: int) -> "Met":
        """Some of all rows to learn from: the latest half of so many, and stretches of others.

        What a part of the rows says is told exactly, gaps between stretches included.
        """
        half, count = most // 2, self.kept.size - most // 2
        begins = np.linspace(0, count - half // _STRETCHES, _STRETCHES).astype(int)
        old = begins[:, None] + np.arange(half // _STRETCHES)
        which = np.unique(np.concatenate([np.ravel(old), np.arange(count, self.kept.size)]))
        kept = self.kept.take(which)
        window = dataclasses.replace(self.window, batch=kept.batch(self.state.plain))
        return self._replace(kept=kept, is_new=self.is_new[which], window=window)

    def under(self, wrapped: MultiTaskGP) -> "Met":
        """The same under other hyperparameters, if the window has all rows."""
        if wrapped is self.state.model:
            return self
        state = self.state.replace(model=wrapped)
        window = dataclasses.replace(self.window, world=state.world)
        return self._replace(state=state, window=window)

    @property
    def heard(self) -> Float[np.ndarray, " D"]:
        """The observations of each channel once the new rows are among them."""
        new = self.kept.channel[self.is_new]
        return self.state.heard + np.bincount(new, minlength=len(self.state.heard))

    @property
    def old(self) -> Kept:
        """The rows of the window that were there before."""
        return self.kept.take(~self.is_new)

    def with_sites(self, fit: Fit) -> Kept:
        """The rows of the window with the sites of a fit."""
        return self.kept.with_sites(self.state.plain, self.window.batch, fit.rows)

    def beliefs(self) -> Beliefs:
        """What is believed of hyperparameters beside what rows say."""
        return Beliefs.of(self.state.model, self.heard)

    def first_sites(self) -> RowSites:
        """The sites that rows begin with: their own if they are kept, else by what these say."""
        window, batch = self.window, self.window.batch
        held = self.kept.sites(batch)
        if self.is_new.all() and not self.row:
            return first_sites(window)
        known = exact_sites(window, held)
        _, before = window.conditioned(known)
        pull, precision = per_row(
            lambda c, *row: c.first_site(*row), window.model, batch, before.mean, before.covariance
        )
        linear = pull + times(batch, precision, before.centred)
        is_new = self.is_new[batch.order]
        for group in batch.groups:
            stays = ~is_new[group.rows]
            own = precision[group.run][group.within]
            own[stays] = known.precision[group.run][group.within][stays]
            flat = np.repeat(stays, group.latents)
            linear[group.flat][flat] = known.linear[group.flat][flat]
        return RowSites(linear, precision)

    def fit_of(self, kept: Kept) -> Fit:
        """Some rows of the window by themselves, with their sites as they are."""
        window = dataclasses.replace(self.window, batch=kept.batch(self.state.plain))
        return fit_rows(window, exact_sites(window, kept.sites(window.batch)))

    def bound_of(self, kept: Kept) -> float:
        """The bound of some rows of the window, given all before them, sites as they are."""
        if not kept.size:
            return 0.0
        if not self.state.plain.conjugate:
            return self.fit_of(kept).bound
        own = dataclasses.replace(self.window, batch=kept.batch(self.window.model))
        sites = exact_sites(own, kept.sites(own.batch))
        told, before = own.scalars(sites), own.around.before
        _, (_, _, density) = own.world.states.filtered(told, before)
        return float(np.sum(density)) + beside(own, sites)


def evidence_of(state: RowState) -> RowObjective:
    """What all kept rows say of hyperparameters."""
    met = Met.of(state, NO_ROWS, 0)
    fit = None if state.plain.conjugate else met.fit_of(met.kept)
    held = met.kept.sites(met.window.batch) if fit is None else fit.rows
    at_rows = None if fit is None else fit.marginals
    return RowObjective(state.model, met.window, held, met.beliefs(), at_rows)


def beside(window: Window, sites: RowSites) -> float:
    """What conjugate rows say that does not depend on f: at the top of their sites, all of it."""
    precision = np.concatenate([own[:, 0, 0] for own in sites.precision])
    top = window.features.offset + sites.linear / precision
    at_top = Marginals(top, tuple(np.zeros((len(own), 1, 1)) for own in sites.precision), top, ())
    total = expected_log_density(window.model, window.batch, at_top)
    for group in window.batch.groups:
        if not group.is_observed:  # it says what its site does
            flat = group.flat
            total += 0.5 * float(np.sum(sites.linear[flat] ** 2 / precision[flat]))
    return total + 0.5 * float(np.sum(np.log(2 * np.pi / precision)))
