"""Rows that follow many chains, folded into all of them at once.

Every chain has hyperparameters and times of its own. What is done for one interval, or one row, of
all chains is one call of NumPy: the first intervals of all chains are taken together, then the
second ones, and so on, and within an interval one row after the other (`many_rows`). Channels have
normal noise, so nothing is iterated.
"""

import dataclasses
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from streamgp.inference.chain.elements import Backward, Forward, Moves, PairSites, taken
from streamgp.inference.chain.innovations import before_pairs
from streamgp.inference.chain.many_laws import Laws
from streamgp.inference.chain.many_rows import RowsOf, SeenRows, Told, learn
from streamgp.inference.chain.segments import Sums, triangle
from streamgp.inference.chain.stretch import Pairs, paired


class Readings(NamedTuple):
    """What turns states into channels, by chain."""

    loadings: Float[np.ndarray, "K D Q"]
    offset: Float[np.ndarray, "K D"]
    strength: Float[np.ndarray, "K D"]
    spreads: Float[np.ndarray, "K D B"]


class Ends(NamedTuple):
    """What is known at the ends of chains.

    Attributes:
        forward: Of the state where the first of the new intervals begins.
        sums: What past data said in that interval.
        gram: What all past data say of g.
    """

    forward: Forward
    sums: Sums
    gram: Float[np.ndarray, "K k k"]


class Intervals(NamedTuple):
    """Consecutive intervals of each chain, chain after chain."""

    chain: Int[np.ndarray, " I"]
    turn: Int[np.ndarray, " I"]  # the number of the interval in its chain
    left: Float[np.ndarray, " I"]
    right: Float[np.ndarray, " I"]


class Arrivals(NamedTuple):
    """Rows of all chains, in the order of their intervals."""

    interval: Int[np.ndarray, " R"]
    channel: Int[np.ndarray, " R"]
    x: Float[np.ndarray, " R"]
    y: Float[np.ndarray, " R"]
    basis: Float[np.ndarray, "R B"]  # mean functions


class Absorbed(NamedTuple):
    """What rows said, and what is known once they are folded in.

    Attributes:
        mean: Of f at each row, from the past alone.
        variance: The same.
        forward: What is known at the right end of each interval, its rows included.
        gram: What the rows say of g, by chain.
        evidence: And beside it.
        linear: Sums by interval and channel, as in `Segment`.
        precision: The same.
        slack: Sums of open variances, by chain and channel.
        rows: How many there are, by chain and channel.
        energy: Σ (y − offset)², by chain and channel.
    """

    mean: Float[np.ndarray, " R"]
    variance: Float[np.ndarray, " R"]
    forward: Forward
    gram: Float[np.ndarray, "K k k"]
    evidence: Float[np.ndarray, " K"]
    linear: Float[np.ndarray, "I D S"]
    precision: Float[np.ndarray, "I D T"]
    slack: Float[np.ndarray, "K D Q"]
    rows: Float[np.ndarray, "K D"]
    energy: Float[np.ndarray, "K D"]


