"""UpdateReport: what an update did, in numbers and in a sentence."""

import dataclasses
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class UpdateReport:
    """What one `update` did.

    `log_predictive[name]` is the mean log predictive density a point of the batch *before* it was
    learned (the prequential score); `log_predictive_rows[name]` has one number a point.
    """

    update: int
    observations: dict[str, int]
    log_predictive: dict[str, float]
    log_predictive_rows: dict[str, np.ndarray] = dataclasses.field(repr=False)
    bound: float
    inducing_before: tuple[int, ...]
    inducing_after: tuple[int, ...]
    hyperparameters: dict[str, Any] = dataclasses.field(repr=False)
    e_rounds: int
    m_evaluations: int
    seconds: float
    result: str

    def __str__(self) -> str:
        scores = ", ".join(f"{name} {value:.3f}" for name, value in self.log_predictive.items())
        return (
            f"update {self.update}: {sum(self.observations.values())} observations, "
            f"log predictive before learning: {scores}; bound {self.bound:.2f}; "
            f"{self.result} ({self.seconds * 1e3:.0f} ms)"
        )
