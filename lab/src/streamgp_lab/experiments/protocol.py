"""How an experiment is run: every method gets the same data and is scored after every step."""

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from streamgp.errors import StreamGPError
from streamgp.numerics.blas_threads import on_one_blas_thread
from streamgp_lab.experiments.experiment import Entry, Experiment, Method, Options
from streamgp_lab.problem import Data, Problem
from streamgp_lab.scores import Score, pooled, score


@dataclass
class Run:
    """What one method did on one problem."""

    # By channel and step: the scores of the held-out data of all batches so far, None for a batch
    # without the channel.
    scores: dict[str, list[list[Score | None]]] = field(default_factory=dict)
    gap: dict[str, Score] = field(default_factory=dict)
    singles: dict[str, list[float]] = field(default_factory=dict)  # log density before learning
    seconds: list[float] = field(default_factory=list)  # CPU time of each update
    points: int | None = None  # inducing points at the end
    snapshots: list[Any] = field(default_factory=list)  # our model after each step
    method: Any = None  # as it is at the end
    reason: str = ""  # why there are no results

    def final(self, channel: str) -> Score:
        """The score of all held-out data at the end."""
        return pooled([s for s in self.scores[channel][-1] if s is not None])

    def prequential(self, channel: str) -> float:
        """NLPD of the samples that came one at a time, each predicted before it was learned."""
        scores = self.singles.get(channel)
        return -float(np.nanmean(scores)) if scores else np.nan

    def oldest(self, channel: str) -> tuple[float, float]:
        """NLPD of the first batch of the channel, when it was first learned and at the end."""
        rows = [row for row in self.scores[channel] if any(s is not None for s in row)]
        which = next(b for b, s in enumerate(rows[0]) if s is not None)
        return rows[0][which].nlpd, rows[-1][which].nlpd  # type: ignore[union-attr]


@dataclass
class Outcome:
    """What all methods did with one seed."""

    experiment: Experiment
    problem: Problem
    runs: dict[str, Run]

    @property
    def ours(self) -> Run:
        return next(iter(self.runs.values()))


@on_one_blas_thread  # experiments run side by side, and threads of BLAS would only wait
def run(
    experiment: Experiment,
    options: Options,
    begin: Callable[[str], None] = lambda method: None,
    end: Callable[[], None] = lambda: None,
) -> Outcome:
    """Run every method on the data of one seed; `begin` and `end` are called around each."""
    problem = experiment.problem(options)
    runs: dict[str, Run] = {}
    for name, entry in experiment.methods.items():
        if entry.make is not None:
            begin(name)
        runs[name] = measured(entry, problem, options.seed, keep=not runs)
        if entry.make is not None:
            end()
    return Outcome(experiment, problem, runs)


def measured(entry: Entry, problem: Problem, seed: int, *, keep: bool = False) -> Run:
    """Run one method on one problem; with `keep`, copy the method after every step."""
    result = Run(reason=entry.reason, scores={name: [] for name in problem.channels})
    if entry.make is None:
        return result
    try:
        method = entry.make(problem, seed)
        if entry.streaming:
            _stream(method, problem, result, keep=keep)
        else:
            _learn(method, problem.everything(), result)
            _score(method, problem, len(problem.train) - 1, result)
    except (StreamGPError, FloatingPointError, np.linalg.LinAlgError) as error:
        result.reason = f"failed after {len(result.seconds)} updates: {error}"
    if not result.reason:
        result.method = method
        sizes = [len(z) for z in getattr(method, "inducing_points", ())]
        result.points = sum(sizes) or None
        result.gap = {n: score(method.predict(x, n), y) for n, (x, y) in problem.gap.items()}
    return result


def _stream(method: Method, problem: Problem, result: Run, *, keep: bool) -> None:
    for step, batch in enumerate(problem.train):
        if problem.single is not None and step >= problem.single:
            _learn_one_by_one(method, batch, result)
        else:
            _learn(method, batch, result)
        _score(method, problem, step, result)
        if keep:
            result.snapshots.append(copy.deepcopy(method))


def _learn(method: Method, batch: Data, result: Run) -> None:
    begin = time.process_time()
    method.update(batch)
    result.seconds.append(time.process_time() - begin)


def _learn_one_by_one(method: Method, batch: Data, result: Run) -> None:
    """Learn the samples of one channel one at a time; the time is the mean per sample."""
    ((name, (x, y)),) = batch.items()
    begin = time.process_time()
    report = method.update_many(x, y)  # type: ignore[attr-defined]
    result.seconds.append((time.process_time() - begin) / len(y))
    result.singles.setdefault(name, []).extend(map(float, report.log_predictive_rows[name]))


def _score(method: Method, problem: Problem, step: int, result: Run) -> None:
    """Score the held-out data of every batch so far."""
    seen = {name for batch in problem.train[: step + 1] for name in batch}
    for name in problem.channels:
        row: list[Score | None] = []
        for held_out in problem.test[: step + 1]:
            there = name in held_out and name in seen and len(held_out[name][1])
            x, y = held_out[name] if there else (None, None)
            row.append(score(method.predict(x, name), y) if y is not None else None)
        result.scores[name].append(row)