@dataclasses.dataclass(frozen=True, eq=False)
class Many:
    """Chains, and rows that come at their ends, with no data after them."""

    laws: Laws
    readings: Readings
    ends: Ends
    intervals: Intervals
    arrivals: Arrivals

    def absorbed(self) -> Absorbed:
        """Fold the rows in."""
        rows, chain = self.arrivals, self.intervals.chain[self.arrivals.interval]
        left, right = self.intervals.left[rows.interval], self.intervals.right[rows.interval]
        natural, left_open = self.laws.between(chain, rows.x - left, right - rows.x)
        seen = self._seen(chain, natural)
        pairs, forward, gram, evidence = self._passed(seen)
        mean, variance = self._predicted(chain, seen, pairs, left_open)
        return Absorbed(
            mean, variance, forward, gram, evidence, *self._summed(chain, natural, left_open)
        )

    def _seen(self, chain: np.ndarray, natural: np.ndarray) -> SeenRows:
        """Rows as maps of scaled states and whitened β, with their sites."""
        rows, readings = self.arrivals, self.readings
        loading = readings.loadings[chain, rows.channel]
        owner = np.tile(self.laws.owner, 2)
        design = natural * np.tile(self.laws.scale, (1, 2))[chain] * loading[:, owner]
        channels, functions = readings.spreads.shape[1:]
        basis = np.zeros((len(chain), channels, functions))
        spread = readings.spreads[chain, rows.channel]
        basis[np.arange(len(chain)), rows.channel] = rows.basis * spread
        strength = readings.strength[chain, rows.channel]
        b = (rows.y - readings.offset[chain, rows.channel]) * strength
        return SeenRows(design, basis.reshape(len(chain), channels * functions), b, strength)

    # -- the pass along the chains -----------------------------------------------------------------

    def _passed(self, seen: SeenRows) -> tuple[Pairs, Forward, np.ndarray, np.ndarray]:
        """One interval of every chain after the other.

        Returns:
            The states of each interval before any of the rows, what is known at its right end
            after them, and what rows say of g, by chain.
        """
        intervals, size = self.intervals, self.laws.size
        moves = self.laws.moves(intervals.chain, intervals.right - intervals.left)
        count, columns = len(intervals.chain), self.ends.gram.shape[1]
        before = Pairs(np.empty((count, 2 * size, columns)), np.empty((count, 2 * size, 2 * size)))
        forward = Forward(np.empty((count, size, columns)), np.empty((count, size, size)))
        gram, evidence = np.zeros_like(self.ends.gram), np.zeros(len(self.ends.gram))
        begin = np.searchsorted(self.arrivals.interval, np.arange(count + 1))
        quiet, learned = self.ends.forward, self.ends.forward
        for turn in range(int(intervals.turn.max()) + 1):
            now = np.flatnonzero(intervals.turn == turn)
            chain = intervals.chain[now]
            if turn == 0:
                own = self._first(taken(moves, now), chain)
                pair = Pairs(own.mean.copy(), own.covariance.copy())
            else:
                own = _unchanged(taken(quiet, chain), taken(moves, now))
                pair = _unchanged(taken(learned, chain), taken(moves, now))
            before.mean[now], before.covariance[now] = own
            rows = RowsOf(begin[now], begin[now + 1] - begin[now])
            learn(pair, seen, rows, Told(gram, evidence, chain))
            quiet, learned = _put(quiet, chain, own), _put(learned, chain, pair)
            forward.mean[now], forward.spread[now] = taken(learned, chain)
        return before, forward, gram, evidence

    def _first(self, moves: Moves, chain: np.ndarray) -> Pairs:
        """Both ends of the first intervals, which may have past data in them."""
        sums = taken(self.ends.sums, chain)
        before = taken(self.ends.forward, chain)
        if not sums.precision.any():
            return _unchanged(before, moves)
        silence = Backward(np.zeros_like(before.mean), np.zeros_like(before.spread))
        return paired(before, moves, self._sites(chain, sums), silence)

    def _sites(self, chain: np.ndarray, sums: Sums) -> PairSites:
        """What sums say of scaled states and β, as `Mixing.sites` has it."""
        readings, size = self.readings, 2 * self.laws.size
        owner = np.tile(self.laws.owner, 2)
        scale = np.tile(self.laws.scale, (1, 2))[chain]
        weights = readings.loadings[chain][:, :, owner] * scale[:, None, :]
        strength, spreads = readings.strength[chain], readings.spreads[chain]
        (_, channels, functions), columns = spreads.shape, self.ends.gram.shape[1]
        place = triangle(size + functions)[2]
        states = sums.precision[:, :, place[:size, :size]]
        bent = weights * strength[:, :, None]
        precision = np.einsum("kdi,kdij,kdj->kij", bent, states, weights, optimize=True)
        linear = np.zeros((len(chain), size, columns))
        linear[:, :, 0] = np.einsum("kdi,kdi->ki", bent, sums.linear[:, :, :size])
        across = sums.precision[:, :, place[:size, size:]]
        toward = bent[:, :, :, None] * across * spreads[:, :, None, :]
        linear[:, :, 1:] = -np.swapaxes(toward, 1, 2).reshape(
            len(chain), size, channels * functions
        )
        return PairSites(linear, precision, np.zeros((len(chain), columns, columns)))

    # -- what was predicted ------------------------------------------------------------------------

    def _predicted(
        self, chain: np.ndarray, seen: SeenRows, pairs: Pairs, left_open: np.ndarray
    ) -> tuple[Float[np.ndarray, " R"], Float[np.ndarray, " R"]]:
        """Mean and variance of f at each row, from the past alone."""
        where, rows = self.arrivals.interval, self.arrivals
        by_g = np.einsum("ri,rik->rk", seen.design, pairs.mean[where])
        by_g[:, 1:] += seen.basis
        bent = np.einsum("ri,rij->rj", seen.design, pairs.covariance[where])
        variance = np.einsum("ri,ri->r", bent, seen.design)
        gram = self.ends.gram
        precision = np.eye(gram.shape[1] - 1) - gram[:, 1:, 1:]
        covariance = np.linalg.inv(precision)
        weights = np.einsum("kij,kj->ki", covariance, gram[:, 1:, 0])
        of_beta = by_g[:, 1:]
        mean = by_g[:, 0] + np.einsum("rk,rk->r", of_beta, weights[chain])
        variance += np.einsum("ri,rij,rj->r", of_beta, covariance[chain], of_beta, optimize=True)
        loading = self.readings.loadings[chain, rows.channel]
        variance += np.sum(loading**2 * left_open, axis=1)
        return self.readings.offset[chain, rows.channel] + mean, variance

    # -- what is kept ------------------------------------------------------------------------------

    def _summed(
        self, chain: np.ndarray, natural: np.ndarray, left_open: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """Sums of rows by interval and channel, at unit noise, and totals by chain and channel."""
        rows, (chains, channels) = self.arrivals, self.readings.strength.shape
        features = np.concatenate([natural, rows.basis], axis=1)
        upper, lower, _ = triangle(features.shape[1])
        b = rows.y - self.readings.offset[chain, rows.channel]
        place = rows.interval * channels + rows.channel
        count = len(self.intervals.chain)
        linear = _added(b[:, None] * features, place, count * channels)
        precision = _added(features[:, upper] * features[:, lower], place, count * channels)
        own = chain * channels + rows.channel
        slack = _added(left_open, own, chains * channels)
        totals = _added(np.stack([np.ones_like(b), b**2], axis=1), own, chains * channels)
        shape = (chains, channels)
        return (
            linear.reshape(count, channels, -1),
            precision.reshape(count, channels, -1),
            slack.reshape(*shape, -1),
            totals[:, 0].reshape(shape),
            totals[:, 1].reshape(shape),
        )


def _unchanged(before: Forward, moves: Moves) -> Pairs:
    """Both ends of intervals without data."""
    return Pairs(*before_pairs(before, moves))


def _put(message: Forward, chain: Int[np.ndarray, " n"], pairs: Pairs) -> Forward:
    """The messages with those of some chains moved to the right ends of intervals."""
    size = message.mean.shape[1]
    mean, spread = message.mean.copy(), message.spread.copy()
    mean[chain], spread[chain] = pairs.mean[:, size:], pairs.covariance[:, size:, size:]
    return Forward(mean, spread)


def _added(
    values: Float[np.ndarray, "R w"], place: Int[np.ndarray, " R"], count: int
) -> Float[np.ndarray, "count w"]:
    """Values of rows added up by place."""
    order = np.argsort(place, kind="stable")
    ordered = place[order]
    begin = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    found = np.zeros((count, values.shape[1]))
    found[ordered[begin]] = np.add.reduceat(values[order], begin)
    return found


def is_fine(absorbed: Absorbed, intervals: Intervals) -> Bool[np.ndarray, " K"]:
    """Which chains ended in finite numbers."""
    fine = np.isfinite(absorbed.evidence + absorbed.gram.sum(axis=(1, 2)))
    fine &= np.isfinite(absorbed.energy.sum(axis=1))
    numbers = absorbed.forward.mean.sum(axis=(1, 2)) + absorbed.forward.spread.sum(axis=(1, 2))
    numbers = numbers + absorbed.linear.sum(axis=(1, 2)) + absorbed.precision.sum(axis=(1, 2))
    fine[intervals.chain[~np.isfinite(numbers)]] = False
    return fine
