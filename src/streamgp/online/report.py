"""UpdateReport: what an update did, in numbers and in a sentence."""

import dataclasses
import enum
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from streamgp.data.axes import Axis
from streamgp.model.multitask import MultiTaskGP
from streamgp.model.summary import describe
from streamgp.online.calibration import COVERED, Calibration


class Result(enum.Enum):
    """How an update ended, as a sentence."""

    LEARNED = "The data and the hyperparameters were learned."
    KEPT_HYPERPARAMETERS = "The data were learned; the hyperparameters stayed as they were."
    REFINED = "The hyperparameters were learned from what is carried, without data."
    SKIPPED = "Every value was an outlier and was left out; the model is as it was."
    NOTHING_OBSERVED = "No value was observed, so the model is as it was."

    def __str__(self) -> str:
        return self.value


def held(kept_rows: int, inducing: Sequence[int], observations: int = 0) -> str:
    """What a model keeps of the past, in words."""
    if kept_rows:
        of_all = f" for {observations:,} observations" if observations > kept_rows else ""
        return f"{kept_rows:,} kept rows{of_all}"
    return f"{'+'.join(map(str, inducing)) or 'no'} inducing points"


def percent(part: float) -> str:
    """A part of a whole, for people."""
    if 0 < part < 0.001:
        return "less than 0.1%"
    return f"{part:.1%}" if 0 < part < 0.01 else f"{part:.0%}"


@dataclasses.dataclass(frozen=True)
class UpdateReport:
    """What one `update` did.

    Attributes:
        update: The number of updates so far, this one included.
        result: How the update ended; `str(result)` is a sentence.
        observations: How many observations came, by channel.
        log_predictive: The mean log predictive density per point of the batch *before* it was
            learned (the prequential score), by channel.
        log_predictive_rows: The same per point.
        surprise: How far below its usual that score is, in standard deviations, by channel.
        changed: The channels whose scores have stayed so low that they must have changed.
        outliers: How many observations lay far outside what was predicted, by channel.
        bound: The continual bound of the batch. A stream of single samples has none (NaN).
        inducing_before: The number of inducing points of each latent function before the update.
        inducing_after: The same after it. Where rows are kept instead, both are the numbers of
            kept rows.
        kept_rows: How many rows of the past the model keeps; zero if it has inducing points.
        kept_bytes: How many bytes they take.
        kept_of: How many observations the model has had in all.
        open_variance: The part of each latent function's variance at past rows that its points
            leave open after the update. Rows count by how precisely they observe the function.
            Zero before any data.
        budget_spent: Whether points had to go for want of room, so that the past is held less
            finely than before. A larger `budget` keeps more of it.
        e_rounds: How many rounds the E steps took.
        m_evaluations: How often the M steps evaluated the bound.
        seconds: The time that the update took.
        channels: The names of all channels.
        axes: What each input column is.
        dropped: What of a frame was left out of a channel, and why, by channel.
    """

    update: int
    result: Result
    observations: dict[str, int]
    log_predictive: dict[str, float]
    log_predictive_rows: dict[str, np.ndarray] = dataclasses.field(repr=False)
    surprise: dict[str, float]
    changed: tuple[str, ...]
    bound: float
    inducing_before: tuple[int, ...]
    inducing_after: tuple[int, ...]
    kept_rows: int
    open_variance: tuple[float, ...]
    budget_spent: bool
    e_rounds: int
    m_evaluations: int
    seconds: float
    channels: tuple[str, ...] = dataclasses.field(repr=False)
    _model: MultiTaskGP | None = dataclasses.field(repr=False)
    axes: tuple[Axis, ...] = dataclasses.field(default=(), repr=False)
    dropped: dict[str, str] = dataclasses.field(default_factory=dict)
    kept_bytes: int = 0
    kept_of: int = 0
    outliers: dict[str, int] = dataclasses.field(default_factory=dict)
    _calibrations: Mapping[str, Calibration] = dataclasses.field(default_factory=dict, repr=False)

    @property
    def nlpd(self) -> dict[str, float]:
        """Minus the log predictive density per point before learning, by channel.

        It is a moving average over about the last 500 points. Points that are far out count for
        nothing in it.
        """
        return {name: r.nlpd.value for name, r in self._records if r.nlpd.weight}

    @property
    def crps(self) -> dict[str, float]:
        """The same of the continuous ranked probability score, in the units of the channel.

        It is there for families that have a formula: Gaussian, log-normal and binary channels.
        """
        return {name: r.crps.value for name, r in self._records if r.crps.weight}

    @property
    def coverage(self) -> dict[str, dict[float, float]]:
        """The share of points in the intervals that were predicted of them, by channel and level.

        The levels are 0.5, 0.8 and 0.95, of central intervals. The shares are moving averages over
        about the last 500 points.
        """
        return {
            name: {level: share.value for level, share in zip(COVERED, r.coverage, strict=True)}
            for name, r in self._records
            if r.coverage[0].weight
        }

    @functools.cached_property
    def _records(self) -> list[tuple[str, Calibration]]:
        """The records of the channels that came. To settle them takes a while."""
        known = self._calibrations
        return [(name, known[name].settled) for name in self.observations if name in known]

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """Every hyperparameter after the update, by name, in the user's units."""
        return {} if self._model is None else describe(self._model, self.channels, self.axes)

    def __str__(self) -> str:
        if self.result is Result.NOTHING_OBSERVED:
            return f"update {self.update}: {self.result}"
        scores = ", ".join(f"{name} {value:.3f}" for name, value in self.log_predictive.items())
        parts = [
            f"{sum(self.observations.values())} observations",
            f"log predictive before learning: {scores or 'none'}",
            f"bound {self.bound:.2f}",
            held(self.kept_rows, self.inducing_after, self.kept_of),
        ]
        if self.budget_spent:
            left = percent(max(self.open_variance))
            parts.append(f"budget spent, {left} of the variance left open")
        strange = {name: count for name, count in self.outliers.items() if count}
        if strange:
            parts.append("outliers: " + ", ".join(f"{n} {count}" for n, count in strange.items()))
        if self.changed:
            parts.append(f"changed: {', '.join(self.changed)}")
        return f"update {self.update}: {'; '.join(parts)} ({self.seconds * 1e3:.0f} ms)"
