"""Horizons: whether forecasts that were made long before came as often as predicted.

A channel's record says where rows fell in what was predicted just before them. Forecasts that reach
further err in other ways: a trend may turn, a level may drift. So a few forecasts at 2, 4, 8, …
steps ahead of the latest input are made as the stream goes, kept as numbers, and scored when a row
comes at their time. Each of these horizons has quantiles of its own. What is kept is bounded: about
ten forecasts per horizon.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import special

from streamgp.data.batch import Rows
from streamgp.inference.scoring import has_cdf, transform
from streamgp.likelihoods import Likelihood
from streamgp.numerics.quantile_tracker import QuantileTracker
from streamgp.registry import storable

HORIZONS = 10  # 2, 4, …, 2¹⁰ steps
_STEPS = 2.0 ** np.arange(1, HORIZONS + 1)
_RARELY = 16  # steps between forecasts once there are many scores; at first it is one
_MANY = 100  # scores that make it one step more
_SHARE = 0.125  # of a horizon's length between two forecasts of it
_LATE = 0.1  # of these distances by which one may be too short
_NODES = np.array([-0.5, 0.0, 0.5])  # steps from a forecast's time where it is known
_ENOUGH = 8  # scores from which the quantiles of a horizon count
_NEW = 0.1  # weight of the newest update's reach
_GOLDEN = 0.5 * (math.sqrt(5) - 1)
_ROUNDING = 1e-15

# Mean and covariance of a channel's latent parameters at some inputs.
Predict = Callable[
    [Float[np.ndarray, "N P"]], tuple[Float[np.ndarray, "N J"], Float[np.ndarray, "N J J"]]
]


@storable
class Horizons(NamedTuple):
    """A channel's forecasts whose time has not come, and what became of earlier ones.

    Attributes:
        step: The usual distance between two rows, from the first ones; zero until there are two.
        last: The latest row.
        reach: How far an update usually goes ahead of the one before it. Rows that are no further
            ahead are predicted just before they come.
        pending: A row per forecast: its time, the number of its horizon, and mean and covariance of
            the latent parameters at three inputs around that time.
        trackers: The quantiles of normal scores of each horizon, from the centre and in units of
            the spread of those of rows that were predicted just before they came. So a change of
            noise is followed at once, and only what grows with the distance is left to learn.
        counts: How many scores each of them has. Horizons after the last that has any are left out.
    """

    step: float = 0.0
    last: float = -math.inf
    reach: float = 0.0
    pending: Float[np.ndarray, "n w"] = np.zeros((0, 0))
    trackers: tuple[QuantileTracker, ...] = ()
    counts: tuple[int, ...] = ()

    @property
    def lengths(self) -> Float[np.ndarray, " h"]:
        """How far each horizon is ahead."""
        return self.step * _STEPS

    def seen(
        self,
        x: Float[np.ndarray, " N"],
        y: Float[np.ndarray, "N ..."],
        likelihood: Likelihood,
        before: Callable[[], QuantileTracker],
        *,
        one_by_one: bool = False,
    ) -> "Horizons":
        """With rows of the channel, which score the forecasts of their time.

        Args:
            x: Their times.
            y: Their observations.
            likelihood: Of the channel, plain.
            before: The quantiles of normal scores of rows that were predicted just before they
                came.
            one_by_one: Whether each row was an update of its own.
        """
        latest = max(self.last, float(x.max()))
        reach = self._reached(latest, len(x) if one_by_one else 1)
        more = self._replace(step=self._stepped(x), last=latest, reach=reach)
        if not len(self.pending):
            return more
        near = np.flatnonzero(self.pending[:, 0] <= latest + self.step)  # the others are to come
        if not len(near):
            return more
        times = self.pending[near, 0]
        nearest = np.abs(x[:, None] - times).argmin(axis=0)
        met = np.abs(x[nearest] - times) <= 0.5 * self.step
        gone = met | (times < latest - 0.5 * self.step)
        if met.any():
            usable = likelihood.is_value(y[nearest[met]])
            which, rows = near[met][usable], nearest[met][usable]
            if len(rows):
                more = more._scored(which, x[rows], y[rows], likelihood, before)
        if not gone.any():
            return more
        left = np.ones(len(self.pending), bool)
        left[near[gone]] = False
        return more._replace(pending=self.pending[left])

    def issued(self, now: float, predict: Predict) -> "Horizons":
        """With forecasts of the horizons whose turn it is.

        Args:
            now: The latest input of the model.
            predict: What it says of the channel's latent parameters.
        """
        if not (self.step > 0 and self.reach > 0):  # many models are only ever updated once
            return self
        lengths, pending = self.lengths, self.pending
        made = np.full(HORIZONS, -np.inf)
        if len(pending):
            number = pending[:, 1].astype(int)
            each = pending[:, 0] - lengths[number]
            rest = min(max(sum(self.counts) / _MANY, 1.0), _RARELY)
            if now - each.max() < rest * self.step * (1 - _LATE):
                return self
            np.maximum.at(made, number, each)
        due = np.flatnonzero(now - made >= _SHARE * lengths * (1 - _LATE))
        if not len(due):
            return self
        times = now + lengths[due]
        x = np.ravel(times[:, None] + self.step * _NODES)
        mean, covariance = predict(x[:, None])
        if not (np.isfinite(mean).all() and np.isfinite(covariance).all()):
            return self
        nodes = np.concatenate([mean, covariance.reshape(len(x), -1)], axis=1)
        table = np.column_stack([times, due, nodes.reshape(len(due), -1)])
        return self._replace(pending=np.concatenate([pending, table]) if len(pending) else table)

    def scores(
        self,
        levels: Sequence[float],
        ahead: Float[np.ndarray, " N"],
        near: QuantileTracker,
    ) -> Float[np.ndarray, "L N"]:
        """The normal scores below which such shares of past rows fell, so far ahead.

        As far as an update usually reaches they are those of rows that were predicted just before
        they came. From there to the next horizon, and between two horizons, they are interpolated;
        beyond the last that has enough scores, they stay.
        """
        first = math.log2(max(self.reach / self.step, 1.0)) if self.step > 0 else 0.0
        known = [k for k, n in enumerate(self.counts) if n >= _ENOUGH and k + 1 > first]
        places = [first, *(k + 1.0 for k in known)]
        every = [QuantileTracker(places=near.places), *(self.trackers[k] for k in known)]
        steps = ahead / self.step if self.step > 0 else np.zeros(len(ahead))
        at = np.log2(np.maximum(steps, 1.0))
        table = [[tracker.quantile(level) for tracker in every] for level in levels]
        return near.centre + near.width * np.stack([np.interp(at, places, row) for row in table])

    def is_sound(self, latents: int) -> bool:
        """Whether it has the parts of one that rows have made."""
        width = 2 + len(_NODES) * (latents + latents**2)
        numbers = self.pending[:, 1] if len(self.pending) else np.zeros(0)
        return (
            len(self.trackers) == len(self.counts) <= HORIZONS
            and all(tracker.is_finite() for tracker in self.trackers)
            and all(isinstance(count, int) and count >= 0 for count in self.counts)
            and (not len(self.pending) or self.pending.shape[1] == width)
            and bool(np.isfinite(self.pending).all())
            and math.isfinite(self.reach)
            and bool(np.all((numbers >= 0) & (numbers < HORIZONS)))
        )

    def _stepped(self, x: Float[np.ndarray, " N"]) -> float:
        """The usual distance of rows, if it was not known before."""
        if self.step > 0:
            return self.step
        times = np.unique(x if np.isinf(self.last) else np.append(x, self.last))
        return float(np.median(np.diff(times))) if len(times) > 1 else 0.0

    def _reached(self, latest: float, updates: int) -> float:
        """The usual advance of an update, a moving average, with that of some updates."""
        advance = (latest - self.last) / updates
        if np.isinf(self.last) or advance <= 0:
            return self.reach
        return advance if not self.reach else self.reach + _NEW * (advance - self.reach)

    def _scored(
        self,
        which: np.ndarray,
        x: Float[np.ndarray, " m"],
        y: Float[np.ndarray, "m ..."],
        likelihood: Likelihood,
        before: Callable[[], QuantileTracker],
    ) -> "Horizons":
        """With some forecasts scored, one row each."""
        pending = self.pending[which]
        mean, covariance = _at(pending, (x - pending[:, 0]) / self.step, likelihood.latents)
        scores = _normal_scores(likelihood, y, mean, covariance, sum(self.counts))
        near, trackers, counts = before(), list(self.trackers), list(self.counts)
        by_horizon: dict[int, list[float]] = {}
        for k, score in zip(pending[:, 1].tolist(), scores.tolist(), strict=True):
            if math.isfinite(score):
                standard = (score - near.centre) / near.width
                by_horizon.setdefault(int(k), []).append(standard)
        for k, own in sorted(by_horizon.items()):
            while len(counts) <= k:  # a horizon begins with what is known of the one before it
                trackers.append(trackers[-1] if trackers else QuantileTracker(places=near.places))
                counts.append(0)
            trackers[k] = trackers[k].seen([own])
            counts[k] += len(own)
        return self._replace(trackers=tuple(trackers), counts=tuple(counts))


def settled(
    known: Mapping[str, Horizons],
    rows: Rows,
    likelihoods: Sequence[Likelihood],
    trackers: Callable[[str], QuantileTracker],
    *,
    one_by_one: bool,
) -> dict[str, Horizons]:
    """The channels' horizons once rows have come. They need one input, and values with an order.

    Args:
        known: By channel.
        rows: In the order in which they came.
        likelihoods: Of all channels, plain.
        trackers: The quantiles of rows that were predicted just before they came, by channel.
        one_by_one: Whether each row was an update of its own.
    """
    if rows.x.shape[1] != 1:
        return dict(known)
    found = dict(known)
    for name, own in rows.by_channel():
        number = rows.names.index(name)
        likelihood = likelihoods[number]
        if has_cdf(likelihood):
            y = rows.of(number, likelihood.observation_dim)
            before = functools.partial(trackers, name)
            found[name] = found.get(name, Horizons()).seen(
                rows.x[own, 0], y, likelihood, before, one_by_one=one_by_one
            )
    return found


@dataclasses.dataclass(frozen=True)
class Tracked:
    """What a channel's past says of its predictions.

    Attributes:
        near: The quantiles of rows that were predicted just before they came, once asked for.
        horizons: Those of forecasts that were made earlier.
        latest: The latest input of the model.
    """

    near: Callable[[], QuantileTracker]
    horizons: Horizons
    latest: float

    def __call__(
        self, levels: Sequence[float], x: Float[np.ndarray, "N P"]
    ) -> Float[np.ndarray, "L N"]:
        """The normal scores below which such shares of past rows fell, for predictions at x."""
        ahead = x[:, 0] - self.latest if x.shape[1] == 1 else np.zeros(len(x))
        return self.horizons.scores(levels, ahead, self.near())


def _at(
    pending: Float[np.ndarray, "m w"], place: Float[np.ndarray, " m"], latents: int
) -> tuple[Float[np.ndarray, "m J"], Float[np.ndarray, "m J J"]]:
    """Forecasts somewhere between their three nodes: means by a parabola, covariances linearly."""
    nodes = pending[:, 2:].reshape(len(pending), len(_NODES), -1)
    first, middle, last = nodes[:, 0], nodes[:, 1], nodes[:, 2]
    u = np.minimum(np.maximum(2 * place, -1.0), 1.0)[:, None]
    bent = middle + 0.5 * u * (last - first) + 0.5 * u**2 * (first - 2 * middle + last)
    straight = middle + np.abs(u) * (np.where(u < 0, first, last) - middle)
    return bent[:, :latents], straight[:, latents:].reshape(-1, latents, latents)


def _normal_scores(
    likelihood: Likelihood,
    y: Float[np.ndarray, "m ..."],
    mean: Float[np.ndarray, "m J"],
    covariance: Float[np.ndarray, "m J J"],
    number: int,
) -> Float[np.ndarray, " m"]:
    """Where rows fell in what was predicted, somewhere in the jump at y if values are discrete."""
    score = likelihood.predictive_score(y, mean, covariance)
    if score is not None:
        return score
    low, high = transform(likelihood, y, mean, covariance)
    place = (_GOLDEN * (number + 1 + np.arange(len(y)))) % 1.0
    pit = low + place * (high - low)
    return special.ndtri(np.clip(pit, _ROUNDING, 1 - _ROUNDING))
