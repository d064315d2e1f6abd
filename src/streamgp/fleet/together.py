"""Plain updates of many keys, made together."""

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from streamgp.fleet.plain import Plain, sort_of
from streamgp.fleet.summaries import Summaries
from streamgp.inference.chain.elements import Forward, Gains, joined
from streamgp.inference.chain.known import Window
from streamgp.inference.chain.many import (
    Absorbed,
    Arrivals,
    Ends,
    Intervals,
    Many,
    Readings,
    is_fine,
)
from streamgp.inference.chain.many_laws import Laws
from streamgp.inference.chain.segments import Segment, Sums
from streamgp.inference.chain.state import ChainState, Totals, following
from streamgp.inference.scoring import Scored, scored_normal
from streamgp.model.means import Constant
from streamgp.online.progress import Progress, Scores

_TOGETHER = 512  # keys, so that what is worked on stays in the processor's cache


class Done(NamedTuple):
    """A key, its progress after the update, and what its scores say."""

    update: Plain
    progress: Progress
    scores: Scores


def made(updates: Sequence[Plain]) -> Iterator[Done | Plain]:
    """Each update made; or as it was, if it has to be made by the model itself."""
    by_sort = defaultdict(list)
    for update in updates:
        by_sort[sort_of(update)].append(update)
    for (kind, _), own in by_sort.items():
        if kind is None:
            yield from own
            continue
        for begin in range(0, len(own), _TOGETHER):
            some = own[begin : begin + _TOGETHER]
            try:
                with np.errstate(all="ignore"):  # what is not finite is refused
                    found = list(_made(some))
            except np.linalg.LinAlgError:  # of some key; which it is, the models find out
                yield from some
            else:
                yield from found


def _made(updates: list[Plain]) -> Iterator[Done | Plain]:
    batch = _Batch.of(updates)
    absorbed = batch.many.absorbed()
    fine = is_fine(absorbed, batch.many.intervals).tolist()
    table = batch.scores(absorbed)
    summaries = Summaries.of(updates, batch.rows, table)
    ends = batch.rows.tolist()
    for k, update in enumerate(updates):
        if fine[k]:
            after = batch.state(k, update, absorbed)
            scored = Scored(table[ends[k] : ends[k + 1]].copy())
            yield Done(update, *summaries.seen(k, update, after, scored))
        else:
            yield update


@dataclasses.dataclass(frozen=True, eq=False)
class _Batch:
    """Updates as arrays.

    Attributes:
        many: What is computed.
        first: Where the intervals of each key begin, and where the last ones end.
        rows: Where the rows of each key begin, and where the last ones end.
        order: Puts rows into the order of their intervals.
    """

    many: Many
    first: Int[np.ndarray, " ends"]
    rows: Int[np.ndarray, " ends"]
    order: Int[np.ndarray, " R"]

    @classmethod
    def of(cls, updates: Sequence[Plain]) -> "_Batch":
        """Stack what updates are about."""
        mixings = [update.state.mixing for update in updates]
        readings = Readings(
            np.array([mixing.reading.loadings for mixing in mixings]),
            np.array([[c.offset[0] for c in u.state.plain.channels] for u in updates]),
            np.array([mixing.reading.strength for mixing in mixings]),
            np.array([mixing.reading.spreads for mixing in mixings]),
        )
        intervals, first = _intervals(updates)
        arrivals, order, rows = _arrivals(updates, intervals, first)
        many = Many(
            Laws.of([mixing.law for mixing in mixings]),
            readings,
            _ends(updates),
            intervals,
            arrivals,
        )
        return cls(many, first, rows, order)

    def scores(self, absorbed: Absorbed) -> Float[np.ndarray, "R 6"]:
        """The scores of all rows, key after key, in the order in which they came."""
        many = self.many
        chain = many.intervals.chain[many.arrivals.interval]
        noise = many.readings.strength[chain, many.arrivals.channel] ** -0.5
        table = np.empty((len(chain), 6))
        table[self.order] = scored_normal(many.arrivals.y, absorbed.mean, absorbed.variance, noise)
        return table

    def state(self, k: int, update: Plain, absorbed: Absorbed) -> ChainState:
        """The state of a key with its rows."""
        own, state = slice(*self.first[k : k + 2].tolist()), update.state
        known, last = state.known, update.last
        forward = Forward(absorbed.forward.mean[own], absorbed.forward.spread[own])
        kept = known.links[-1].forward
        if not update.is_new:  # the first interval takes the place of the last one
            kept = Forward(kept.mean[:-1], kept.spread[:-1])
        segment = _extended(last, update, absorbed.linear[own], absorbed.precision[own])
        gains = Gains(absorbed.gram[k], float(absorbed.evidence[k]))
        number = len(known.links) - 1
        window = Window(number, number + 1, last, known.links[-1].forward, known.after(number))
        known = known.replaced(window, segment, joined(kept, forward), gains)
        totals, count = state.totals, absorbed.rows[k]
        totals = Totals(
            totals.slack + absorbed.slack[k],
            totals.mass + count,
            totals.count + count,
            totals.energy + absorbed.energy[k],
        )
        return following(state, known, totals=totals, heard=state.heard + count)


