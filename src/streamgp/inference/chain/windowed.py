"""Samples that come one at a time, while the sites of the latest rows are open.

The joint q(f) of the open rows and of some samples follows from the chain at once. Then one sample
after the other joins the open rows, the sites of all of them are found anew, and all that comes
later is conditioned on the rows that leave the window.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from streamgp.data.batch import Batch, Rows
from streamgp.inference.chain.few_rows import FewRows, JointRows
from streamgp.inference.chain.last_interval import meeting
from streamgp.inference.chain.open_rows import (
    OpenRows,
    by_row,
    first_sites_beside,
    marginals_of_some,
    sites_of_some,
    sorted_by_run,
    sorted_sites,
    staying,
)
from streamgp.inference.chain.setting import ChainSetting
from streamgp.inference.chain.state import ChainState
from streamgp.inference.e_step import e_step
from streamgp.inference.posterior import Marginals
from streamgp.inference.sites import RowSites
from streamgp.inference.trust import trusted
from streamgp.model.mixing import Features


class Window(NamedTuple):
    """How many rows are open, and how their sites are found."""

    most: int
    rounds: int
    tolerance: float


class Windowed:
    """Open rows and samples. `learn` takes the samples one after the other."""

    def __init__(self, state: ChainState, rows: Rows, met: ChainSetting, how: Window):
        """Make them ready.

        Args:
            state: What is known before.
            rows: The state's open rows, and samples after them.
            met: These rows, few and close together, as they meet the state's chain.
            how: How sites are found.
        """
        self.state, self.rows, self.how = state, rows, how
        held, batch = state.open, met.batch
        self._first = 0 if held is None else held.size
        self._joint = joint = FewRows(met.known, met.window, met.place, met.seen).joint
        self._mean, self._covariance = joint.mean, joint.covariance
        # What each row has, in the order in which rows came.
        self._offset, self._slack = by_row(batch, joint.features.offset, joint.features.slack)
        self._linear, self._precision = np.zeros_like(self._offset), np.zeros_like(self._slack)
        if held is not None:
            self._put(np.arange(self._first), state.model.batch(held.rows), held)
        self._before = _AtRows(self._offset.shape)
        self._after = _AtRows(self._offset.shape)
        self._is_open = np.arange(self.rows.size) < self._first
        self._flat = _flat_places(batch)

    def learn(self) -> Marginals:
        """q(f) of each sample before it was learned."""
        for number in range(self._first, self.rows.size):
            self._learn(number)
        new = slice(self._first, None)
        return self._before.marginals(new, self.state.model.batch(self.rows.take(new)))

    @property
    def open(self) -> OpenRows | None:
        """The rows that are open now."""
        which, model = self._is_open, self.state.plain
        sites = self._linear[which], self._precision[which]
        return OpenRows.of(model, self.rows.take(which), *sites)

    @property
    def left(self) -> tuple[ChainSetting, RowSites, Marginals] | None:
        """The rows that have left the window, with their last sites and q(f) at them."""
        which = ~self._is_open
        if not which.any():
            return None
        batch = self.state.model.batch(self.rows.take(which))
        sites = sorted_sites(batch, self._linear[which], self._precision[which])
        setting = meeting(self.state.known, self.state.plain, batch)
        return setting, sites, self._after.marginals(which, batch)

    def _learn(self, number: int) -> None:
        """One sample, beside the rows that are open."""
        among = np.append(np.flatnonzero(self._is_open), number)
        setting = self._setting(among)
        batch = setting.batch
        held = sorted_sites(batch, self._linear[among], self._precision[among])
        _, before = setting.conditioned(held)
        self._before.put(among[-1:], batch, before, slice(-1, None))
        first = first_sites_beside(setting, held, before, batch.order < len(among) - 1)
        how = self.how
        fit, _ = e_step(setting, first, rounds=how.rounds, tolerance=how.tolerance)
        self._put(among, batch, fit.rows)
        stays = staying(setting.model, self.rows.take(among), how.most)
        self._is_open[among] = stays
        if not stays.all():
            self._after.put(among[~stays], batch, fit.marginals, ~stays)
            own = self._setting(among[~stays])
            sites = sites_of_some(batch, fit.rows, ~stays, own.batch)
            at_rows = marginals_of_some(batch, fit.marginals, ~stays, own.batch)
            self._close(among[~stays], own, trusted(self.state.model, own, sites, at_rows))

    def _close(self, which: Int[np.ndarray, " n"], own: JointRows, sites: RowSites) -> None:
        """Condition all that comes later on rows that leave the window."""
        self._put(which, own.batch, sites)
        pull, bent = own.told(sites)
        reach = self._covariance[:, self._places(which, own.batch)]
        self._mean = self._mean + reach @ pull
        self._covariance = self._covariance - reach @ bent @ reach.T

    def _setting(self, which: Int[np.ndarray, " n"]) -> JointRows:
        """Some rows by themselves, before their own sites."""
        batch = self.state.model.batch(self.rows.take(which))
        places = self._places(which, batch)
        offset, slack = sorted_by_run(batch, self._offset[which], self._slack[which])
        known = self._mean[places], self._covariance[np.ix_(places, places)]
        features = Features((), slack, offset)
        return JointRows(self._joint.model, batch, features, *known, self._joint.evidence)

    def _places(self, which: Int[np.ndarray, " n"], batch: Batch) -> Int[np.ndarray, " R"]:
        """Where the latent parameters of some rows, sorted as their own batch, are in q(f)."""
        found = self._flat[which[batch.order]]
        return found[found >= 0]

    def _put(self, which: Int[np.ndarray, " n"], batch: Batch, sites: RowSites | OpenRows) -> None:
        """Note the sites of some rows."""
        if isinstance(sites, OpenRows):
            linear, precision = sites.linear, sites.precision
        else:
            linear, precision = by_row(batch, sites.linear[:, 0], sites.precision)
        width = linear.shape[1]
        self._linear[which, :width], self._precision[which, :width, :width] = linear, precision


class _AtRows:
    """q(f) of rows, in the order in which they came."""

    def __init__(self, shape: tuple[int, ...]):
        self.mean, self.covariance = np.zeros(shape), np.zeros((*shape, shape[1]))

    def put(
        self,
        which: Int[np.ndarray, " n"],
        batch: Batch,
        at_rows: Marginals,
        some: slice | np.ndarray,
    ) -> None:
        """Note q(f) of some rows of a batch."""
        mean, covariance = by_row(batch, at_rows.mean, at_rows.covariance)
        width = mean.shape[1]
        self.mean[which, :width] = mean[some]
        self.covariance[which, :width, :width] = covariance[some]

    def marginals(self, which: slice | np.ndarray, batch: Batch) -> Marginals:
        """Of some rows, which are a batch of their own. Their parts are not told apart."""
        mean, covariance = sorted_by_run(batch, self.mean[which], self.covariance[which])
        return Marginals(mean, covariance, mean[:, None], covariance)


def _flat_places(batch: Batch) -> Int[np.ndarray, "N J"]:
    """Where the latent parameters of each row, as it came, are in a batch; −1 behind them."""
    found = np.full((batch.size, max(run.latents for run in batch.runs)), -1)
    for run in batch.runs:
        places = np.arange(run.flat.start, run.flat.stop).reshape(-1, run.latents)
        found[batch.order[run.rows], : run.latents] = places
    return found
