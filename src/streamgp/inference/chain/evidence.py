"""The evidence of a whole chain, and its derivatives by all hyperparameters.

Derivatives by the moves of the states come from Fisher's identity in a form that inverts no noise.
With r(a, c) what everything but N(c; A·a, Q) says, and δ = ∂ log r/∂c, integration by parts gives

    ∂ log Z/∂A = E[δaᵀ],   ∂ log Z/∂Q = ½(E[δδᵀ] − J),   J = −∂²log r/∂c∂cᵀ,

with expectations over q given all data, so that parts without noise are allowed.
"""

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.sparse import csr_array

from streamgp.inference.chain.elements import Backward, silent, taken
from streamgp.inference.chain.law import Law, distinct_gaps
from streamgp.inference.chain.mixing import Mixing, Moments
from streamgp.inference.chain.segments import Segment
from streamgp.inference.chain.state import Totals
from streamgp.inference.chain.stretch import Pairs, Stretch, Weights
from streamgp.inference.reading import Inner, Reading, by_channels
from streamgp.model.multitask import MultiTaskGP
from streamgp.parameters import free_gradient, free_vector, replaced, unwrap, with_free

_DIFFERENCE = 1e-5  # in log units, for the moves of states
_TOGETHER = 4096  # intervals whose moments are in memory together


@dataclasses.dataclass(frozen=True, eq=False)
class Past:
    """All that data said, joined for passes over the whole chain.

    Attributes:
        segment: All intervals.
        totals: What is beside their sites.
    """

    segment: Segment
    totals: Totals

    @functools.cached_property
    def gaps(self) -> tuple[np.ndarray, np.ndarray]:
        """The distinct gaps between times, and which one each interval has."""
        return distinct_gaps(self.segment.times)


class ByMoves(NamedTuple):
    """Derivatives by A and Q of each distinct gap and by the covariance at the start, scaled."""

    transition: Float[np.ndarray, "g d d"]
    noise: Float[np.ndarray, "g d d"]
    start: Float[np.ndarray, "d d"]


def evidence(past: Past, wrapped: MultiTaskGP) -> tuple[float, Float[np.ndarray, " T"]]:
    """log p(all data) under hyperparameters, up to a constant, and its gradient by the free vector.

    Sites are as they are kept: for normal noise this is the collapsed bound.
    """
    model = unwrap(wrapped)
    mixing = Mixing(Reading.of(model), Law.of(model))
    whole = _Pass.of(past, mixing)
    by_moves, inner = whole.derivatives()
    reading = mixing.reading
    channels = tuple(by_channels(model, reading.pulled(past.totals, inner)))
    value = whole.weights.log_evidence + reading.beside(past.totals)
    by_kernels = _by_kernels(past, wrapped, model, mixing.law, by_moves)
    of_channels = free_gradient(wrapped.channels, channels)
    return value, np.concatenate([by_kernels, of_channels])


@dataclasses.dataclass(frozen=True, eq=False)
class _Pass:
    """A pass over the whole chain."""

    past: Past
    mixing: Mixing
    stretch: Stretch

    @classmethod
    def of(cls, past: Past, mixing: Mixing) -> "_Pass":
        law, segment = mixing.law, past.segment
        gaps, which = past.gaps
        moves = taken(law.moves_over(gaps), which)
        before = law.start(segment.times[0], mixing.columns)
        after = silent(law.size, mixing.columns)
        return cls(past, mixing, Stretch(moves, mixing.sites(segment.sums), before, after))

    @functools.cached_property
    def weights(self) -> Weights:
        return Weights.of(self.stretch.gains)

    def derivatives(self) -> tuple[ByMoves, Inner]:
        """By the moves, and inner products with the sums for those by weights and noises."""
        size, (gaps, which) = self.mixing.law.size, self.past.gaps
        by_a, by_q = np.zeros((2, len(gaps), size * size))
        inners = []
        for part in self._parts():
            pairs = self.stretch.pairs(part)
            inners.append(
                self.mixing.inner(self.past.segment[part].sums, Moments.of(pairs, self.weights))
            )
            transition, noise = self._by_moves(pairs, part)
            by_gap = _by_gap(which[part], len(gaps))
            by_a += by_gap @ transition.reshape(-1, size * size)
            by_q += by_gap @ noise.reshape(-1, size * size)
        shape = (len(gaps), size, size)
        by_moves = ByMoves(by_a.reshape(shape), by_q.reshape(shape), self._by_start())
        return by_moves, _total(inners)

    def _parts(self) -> Iterator[slice]:
        count = self.past.segment.count
        for begin in range(0, count, _TOGETHER):
            yield slice(begin, min(begin + _TOGETHER, count))

    def _by_moves(self, pairs: Pairs, part: slice) -> tuple[np.ndarray, np.ndarray]:
        """E[δaᵀ] and ½(E[δδᵀ] − J), δ = R·g − M·x."""
        size = self.mixing.law.size
        sites = taken(self.stretch.sites, part)
        after = taken(taken(self.stretch.backward, slice(1, None)), part)
        bend = sites.precision[:, size:].copy()  # M = (Λ_ca, J)
        bend[:, :, size:] += after.precision
        rest = sites.linear[:, size:] + after.pull - bend @ pairs.mean
        spread = bend @ pairs.covariance
        told = rest @ self.weights.second
        by_a = told @ np.swapaxes(pairs.mean[:, :size], 1, 2) - spread[:, :, :size]
        by_q = told @ np.swapaxes(rest, 1, 2) + spread @ np.swapaxes(bend, 1, 2)
        return by_a, 0.5 * (by_q - bend[:, :, size:])

    def _by_start(self) -> np.ndarray:
        """The same for the covariance of the first state."""
        size = self.mixing.law.size
        first: Backward = taken(self.stretch.backward, slice(1))
        pairs = self.stretch.pairs(slice(1))
        mean, spread = pairs.mean[0, :size], pairs.covariance[0, :size, :size]
        bend = first.precision[0]
        rest = first.pull[0] - bend @ mean
        second = rest @ self.weights.second @ rest.T + bend @ spread @ bend.T
        return 0.5 * (second - bend)