def _extended(last: Segment, update: Plain, linear: np.ndarray, precision: np.ndarray) -> Segment:
    """The last segment with what rows said, in intervals that are new and perhaps in its last."""
    if update.is_new:
        times = np.concatenate([last.times, update.times[1:]])
        return Segment(
            times,
            np.concatenate([last.linear, linear]),
            np.concatenate([last.precision, precision]),
        )
    old = last.count - 1
    linear[0] += last.linear[old]
    precision[0] += last.precision[old]
    times = np.concatenate([last.times, update.times[2:]])
    return Segment(
        times,
        np.concatenate([last.linear[:old], linear]),
        np.concatenate([last.precision[:old], precision]),
    )


def _ends(updates: Sequence[Plain]) -> Ends:
    """What is known where the first interval of each key begins."""
    links = [update.state.known.links[-1] for update in updates]
    place = [-1 if update.is_new else -2 for update in updates]
    forward = Forward(
        np.array([link.forward.mean[p] for link, p in zip(links, place, strict=True)]),
        np.array([link.forward.spread[p] for link, p in zip(links, place, strict=True)]),
    )
    sums = Sums(
        np.array([link.segment.linear[-1] for link in links]),
        np.array([link.segment.precision[-1] for link in links]),
    )
    is_new = np.array([update.is_new for update in updates])
    sums.linear[is_new], sums.precision[is_new] = 0.0, 0.0
    return Ends(forward, sums, np.array([update.state.known.gains.gram for update in updates]))


def _intervals(updates: Sequence[Plain]) -> tuple[Intervals, Int[np.ndarray, " ends"]]:
    counts = [len(update.times) - 1 for update in updates]
    first = np.concatenate([[0], np.cumsum(counts)])
    chain = np.repeat(np.arange(len(updates)), counts)
    left = np.array([time for update in updates for time in update.times[:-1]])
    right = np.array([time for update in updates for time in update.times[1:]])
    return Intervals(chain, np.arange(len(chain)) - first[chain], left, right), first


def _arrivals(
    updates: Sequence[Plain], intervals: Intervals, first: np.ndarray
) -> tuple[Arrivals, Int[np.ndarray, " R"], Int[np.ndarray, " ends"]]:
    """Rows in the order of their intervals."""
    x = np.concatenate([update.rows.x[:, 0] for update in updates])
    y = np.concatenate([update.rows.y[:, 0] for update in updates])
    channel = np.concatenate([update.rows.channel for update in updates])
    sizes = [update.rows.size for update in updates]
    chain = np.repeat(np.arange(len(updates)), sizes)
    # The last interval of the row's chain that begins at the row or before it.
    interval, last = first[chain], first[chain + 1] - 1
    for _ in range(int(intervals.turn.max())):
        following_one = np.minimum(interval + 1, last)
        interval = np.where(intervals.left[following_one] <= x, following_one, interval)
    order = np.argsort(interval, kind="stable")
    basis = _basis(updates, len(x))
    rows = np.concatenate([[0], np.cumsum(sizes)])
    ordered = Arrivals(interval[order], channel[order], x[order], y[order], basis[order])
    return ordered, order, rows


def _basis(updates: Sequence[Plain], count: int) -> Float[np.ndarray, "R B"]:
    """The mean functions of all rows."""
    models = [update.state.plain for update in updates]
    means = {type(channel.mean) for model in models for channel in model.channels}
    if means == {Constant}:
        return np.ones((count, 1))
    return np.concatenate([
        model.basis(model.batch(update.rows))[np.argsort(model.batch(update.rows).order)]
        for model, update in zip(models, updates, strict=True)
    ])  # fmt: skip
