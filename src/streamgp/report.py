"""UpdateReport: what an update did, in numbers and in a sentence."""

import dataclasses
from typing import Any

import numpy as np

from streamgp.data.axes import Axis
from streamgp.generative import Generative
from streamgp.setup import describe


@dataclasses.dataclass(frozen=True)
class UpdateReport:
    """What one `update` did.

    `log_predictive[name]` is the mean log predictive density a point of the batch *before* it was
    learned (the prequential score); `log_predictive_rows[name]` has one number a point.
    `surprise[name]` is how far below its usual that score is, in standard deviations, and
    `changed` names the channels whose scores have stayed so low that they must have changed.
    `dropped[name]` says what of a frame was left out of a channel, and why.
    `bound` is the batch's continual bound; a stream of single samples has none (NaN).
    """

    update: int
    observations: dict[str, int]
    log_predictive: dict[str, float]
    log_predictive_rows: dict[str, np.ndarray] = dataclasses.field(repr=False)
    surprise: dict[str, float]
    changed: tuple[str, ...]
    bound: float
    inducing_before: tuple[int, ...]
    inducing_after: tuple[int, ...]
    e_rounds: int
    m_evaluations: int
    seconds: float
    channels: tuple[str, ...] = dataclasses.field(repr=False)
    _model: Generative = dataclasses.field(repr=False)
    axes: tuple[Axis, ...] = dataclasses.field(default=(), repr=False)
    dropped: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """Every hyperparameter after the update, by name, in the user's units."""
        return describe(self._model, self.channels, self.axes)

    @property
    def result(self) -> str:
        """How it ended, in a sentence."""
        points = f"learned with {'+'.join(map(str, self.inducing_after))} inducing points"
        return f"{points}; {', '.join(self.changed)} changed" if self.changed else points

    def __str__(self) -> str:
        scores = ", ".join(f"{name} {value:.3f}" for name, value in self.log_predictive.items())
        return (
            f"update {self.update}: {sum(self.observations.values())} observations, "
            f"log predictive before learning: {scores}; bound {self.bound:.2f}; "
            f"{self.result} ({self.seconds * 1e3:.0f} ms)"
        )
