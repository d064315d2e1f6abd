"""The objectives of many M steps, evaluated together.

Chains of one kind are stacked behind the axis of intervals, and one pass goes over all of them.
Chains with fewer intervals are filled up with some of no length and no data, which say nothing.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from typing import cast

import numpy as np
from jaxtyping import Float

from streamgp.inference.asking import Answer, Ask
from streamgp.inference.chain.elements import Forward, Moves, silent
from streamgp.inference.chain.evidence import ByMoves, Pass
from streamgp.inference.chain.law import Law
from streamgp.inference.chain.many_laws import Laws
from streamgp.inference.chain.mixing import Mixing
from streamgp.inference.chain.objective import ChainObjective
from streamgp.inference.chain.segments import Sums
from streamgp.inference.chain.state import Totals
from streamgp.inference.chain.stretch import Stretch
from streamgp.inference.reading import ByReading, Reading, by_channels
from streamgp.model.multitask import MultiTaskGP
from streamgp.parameters import free_gradient, replaced, unwrap, with_free

_TOGETHER = 16  # chains, so that what is worked on stays in the processor's cache
_LONGEST = 256  # intervals of a chain for which it pays


def evaluated(asks: Sequence[Ask]) -> list[Answer]:
    """The answer to each ask, together as far as that goes."""
    found = answers(asks)
    return [found[i] if i in found else ask.objective(ask.point) for i, ask in enumerate(asks)]


def answers(asks: Sequence[Ask]) -> dict[int, Answer]:
    """Answers to asks, by their number. Those that are left out stand alone."""
    found: dict[int, Answer] = {}
    for group in _groups(asks):
        some = [asks[i] for i in group]
        try:
            found.update(zip(group, _answered(some), strict=True))
        except np.linalg.LinAlgError:  # of some chain; which it is, each finds out alone
            continue
    return found


def _groups(asks: Sequence[Ask]) -> Iterator[list[int]]:
    """The numbers of asks that are answered together, chains of like length beside each other."""
    counts: dict[Hashable, dict[int, int]] = defaultdict(dict)
    for i, (objective, _) in enumerate(asks):
        if isinstance(objective, ChainObjective) and objective.sort is not None:
            count = objective.past.segment.count
            if count <= _LONGEST:
                counts[objective.sort][i] = count
    for own in counts.values():
        ordered = sorted(own, key=own.__getitem__)
        for begin in range(0, len(ordered), _TOGETHER):
            some = ordered[begin : begin + _TOGETHER]
            if len(some) > 1:
                yield some


def _answered(asks: Sequence[Ask]) -> list[Answer]:
    """The answers to asks of one sort."""
    objectives = [ask.objective for ask in asks if isinstance(ask.objective, ChainObjective)]
    points = np.array([ask.point for ask in asks])
    found = _Stacked(objectives).evidence(points)
    return [
        objective.beliefs.objective(point, value, gradient)
        for objective, point, value, gradient in zip(objectives, points, *found, strict=True)
    ]


class _Stacked:
    """What all data said to several chains of one kind, with arrays for all of them."""

    def __init__(self, objectives: Sequence[ChainObjective]):
        self.objectives = objectives
        segments = [objective.past.segment for objective in objectives]
        self.count = max(segment.count for segment in segments)
        self.gaps = _stacked([np.diff(segment.times) for segment in segments], self.count)
        self.sums = Sums(
            _stacked([segment.linear for segment in segments], self.count),
            _stacked([segment.precision for segment in segments], self.count),
        )
        totals = zip(*(objective.past.totals.arrays() for objective in objectives), strict=True)
        self.totals = Totals(*map(np.array, totals))

    def evidence(
        self, points: Float[np.ndarray, "K T"]
    ) -> tuple[Float[np.ndarray, " K"], Float[np.ndarray, "K T"]]:
        """`evidence` of each chain under its own hyperparameters."""
        affine = [own for each in self.objectives if (own := each.numbers.affine) is not None]
        slope = affine[0].slope
        kernels, channels = points[:, : slope.shape[1]], points[:, slope.shape[1] :]
        constant = np.array([own.constant for own in affine])
        laws = Laws.at(self.objectives[0].law, np.exp(constant + kernels @ slope.T))
        wrapped = [
            replaced(each.wrapped, channels=with_free(each.wrapped.channels, own))
            for each, own in zip(self.objectives, channels, strict=True)
        ]
        models = [replaced(each, channels=unwrap(each.channels)) for each in wrapped]
        mixing = Mixing(_reading(models), cast(Law, laws))  # it has all that is asked for here
        whole = self._pass(mixing, laws)
        inner, transition, noise = whole.part(slice(None))
        by_moves = ByMoves(transition, noise, whole.by_start())
        by_kernels = self._by_numbers(laws, by_moves, whole.stretch.moves.noise) @ slope
        values = whole.weights.log_evidence + mixing.reading.beside(self.totals)
        of_channels = _by_channels(wrapped, models, mixing.reading.pulled(self.totals, inner))
        return np.asarray(values), np.concatenate([by_kernels, of_channels], axis=1)

    def _pass(self, mixing: Mixing, laws: Laws) -> Pass:
        columns, chains = mixing.columns, len(self.objectives)
        shape = (self.count, chains, laws.size, laws.size)
        a, q = laws.moves(self._which, self.gaps.ravel())
        moves = Moves(a.reshape(shape), q.reshape(shape))
        before = Forward(np.zeros((1, chains, laws.size, columns)), laws.covariance[None])
        after = silent(chains, laws.size, columns)
        return Pass(self.sums, mixing, Stretch(moves, mixing.sites(self.sums), before, after))

    @property
    def _which(self) -> np.ndarray:
        """The chain of each gap."""
        return np.tile(np.arange(len(self.objectives)), self.count)

    def _by_numbers(
        self, laws: Laws, by: ByMoves, noise: Float[np.ndarray, "n K d d"]
    ) -> Float[np.ndarray, "K n"]:
        """Derivatives by the logarithm of each number of each state, as for one chain."""
        found, which, gaps = [], self._which, self.gaps.ravel()
        for stack, own in laws.slices():
            scale = laws.scale[:, own]
            outer = scale[:, :, None] * scale[:, None, :]
            by_a = by.transition[..., own, own] * (scale[:, None, :] / scale[:, :, None])
            by_q, by_start = by.noise[..., own, own] / outer, by.start[..., own, own] / outer
            q = noise[..., own, own] * outer
            found.append(_dot(by_q, q) + _dot(by_start[None], stack.covariance))
            for slope in stack.slopes(which, gaps):
                change = _dot(by_a, slope.transition.reshape(by_a.shape))
                change += _dot(by_q, slope.noise.reshape(by_q.shape))
                found.append(change + _dot(by_start[None], slope.covariance))
        return np.stack(found, axis=1)


def _stacked(arrays: Sequence[np.ndarray], count: int) -> Float[np.ndarray, "n K *_"]:
    """Arrays beside each other, those that are shorter filled up with zeros."""
    found = np.zeros((count, len(arrays), *arrays[0].shape[1:]))
    for k, array in enumerate(arrays):
        found[: len(array), k] = array
    return found


def _dot(left: Float[np.ndarray, "n K s s"], right: np.ndarray) -> Float[np.ndarray, " K"]:
    return np.sum(left * right, axis=(0, -2, -1))


def _reading(models: Sequence[MultiTaskGP]) -> Reading:
    each = [Reading.of(model) for model in models]
    return Reading(
        each[0].outputs,
        np.array([own.loadings for own in each]),
        np.array([own.spreads for own in each]),
        np.array([own.strength for own in each]),
    )


def _by_channels(
    wrapped: Sequence[MultiTaskGP], models: Sequence[MultiTaskGP], by: ByReading
) -> Float[np.ndarray, "K t"]:
    """Derivatives by the free parameters of the channels."""
    return np.array([
        free_gradient(each.channels, tuple(by_channels(model, ByReading(*own))))
        for each, model, *own in zip(wrapped, models, *by, strict=True)
    ])  # fmt: skip
