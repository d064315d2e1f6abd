"""Plain updates: those that many keys can make together.

Such an update folds a few rows in at the end of a chain: normal noise, no hyperparameters to learn,
nothing that fades, no segment that becomes full. It is what most updates of most fleets are.
Whatever is not plain is done by the model itself.
"""

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np

from streamgp.data.batch import Rows
from streamgp.data.reader import Intake
from streamgp.gp import ContinualGP
from streamgp.inference.chain.grid import times_after
from streamgp.inference.chain.many_laws import Kind, kind_of
from streamgp.inference.chain.segments import SIZE, Segment
from streamgp.inference.chain.state import ChainState
from streamgp.likelihoods import Gaussian
from streamgp.online.batch_update import Updater
from streamgp.online.lifecycle import may_restart
from streamgp.online.progress import Progress
from streamgp.online.spacing import is_known

_MOST = 64  # rows; for more of them a model is as fast by itself


class Plain(NamedTuple):
    """A key whose update is plain.

    Attributes:
        key: Of the model.
        model: The model.
        updater: How it works.
        progress: How far it has come, and the form of its data.
        intake: What came.
        state: Its state.
        rows: The new rows.
        times: Where the intervals that the rows need begin, and where the last one ends.
        is_new: Whether the first of them is not there yet.
    """

    key: Hashable
    model: ContinualGP
    updater: Updater
    progress: Progress
    intake: Intake
    state: ChainState
    rows: Rows
    times: list[float]
    is_new: bool

    @property
    def last(self) -> Segment:
        """The last segment of the chain."""
        return self.state.known.links[-1].segment


def plain(key: Hashable, model: ContinualGP, intake: Intake, *, learn: bool) -> Plain | None:
    """The update of a key if it is plain, else None."""
    updater, progress = model._version
    state, rows = progress.state, intake.rows
    if not isinstance(state, ChainState) or rows is None:
        return None
    if rows.size > min(_MOST, updater.batch_rows):
        return None
    if not is_known(updater.specification, progress):
        return None
    if updater.outliers != "keep" or updater.forgetting.factor != 1.0 or not state.segments:
        return None
    if not _is_gaussian(state) or may_restart(state) or not _are_known(progress, rows):
        return None
    x = rows.x[:, 0].tolist()
    last = state.segments[-1]
    begin, end = last.times[-2:].tolist()
    if min(x) < begin:
        return None
    late = times_after(state, x)
    if late is None or last.count + len(late) > SIZE:
        return None
    schedule = updater.schedule(state)
    if schedule.is_due(progress, rows, lambda: np.nan, learn=learn):
        return None
    # Rows at the last time belong to the interval after it, if there is one.
    is_new = bool(late) and min(x) >= end
    times = [end, *late] if is_new else [begin, end, *late]
    return Plain(key, model, updater, progress, intake, state, rows, times, is_new)


def sort_of(update: Plain) -> tuple[Kind | None, tuple[int, ...]]:
    """What updates must have in common to be made together."""
    mixing = update.state.mixing
    reading = mixing.reading
    return kind_of(mixing.law), (*reading.loadings.shape, *reading.spreads.shape)


def _is_gaussian(state: ChainState) -> bool:
    """Whether all channels have normal noise of one size."""
    families = [channel.likelihood for channel in state.plain.channels]
    return all(type(own) is Gaussian and not own.error for own in families)


def _are_known(progress: Progress, rows: Rows) -> bool:
    """Whether every channel among the rows has had data before."""
    if all(progress.seen.values()):
        return True
    return all(progress.seen[rows.names[d]] for d in set(rows.channel.tolist()))
