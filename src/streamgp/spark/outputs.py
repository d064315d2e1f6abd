"""Outputs: what a stream says about each batch of a key, as rows of one schema."""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from streamgp.errors import ConfigurationError, problem
from streamgp.gp import ContinualGP
from streamgp.online.report import UpdateReport
from streamgp.spark.layout import Layout

PROBLEM = "problem"  # the last column of every output: why there is nothing else to say
_SURPRISING = 3.0  # standard deviations below the usual score


class Output(ABC):
    """A kind of rows. The keys come before the columns, and `problem` after them."""

    @abstractmethod
    def columns(self, layout: Layout) -> str:
        """The columns, as a schema."""

    @abstractmethod
    def rows(
        self, layout: Layout, model: ContinualGP, batch: Any, report: UpdateReport
    ) -> Iterator[tuple[Any, ...]]:
        """The rows after a batch was learned."""


@dataclasses.dataclass(frozen=True)
class Scores(Output):
    """How probable each observation was before it was learned."""

    def columns(self, layout: Layout) -> str:
        """The input, the channel, and the log density."""
        return f"{layout.input_types}, channel STRING, log_density DOUBLE"

    def rows(
        self, layout: Layout, model: ContinualGP, batch: Any, report: UpdateReport
    ) -> Iterator[tuple[Any, ...]]:
        """One row per observation."""
        inputs = batch[list(layout.inputs)]
        for name, scores in report.log_predictive_rows.items():
            at = inputs[layout.observed(batch, name, model.likelihoods)]
            for x, score in zip(at.itertuples(index=False), scores, strict=True):
                yield (*x, name, float(score))


@dataclasses.dataclass(frozen=True)
class Reports(Output):
    """What each channel's observations of a batch were like.

    Attributes:
        anomalies: Whether only batches are told of that were surprising, had outliers, or show that
            a channel has changed.
    """

    anomalies: bool = False

    def columns(self, layout: Layout) -> str:
        """The latest input, the channel, and its numbers."""
        return (
            f"{layout.input_types}, channel STRING, observations BIGINT, log_density DOUBLE, "
            "surprise DOUBLE, outliers BIGINT, changed BOOLEAN, coverage DOUBLE"
        )

    def rows(
        self, layout: Layout, model: ContinualGP, batch: Any, report: UpdateReport
    ) -> Iterator[tuple[Any, ...]]:
        """One row per channel."""
        latest = tuple(batch[list(layout.inputs)].max().tolist())
        coverage = report.coverage
        for name, count in report.observations.items():
            surprise, changed = report.surprise.get(name), name in report.changed
            outliers = report.outliers.get(name, 0)
            if self.anomalies and not (changed or outliers or (surprise or 0.0) > _SURPRISING):
                continue
            covered = coverage.get(name, {}).get(0.95)
            score = report.log_predictive.get(name)
            yield (*latest, name, count, score, surprise, outliers, changed, covered)


@dataclasses.dataclass(frozen=True)
class Forecasts(Output):
    """What channels will show after the latest input.

    Attributes:
        ahead: A number of steps, or how far to go, as for `ContinualGP.forecast`.
        every: The length of a step.
        level: Of the intervals.
    """

    ahead: Any
    every: Any
    level: float = 0.95

    def columns(self, layout: Layout) -> str:
        """The input, the channel, and what is predicted."""
        return (
            f"{layout.input_types}, channel STRING, mean DOUBLE, std DOUBLE, lower DOUBLE, "
            "upper DOUBLE"
        )

    def rows(
        self, layout: Layout, model: ContinualGP, batch: Any, report: UpdateReport
    ) -> Iterator[tuple[Any, ...]]:
        """One row per channel and step."""
        for name in model.channels:
            prediction = model.forecast(self.ahead, self.every, name)
            times = layout.repacked(prediction.x)
            lower, upper = prediction.interval(self.level)
            numbers = np.stack([prediction.mean, prediction.std, lower, upper], axis=-1)
            for x, row in zip(times, numbers.tolist(), strict=True):
                yield (x, name, *row)


def named(output: str, ahead: Any, every: Any, level: float) -> Output:
    """The output of a name.

    Raises:
        ConfigurationError: If there is no such output, or a forecast has no length.
    """
    if (output == "forecasts") != (ahead is not None and every is not None):
        raise ConfigurationError(
            problem(
                'output="forecasts" together with `ahead` and `every`',
                f"output={output!r}, ahead={ahead!r}, every={every!r}",
                'Write for example output="forecasts", ahead="1D", every="1h".',
            )
        )
    known = {
        "scores": Scores(),
        "reports": Reports(),
        "anomalies": Reports(anomalies=True),
        "forecasts": Forecasts(ahead, every, level),
    }
    if output not in known:
        raise ConfigurationError(
            problem(f"an output among {list(known)}", repr(output), "Check its name.")
        )
    return known[output]
