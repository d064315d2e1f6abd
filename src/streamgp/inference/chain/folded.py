"""What an update leaves behind: rows in the sums of a chain, and rows that stay open."""

from typing import Any, NamedTuple

import numpy as np

from streamgp.inference.chain.episode import Episode, Learned, exact
from streamgp.inference.chain.open_rows import (
    OpenRows,
    by_row,
    marginals_of_some,
    sites_of_some,
    staying,
)
from streamgp.inference.chain.setting import ChainSetting, meeting
from streamgp.inference.chain.state import ChainState, with_sums
from streamgp.inference.e_step import Fit
from streamgp.inference.posterior import Marginals
from streamgp.inference.sites import RowSites
from streamgp.model.multitask import of_groups


class Left(NamedTuple):
    """Rows that are to join the sums: their sites, and q(f) at them."""

    setting: ChainSetting
    sites: RowSites
    at_rows: Marginals


def parted(
    episode: Episode, learned: Learned, fit: Fit, most: int
) -> tuple[OpenRows | None, Left | None]:
    """The rows that stay open, and those that join the sums."""
    (state, setting), rows, batch = learned.trial, episode.rows, episode.batch
    assert setting is not None
    stays = staying(state.plain, rows, most)
    if not stays.any():
        return None, Left(setting, fit.rows, fit.marginals)
    linear, precision = by_row(batch, fit.rows.linear, fit.rows.precision)
    still_open = OpenRows.of(state.plain, rows.take(stays), linear[stays], precision[stays])
    if stays.all():
        return still_open, None
    some = state.model.batch(rows.take(~stays))
    sites = sites_of_some(batch, fit.rows, ~stays, some)
    at_rows = marginals_of_some(batch, fit.marginals, ~stays, some)
    return still_open, Left(meeting(state.known, state.plain, some), sites, at_rows)


def exactly_folded(
    state: ChainState, setting: ChainSetting, **changes: Any
) -> tuple[ChainState, float]:
    """The state with conjugate rows, and the bound less what the past says beside its site."""
    after = with_sums(state, setting, exact(setting), **changes)
    left = state.mixing.reading.slack_weights * (after.totals.slack - state.totals.slack)
    return after, after.known.weights.log_evidence + _at_offsets(setting) - 0.5 * float(left.sum())


def _at_offsets(setting: ChainSetting) -> float:
    """The log densities of rows at their offsets: what conjugate rows say beside their sites."""
    none = tuple(np.zeros(own.shape) for own in setting.features.slack)
    groups = of_groups(setting.model, setting.batch, setting.features.offset, none)
    return sum(
        float(likelihood.expected(group.y, offset, zero).value.sum())
        for group, likelihood, offset, zero in groups
    )
