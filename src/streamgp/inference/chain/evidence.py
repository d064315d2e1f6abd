"""The evidence of a whole chain, and its derivatives by all hyperparameters.

Derivatives by the moves of the states come from Fisher's identity in a form that inverts no noise.
With r(a, c) what everything but N(c; A·a, Q) says, and δ = ∂ log r/∂c, integration by parts gives

    ∂ log Z/∂A = E[δaᵀ],   ∂ log Z/∂Q = ½(E[δδᵀ] − J),   J = −∂²log r/∂c∂cᵀ,

with expectations over q given all data, so that parts without noise are allowed.
"""

import dataclasses
import functools
import itertools
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.sparse import csr_array

from streamgp.inference.chain.at_nodes import AtNodes
from streamgp.inference.chain.elements import Backward, Moves, silent, taken
from streamgp.inference.chain.law import Law, distinct_gaps
from streamgp.inference.chain.mixing import Mixing, Moments
from streamgp.inference.chain.numbers import Numbers
from streamgp.inference.chain.segments import Segment, Sums
from streamgp.inference.chain.state import Totals
from streamgp.inference.chain.stretch import Pairs, Stretch, Weights
from streamgp.inference.reading import ByReading, Inner, Reading, by_channels
from streamgp.model.multitask import MultiTaskGP
from streamgp.numerics.batched import turned
from streamgp.parameters import free_gradient, free_vector, unwrap

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

    def at_nodes(self, mixing: Mixing) -> AtNodes | None:
        """The rows that it is made of, if they all lie at its times; looked for once."""
        found = vars(self).get("_rows", False)
        if found is False:
            outputs = len(mixing.reading.outputs.channel)
            found = AtNodes.of(self.segment, self.totals, mixing.law, outputs)
            vars(self).update(_rows=found)
        return found

    @functools.cached_property
    def gaps(self) -> tuple[np.ndarray, np.ndarray]:
        """The distinct gaps between times, and which one each interval has."""
        return distinct_gaps(self.segment.times)

    @functools.cached_property
    def parts(self) -> tuple[tuple[slice, csr_array], ...]:
        """Intervals whose moments are in memory together, and what adds them up by gap."""
        gaps, which = self.gaps
        ends = [*range(0, len(which), _TOGETHER), len(which)]
        parts = [slice(begin, end) for begin, end in itertools.pairwise(ends)]
        return tuple((part, _by_gap(which[part], len(gaps))) for part in parts)


class ByMoves(NamedTuple):
    """Derivatives by A and Q of each distinct gap and by the covariance at the start, scaled."""

    transition: Float[np.ndarray, "g *K d d"]
    noise: Float[np.ndarray, "g *K d d"]
    start: Float[np.ndarray, "*K d d"]


def evidence(
    past: Past, wrapped: MultiTaskGP, numbers: Numbers | None = None
) -> tuple[float, Float[np.ndarray, " T"]]:
    """log p(all data) under hyperparameters, up to a constant, and its gradient by the free vector.

    Sites are as they are kept: for normal noise this is the collapsed bound.

    Args:
        past: What all data said.
        wrapped: The hyperparameters.
        numbers: How the kernels' states depend on them, if that is known already.
    """
    model = unwrap(wrapped)
    mixing = Mixing(Reading.of(model), Law.of(model))
    numbers = numbers or Numbers(wrapped)
    rows = past.at_nodes(mixing)
    if rows is not None:
        value, by_numbers, by = rows.evidence(mixing.law, mixing.reading, past.totals)
        return value, _by_parameters(wrapped, numbers, by_numbers, by)
    moves = mixing.law.moves_over(past.gaps[0])
    whole = _pass_over(past, mixing, moves)
    by_moves, inner = _derivatives(past, whole)
    reading = mixing.reading
    value = whole.weights.log_evidence + reading.beside(past.totals)
    by_numbers = _by_numbers(past, mixing.law, moves, by_moves)
    return value, _by_parameters(wrapped, numbers, by_numbers, reading.pulled(past.totals, inner))


def _by_parameters(
    wrapped: MultiTaskGP, numbers: Numbers, by_numbers: Float[np.ndarray, " n"], by: ByReading
) -> Float[np.ndarray, " T"]:
    """The gradient by the free vector."""
    by_kernels = by_numbers @ numbers.jacobian(free_vector(wrapped.kernels))
    channels = tuple(by_channels(unwrap(wrapped), by))
    return np.concatenate([by_kernels, free_gradient(wrapped.channels, channels)])


