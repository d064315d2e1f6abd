"""A million single samples, with hyperparameters learned on schedule."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import streamgp as sgp
from streamgp_lab.baselines.smoother import Matern
from streamgp_lab.races.long.streams import (
    CHAIN,
    Stream,
    learned,
    learning_model,
    stream,
    timed,
)
from streamgp_lab.reporting.report import Part
from streamgp_lab.reporting.tables import Table, number

_TOGETHER = 10_000  # samples of one call


@dataclass(frozen=True)
class Milestone:
    """How far a stream of single samples has come.

    Attributes:
        seen: Samples so far.
        points: Inducing times.
        sample: CPU seconds per sample since the last milestone.
        slowest: CPU seconds of the slowest call since then.
        nlpd: Prequential, since then.
        rmse: Of f at the held-out times of everything so far.
        found: The hyperparameters.
    """

    seen: int
    points: int
    sample: float
    slowest: float
    nlpd: float
    rmse: float
    found: Matern


def measure(samples: int) -> list[Milestone]:
    """One stream of single samples, looked at whenever it has grown tenfold."""
    data, model, found = stream(samples / 10), learning_model(CHAIN), []
    seconds: list[float] = []
    scores: list[np.ndarray] = []
    marks = {10**power for power in range(3, 10) if 10**power <= samples} | {samples}
    seen, before = 0, 0
    while seen < samples:
        rows = slice(seen, min(_next(seen, marks), seen + _TOGETHER))
        took, report = timed(lambda rows=rows: model.update_many(data.x[rows], data.y[rows]))
        seconds.append(took)
        scores.append(report.log_predictive_rows["y"])
        seen = rows.stop
        if seen in marks:
            mean = -float(np.mean(np.concatenate(scores)))
            error, points = _error(model, data, seen), len(model.inducing_points[0])
            per, slowest = sum(seconds) / (seen - before), max(seconds)
            found.append(Milestone(seen, points, per, slowest, mean, error, learned(model)))
            seconds, scores, before = [], [], seen
    return found


def _next(seen: int, marks: set[int]) -> int:
    return min(mark for mark in marks if mark > seen)


def _error(model: sgp.ContinualGP, data: Stream, seen: int) -> float:
    past = data.at <= data.x[seen - 1]
    said = model.predict(data.at[past])
    return float(np.sqrt(np.mean((said.latent_mean - data.f[past]) ** 2)))


def parts(found: Sequence[Milestone]) -> list[Part]:
    """One row for each milestone."""
    heading = [
        "samples", "M", "CPU ms per sample", "slowest call, CPU s", "prequential NLPD", "RMSE of f",
        "lengthscale", "variance", "noise",
    ]  # fmt: skip
    rows = [
        [
            f"{m.seen:,}", f"{m.points:,}", number(1e3 * m.sample), number(m.slowest),
            f"{m.nlpd:.4f}", f"{m.rmse:.4f}", *(f"{value:.3f}" for value in m.found),
        ]
        for m in found
    ]  # fmt: skip
    return [Table("Single samples, hyperparameters learned on schedule", heading, rows)]
