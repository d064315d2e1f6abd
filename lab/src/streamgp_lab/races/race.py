"""A race: every contender on the same stream, in turn, as often as asked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from jaxtyping import Float

from streamgp_lab.races.contender import Contender, ContenderError, Entry
from streamgp_lab.races.problem import Problem, Rows, Score, joined, score

_NOTHING = Score(np.nan, np.nan, np.nan)


@dataclass
class Result:
    """What one contender did in one run. Seconds are CPU time and wall time of each update."""

    start: float = np.nan  # seconds of wall time until it is imported and made
    first: float = np.nan  # and of the first update, cold
    cold: float = np.nan  # CPU seconds of learning everything for the first time
    cpu: Float[np.ndarray, " T"] = field(default_factory=lambda: np.zeros(0))  # a batch
    wall: Float[np.ndarray, " T"] = field(default_factory=lambda: np.zeros(0))
    sample_cpu: Float[np.ndarray, " N"] = field(default_factory=lambda: np.zeros(0))  # a sample
    sample_wall: Float[np.ndarray, " N"] = field(default_factory=lambda: np.zeros(0))
    predict: float = np.nan  # seconds of wall time for the held-out rows at the end
    final: Score = _NOTHING
    oldest_first: float = np.nan  # NLPD of the first batch when it was learned
    oldest_now: float = np.nan
    prequential: float = np.nan
    peak: float = np.nan  # MB
    reason: str = ""  # why it has no more than it has

    @property
    def warm(self) -> float:
        """CPU seconds of an update once everything is compiled: the median of the later half."""
        return float(np.median(self.cpu[len(self.cpu) // 2 :])) if len(self.cpu) else np.nan

    @property
    def total(self) -> float:
        """CPU seconds of all learning; NaN where there was none."""
        return float(self.cpu.sum() + self.sample_cpu.sum()) if len(self.cpu) else np.nan


Told = Callable[[str], None]


def race(
    problem: Problem, entries: Sequence[Entry], peers: Path, *, repeats: int, told: Told
) -> dict[str, list[Result]]:
    """The results of every contender. Repeats take turns, so that load falls on all alike."""
    results: dict[str, list[Result]] = {entry.name: [] for entry in entries}
    for _ in range(repeats):
        for entry in entries:
            told(f"{problem.name}: {entry.name}")
            results[entry.name].append(_run(problem, entry, peers))
    return results


def _run(problem: Problem, entry: Entry, peers: Path) -> Result:
    result = Result()
    try:
        with entry.start(peers) as contender:
            result.start = float(contender.start["wall"])
            cold = Result() if entry.rehearsed else result
            _learn(contender, problem, entry, cold)
            if entry.rehearsed:
                contender.ask("again")
                _learn(contender, problem, entry, result)
            result.first, result.cold = float(cold.wall[0]), cold.total
            result.peak = float(contender.ask("peak")["peak"])
            _score(contender, problem, result)
    except ContenderError as error:
        result.reason = str(error)
    return result


def _learn(contender: Contender, problem: Problem, entry: Entry, result: Result) -> None:
    """All of the stream: batches, then single samples."""
    if entry.everything:
        _fold(contender, joined(problem.train), result)
        return
    for step, batch in enumerate(problem.train):
        _fold(contender, batch, result)
        if step == 0:
            result.oldest_first = _scored(contender, problem, problem.test[0])[0].nlpd
    if problem.single is not None:
        _stream(contender, problem.single, result)


def _fold(contender: Contender, batch: Rows, result: Result) -> None:
    took = contender.ask("learn", **batch._asdict())
    result.cpu = np.append(result.cpu, took["cpu"])
    result.wall = np.append(result.wall, took["wall"])


def _stream(contender: Contender, samples: Rows, result: Result) -> None:
    answer = contender.ask("stream", **samples._asdict())
    result.sample_cpu, result.sample_wall = answer["cpu"], answer["wall"]
    result.prequential = -float(np.mean(answer["log_density"]))


def _score(contender: Contender, problem: Problem, result: Result) -> None:
    everything = joined(problem.test)
    result.final, result.predict = _scored(contender, problem, everything)
    result.oldest_now = _scored(contender, problem, problem.test[0])[0].nlpd


def _scored(contender: Contender, problem: Problem, held_out: Rows) -> tuple[Score, float]:
    answer = contender.ask("predict", x=held_out.x, channel=held_out.channel)
    found = score(problem.kind, held_out.y, answer["mean"], answer["variance"])
    return found, float(answer["wall"])
