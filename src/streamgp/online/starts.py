"""Starts: hyperparameters begin from the scale of rows, where the evidence says.

A bound has several optima, and the spread of the inputs is a poor guess of a lengthscale when many
cycles lie within a batch, or when inputs do not matter. A few starts are therefore learned for a
short while. The one that then explains the rows best, priors included, is learned a little longer,
and learning goes on from there.
"""

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.data.axes import Axis, input_names
from streamgp.data.batch import Rows
from streamgp.inducing.engines import Engine
from streamgp.inference.engine import AnyLearner, AnyState
from streamgp.inference.vem import VEM
from streamgp.model.initial_scales import spread_of
from streamgp.model.multitask import MultiTaskGP
from streamgp.model.specification import Specification
from streamgp.parameters import free_size, free_vector, prior_of, replaced, with_free

_SHORTER = 0.25  # how much shorter the next lengthscales to try are
_SHORTEST = _SHORTER**3
_QUIETER = 0.3  # times the usual noise, and lengthscales, over several inputs
_WEIGHTS = 2  # further starts of the weights
_EVALUATIONS, _MORE = 4, 6  # of the bound: for each start, and for the best of them
_LAGS = 12  # distances at which differences are looked at
_MOST = 9.0  # times the variance: half the square of a difference that counts no more
_CLEAR = 3.0  # standard errors by which an input has to matter
_LONG, _SHORT = (
    10.0,
    1e-3,
)  # lengthscales of inputs that tell nothing, and the shortest, in usual ones
_LONGER = 2  # times as many over several inputs, each of which has a lengthscale


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
        rows: The first batch, or all rows that are kept.
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
        if self.rows.x.shape[1] == 1:
            best = self._with_best_lengthscales(best)
        else:
            for start in self._over_inputs():
                best = _better(best, self._tried(start))
        for start in self._with_other_weights(best.start):
            best = _better(best, self._tried(start))
        return self._tried(best.learned, _MORE).learned

    def _over_inputs(self) -> Iterator[MultiTaskGP]:
        """Short lengthscales with little noise, and lengthscales input by input."""
        count = len(self.before.model.kernels)
        if not free_size(self.before.model.kernels):
            return
        yield quieter(self._with_lengthscales([_QUIETER] * count), _QUIETER)
        found = self._by_variogram()
        if found is not None:
            yield self._with_lengthscales([found] * count)

    def _by_variogram(self) -> Float[np.ndarray, " P"] | None:
        """Lengthscales as parts of the usual ones, from what each input alone tells of values."""
        channel = int(np.argmax(np.bincount(self._some.channel)))
        own = self._some.channel == channel
        likelihood = self.before.model.channels[channel].likelihood
        usual = np.sqrt(self.rows.x.shape[1]) * spread_of(self.rows.x)
        if not likelihood.ordered or likelihood.classes or not usual.all():
            return None
        if np.count_nonzero(own) == 1:  # of each channel: there are no differences
            return None
        return lengthscales(self._some.x[own], self._some.y[own, 0]) / usual

    @functools.cached_property
    def _some(self) -> Rows:
        """The rows, or some of them where there are many: the latest in time, else at random."""
        most = self.engine.learner.pace.racing
        if self.rows.size <= most:
            return self.rows
        if self.engine.learner.pace.in_time:
            return self.rows.take(np.argsort(self.rows.x[:, 0], kind="stable")[-most:])
        generator = np.random.default_rng(self.specification.seed)
        return self.rows.take(np.sort(generator.permutation(self.rows.size)[:most]))

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

    def _with_lengthscales(self, factors: Sequence[Any]) -> MultiTaskGP:
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
        longer = _LONGER if self.rows.x.shape[1] > 1 else 1
        rule = VEM(rounds=1, evaluations=longer * evaluations)
        placer, learner = self.engine.placer, self.engine.learner.with_rule(rule)
        points = placer.wanted(self.before, self._some, start, 1)
        moved = placer.move(self.before, points)
        return _Tried.of(start, *learner.trying(moved, self._some, start))


def better(
    learner: AnyLearner, state: AnyState, rows: Rows, starts: Sequence[MultiTaskGP]
) -> MultiTaskGP:
    """Of some hyperparameters, those that explain all rows best, perhaps after a short while."""
    best: _Tried | None = None
    short = learner.with_rule(VEM(rounds=1, evaluations=learner.pace.comparing))
    for start in starts:
        tried = _Tried.of(start, *short.trying(state, rows, start))
        best = tried if best is None else _better(best, tried)
    assert best is not None
    return best.learned


def quieter(model: MultiTaskGP, factor: float) -> MultiTaskGP:
    """The model with that part of its noises, where they are common factors of sites."""
    channels = []
    for channel in model.channels:
        likelihood = channel.likelihood
        if likelihood.scales_sites and free_size(likelihood) == 1:
            moved = with_free(likelihood, free_vector(likelihood) + np.log(factor))
            channel = replaced(channel, likelihood=moved)
        channels.append(channel)
    return replaced(model, channels=tuple(channels))


def lengthscales(x: Float[np.ndarray, "N P"], y: Float[np.ndarray, " N"]) -> np.ndarray:
    """Input by input, the distance at which half of what the input tells of y is lost.

    Half the mean square difference of y between rows so many places apart grows with the distance
    of the rows in one input, if that input matters. Inputs that tell nothing get a long one.
    """
    count, usual = x.shape[1], np.sqrt(x.shape[1]) * spread_of(x)
    y = (y - np.mean(y)) / max(float(np.std(y)), 1e-300)
    found = _LONG * usual
    lags = np.unique(np.geomspace(1, max(len(y) // 3, 1), _LAGS).astype(int))
    for p in range(count):
        order = np.argsort(x[:, p], kind="stable")
        place, value = x[order, p], y[order]
        apart = np.array([np.mean(place[k:] - place[:-k]) for k in lags])
        differ = [np.mean(np.minimum(0.5 * (value[k:] - value[:-k]) ** 2, _MOST)) for k in lags]
        top, low = max(differ), np.mean(differ[:2])
        if top - low > _CLEAR * top / np.sqrt(len(y)):
            half = np.interp(0.5 * (top + low), np.maximum.accumulate(differ), apart)
            found[p] = max(half, _SHORT * usual[p])
    return found


def _better(one: _Tried, other: _Tried) -> _Tried:
    return other if other.score > one.score else one
