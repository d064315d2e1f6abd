"""Starts: where hyperparameters begin is chosen by the evidence of the first batch.

A bound has several optima, and the spread of the inputs is a poor guess of a lengthscale when many
cycles lie within a batch. A few starts are therefore learned for a short while. The one that then
explains the first batch best, priors included, is learned a little longer, and learning goes on
from there.
"""

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from streamgp.data.axes import Axis, input_names
from streamgp.data.batch import Rows
from streamgp.inducing.engines import Engine
from streamgp.inference.engine import AnyLearner, AnyState
from streamgp.inference.vem import VEM
from streamgp.model.multitask import MultiTaskGP
from streamgp.model.specification import Specification
from streamgp.parameters import free_size, free_vector, prior_of, replaced, with_free

_SHORTER = 0.25  # how much shorter the next lengthscales to try are
_SHORTEST = _SHORTER**3
_WEIGHTS = 2  # further starts of the weights
_EVALUATIONS = 4  # of the bound, for each start
_MORE = 6  # for the best of them
_ROWS = 1024  # that starts are judged by


class _Tried(NamedTuple):
    """A start, what it learned in a short while, and how well that explains the rows."""

    start: MultiTaskGP
    learned: MultiTaskGP
    score: float

    @classmethod
    def of(cls, start: MultiTaskGP, learned: MultiTaskGP, bound: float) -> "_Tried":
        """Priors count; what is not finite ranks last."""
        theta, (centre, width) = free_vector(learned), prior_of(learned)
        score = bound - 0.5 * float(np.sum(((theta - centre) / width) ** 2))
        return cls(start, learned, score if np.isfinite(score) else -np.inf)


@dataclasses.dataclass(frozen=True)
class Starts:
    """The starts of a model that has no data yet.

    Attributes:
        specification: Of the model.
        engine: Puts points for each start, and learns.
        before: The state before any data.
        rows: The first batch.
        axes: What its input columns are.
    """

    specification: Specification
    engine: Engine
    before: AnyState
    rows: Rows
    axes: Sequence[Axis]

    def best(self) -> MultiTaskGP:
        """The hyperparameters to learn from."""
        best = self._tried(self.before.model)
        best = self._with_best_lengthscales(best)
        for start in self._with_other_weights(best.start):
            best = _better(best, self._tried(start))
        return self._tried(best.learned, _MORE).learned

    @functools.cached_property
    def _some(self) -> Rows:
        """The rows, or some of them where there are many: the latest in time, else at random."""
        if self.rows.size <= _ROWS:
            return self.rows
        if self.engine.learner.parts_follow_time:
            return self.rows.take(np.argsort(self.rows.x[:, 0], kind="stable")[-_ROWS:])
        generator = np.random.default_rng(self.specification.seed)
        return self.rows.take(np.sort(generator.permutation(self.rows.size)[:_ROWS]))

    def _with_best_lengthscales(self, best: _Tried) -> _Tried:
        """Shorter ones of all latent functions, as long as that helps; then different ones."""
        count = len(best.start.kernels)
        if not free_size(best.start.kernels):
            return best
        factor = 1.0
        while factor > _SHORTEST:
            factor *= _SHORTER
            other = self._tried(self._with_lengthscales([factor] * count))
            if other.score <= best.score:
                break
            best = other
        if count > 1:
            factors = [2 * factor * _SHORTER ** (k / (count - 1)) for k in range(count)]
            other = self._tried(self._with_lengthscales(factors))
            best = _better(best, other)
        return best

    def _with_lengthscales(self, factors: Sequence[float]) -> MultiTaskGP:
        """The first model with each kernel as it would start for inputs that much closer."""
        model, first = self.before.model, int(self.rows.channel[0])
        y = self.rows.of(first, model.channels[first].likelihood.observation_dim)
        names, kernels = input_names(self.axes), []
        for k, factor in enumerate(factors):
            closer = self.specification.kernels(factor * self.rows.x, y, names)[k]
            kernels.append(with_free(model.kernels[k], free_vector(closer)))  # priors stay
        return replaced(model, kernels=tuple(kernels))

    def _with_other_weights(self, model: MultiTaskGP) -> Iterator[MultiTaskGP]:
        """The model with other random weights, if channels share several latent functions."""
        if len(model.outputs.channel) == 1 or sum(model.draws) == 1:
            return
        for turn in range(1, _WEIGHTS + 1):
            channels = []
            for name, channel in zip(self.specification.names, model.channels, strict=True):
                weights = self.specification.random_weights(name, turn)
                if free_size(channel.weights):
                    moved = with_free(channel.weights, np.ravel(weights))
                    channel = replaced(channel, weights=moved)
                channels.append(channel)
            yield replaced(model, channels=tuple(channels))

    def _tried(self, start: MultiTaskGP, evaluations: int = _EVALUATIONS) -> _Tried:
        rule = VEM(rounds=1, evaluations=evaluations)
        placer, learner = self.engine.placer, self.engine.learner.with_rule(rule)
        points = placer.wanted(self.before, self._some, start, 1)
        moved = placer.move(self.before, points)
        return _Tried.of(start, *learner.trying(moved, self._some, start))


def better(
    learner: AnyLearner, state: AnyState, rows: Rows, starts: Sequence[MultiTaskGP]
) -> MultiTaskGP:
    """Of some hyperparameters, those from which all data are explained best after a short while."""
    best: _Tried | None = None
    short = learner.with_rule(VEM(rounds=1, evaluations=_MORE))
    for start in starts:
        tried = _Tried.of(start, *short.trying(state, rows, start))
        best = tried if best is None else _better(best, tried)
    assert best is not None
    return best.learned


def _better(one: _Tried, other: _Tried) -> _Tried:
    return other if other.score > one.score else one