def _pass_over(past: Past, mixing: Mixing, moves: Moves) -> "Pass":
    """A pass over all intervals, from the moves over each distinct gap."""
    law, segment = mixing.law, past.segment
    own = taken(moves, past.gaps[1])
    before = law.start(segment.times[0], mixing.columns)
    after = silent(law.size, mixing.columns)
    return Pass(segment.sums, mixing, Stretch(own, mixing.sites(segment.sums), before, after))


def _derivatives(past: Past, whole: "Pass") -> tuple[ByMoves, Inner]:
    """By the moves, and inner products with the sums for those by weights and noises."""
    size, gaps = whole.mixing.law.size, past.gaps[0]
    by_a, by_q = np.zeros((2, len(gaps), size * size))
    inners = []
    for part, by_gap in past.parts:
        inner, transition, noise = whole.part(part)
        inners.append(inner)
        by_a += by_gap @ transition.reshape(-1, size * size)
        by_q += by_gap @ noise.reshape(-1, size * size)
    shape = (len(gaps), size, size)
    return ByMoves(by_a.reshape(shape), by_q.reshape(shape), whole.by_start()), _total(inners)


@dataclasses.dataclass(frozen=True, eq=False)
class Pass:
    """A pass over a whole chain, or over several ones of as many intervals."""

    sums: Sums
    mixing: Mixing
    stretch: Stretch

    @functools.cached_property
    def weights(self) -> Weights:
        """What is known of β, and the evidence."""
        return Weights.of(self.stretch.gains)

    def part(self, part: slice) -> tuple[Inner, np.ndarray, np.ndarray]:
        """Inner products with the sums of some intervals, and derivatives by their A and Q."""
        pairs = self.stretch.pairs(part)
        inner = self.mixing.inner(taken(self.sums, part), Moments.of(pairs, self.weights))
        return inner, *self._by_moves(pairs, part)

    def _by_moves(self, pairs: Pairs, part: slice) -> tuple[np.ndarray, np.ndarray]:
        """E[δaᵀ] and ½(E[δδᵀ] − J), δ = R·g − M·x."""
        size = self.mixing.law.size
        sites = taken(self.stretch.sites, part)
        after = taken(taken(self.stretch.backward, slice(1, None)), part)
        bend = sites.precision[..., size:, :].copy()  # M = (Λ_ca, J)
        bend[..., size:] += after.precision
        rest = sites.linear[..., size:, :] + after.pull - bend @ pairs.mean
        spread = bend @ pairs.covariance
        told = rest @ self.weights.second
        by_a = told @ turned(pairs.mean[..., :size, :]) - spread[..., :size]
        by_q = told @ turned(rest) + spread @ turned(bend)
        return by_a, 0.5 * (by_q - bend[..., size:])

    def by_start(self) -> np.ndarray:
        """The same for the covariance of the first state."""
        size = self.mixing.law.size
        first: Backward = taken(self.stretch.backward, slice(1))
        pairs = self.stretch.pairs(slice(1))
        mean, spread = pairs.mean[0, ..., :size, :], pairs.covariance[0, ..., :size, :size]
        bend = first.precision[0]
        rest = first.pull[0] - bend @ mean
        second = rest @ self.weights.second @ turned(rest) + bend @ spread @ turned(bend)
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


def _by_numbers(past: Past, law: Law, moves: Moves, by: ByMoves) -> Float[np.ndarray, " n"]:
    """Derivatives by the logarithm of each number of each state.

    Covariances are in proportion to the first. Of the others the states tell themselves.
    """
    gaps, first = past.gaps[0], float(past.segment.times[0]) - law.origin
    found: list[float] = []
    for part, own in law.slices():
        scale = law.scale[own]
        outer = np.outer(scale, scale)
        turn = scale / scale[:, None]
        by_a, by_q = by.transition[:, own, own] * turn, by.noise[:, own, own] / outer
        by_start = by.start[own, own] / outer
        a, q = moves.transition[:, own, own] / turn, moves.noise[:, own, own] * outer
        found.append(float(np.vdot(by_q, q) + np.vdot(by_start, part.covariance(first))))
        for slope in part.slopes(gaps, (a, q), first):
            change = np.vdot(by_a, slope.transition) + np.vdot(by_q, slope.noise)
            found.append(float(change + np.vdot(by_start, slope.covariance)))
    return np.array(found)