def _by_gap(which: np.ndarray, count: int) -> csr_array:
    """The matrix that adds up what belongs to intervals of the same gap."""
    numbers = np.arange(len(which))
    return csr_array((np.ones(len(which)), (which, numbers)), shape=(count, len(which)))


def _total(inners: list[Inner]) -> Inner:
    """Inner products over several parts of a chain."""
    sums: list[Any] = []
    for parts in zip(*inners, strict=True):
        if isinstance(parts[0], tuple):
            sums.append(tuple(sum(own) for own in zip(*parts, strict=True)))
        else:
            sums.append(sum(parts))
    return Inner(*sums)


def _by_kernels(
    past: Past, wrapped: MultiTaskGP, model: MultiTaskGP, law: Law, by: ByMoves
) -> Float[np.ndarray, " t"]:
    """Derivatives by the kernels' free parameters, through the logarithms of states' numbers."""
    theta = free_vector(wrapped.kernels)
    if not len(theta):
        return theta
    found = np.zeros(len(theta))
    by_numbers = _by_numbers(past, law, by)
    for i, step in enumerate(_DIFFERENCE * np.eye(len(theta))):
        larger, smaller = (_numbers(wrapped, model, theta + sign * step) for sign in (1.0, -1.0))
        found[i] = by_numbers @ np.log(larger / smaller)
    return found / (2 * _DIFFERENCE)


def _numbers(
    wrapped: MultiTaskGP, model: MultiTaskGP, theta: Float[np.ndarray, " t"]
) -> Float[np.ndarray, " n"]:
    """The numbers of all states under some parameters of the kernels."""
    kernels = unwrap(with_free(wrapped.kernels, theta))
    parts = Law.of(replaced(model, kernels=kernels)).parts
    return np.array([number for part in parts for number in part.numbers()])


def _by_numbers(past: Past, law: Law, by: ByMoves) -> Float[np.ndarray, " n"]:
    """Derivatives by the logarithm of each number of each state.

    Covariances are in proportion to the first. What the others do to moves is told by differences.
    """
    gaps, first = past.gaps[0], float(past.segment.times[0]) - law.origin
    found: list[float] = []
    for part, own in law.slices():
        scale = law.scale[own]
        outer = np.outer(scale, scale)
        by_a = by.transition[:, own, own] * (scale / scale[:, None])
        by_q, by_start = by.noise[:, own, own] / outer, by.start[own, own] / outer
        _, q = part.transition(gaps)
        found.append(float(np.vdot(by_q, q) + np.vdot(by_start, part.covariance(first))))
        for larger, smaller in part.variants(_DIFFERENCE):
            (a, q), (b, r) = larger.transition(gaps), smaller.transition(gaps)
            start = larger.covariance(first) - smaller.covariance(first)
            change = np.vdot(by_a, a - b) + np.vdot(by_q, q - r) + np.vdot(by_start, start)
            found.append(float(change) / (2 * _DIFFERENCE))
    return np.array(found)
