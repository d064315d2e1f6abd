"""A race: every contender learns the same streams, one contender at a time."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Rows
from streamgp_lab.problem import Problem, rows
from streamgp_lab.races.contender import Contender, ContenderError, Running
from streamgp_lab.races.environments import OWN
from streamgp_lab.reporting.claims import Claim
from streamgp_lab.scores import NO_SCORE, Score, score_of_moments

OURS = "streamgp"


@dataclass
class Result:
    """What one contender did in one run. `cpu` and `wall` are seconds per update."""

    start: float = np.nan  # wall seconds until it is imported and made
    first: float = np.nan  # wall seconds of the first update
    cold: float = np.nan  # CPU seconds of learning the whole stream for the first time
    cpu: Float[np.ndarray, " T"] = field(default_factory=lambda: np.zeros(0))  # per batch
    wall: Float[np.ndarray, " T"] = field(default_factory=lambda: np.zeros(0))
    sample_cpu: Float[np.ndarray, " N"] = field(default_factory=lambda: np.zeros(0))  # per sample
    sample_wall: Float[np.ndarray, " N"] = field(default_factory=lambda: np.zeros(0))
    predict: float = np.nan  # wall seconds of predicting all held-out rows at the end
    final: Score = NO_SCORE
    oldest_first: float = np.nan  # NLPD of the first batch when it was learned
    oldest_now: float = np.nan  # NLPD of the first batch at the end
    prequential: float = np.nan  # NLPD of single samples, each predicted before it was learned
    peak: float = np.nan  # MB
    reason: str = ""  # why the results are incomplete

    @property
    def warm(self) -> float:
        """CPU seconds of a typical update: the median of the later half."""
        return float(np.median(self.cpu[len(self.cpu) // 2 :])) if len(self.cpu) else np.nan

    @property
    def total(self) -> float:
        """CPU seconds of all learning; NaN without any."""
        return float(self.cpu.sum() + self.sample_cpu.sum()) if len(self.cpu) else np.nan


Results = dict[str, list[Result]]  # by contender, one per repeat of each problem


@dataclass(frozen=True)
class Race:
    """Streams, their contenders, and what is claimed of the results.

    Problems after the first are other splits or seeds of it. Contenders that learn only the first
    have fewer results.
    """

    name: str
    problems: Sequence[Problem]
    contenders: Sequence[Contender]
    claims: Callable[[Results], list[Claim]] = lambda results: []
    once: bool = False  # too long to be repeated

    def turns(self, repeats: int) -> Iterator[tuple[Problem, Contender]]:
        """Every run, in order.

        Contenders take turns, so that other load on the machine affects all of them.
        """
        for number, problem in enumerate(self.problems):
            entered = [each for each in self.contenders if not (number and each.only_first)]
            for _ in range(1 if self.once else repeats):
                yield from ((problem, contender) for contender in entered)


def run(
    race: Race,
    peers: Path,
    *,
    repeats: int,
    own: bool = False,
    begin: Callable[[str], None] = lambda what: None,
    end: Callable[[], None] = lambda: None,
) -> Results:
    """The results of every contender; `begin` and `end` are called around each run.

    With `own`, those of other libraries are left out: their results say so.
    """
    results: Results = {contender.name: [] for contender in race.contenders}
    for problem, contender in race.turns(repeats):
        begin(f"{race.name}: {contender.name}")
        left_out = own and contender.environment != OWN
        result = Result(reason="left out") if left_out else _run(problem, contender, peers)
        results[contender.name].append(result)
        end()
    return results


def _run(problem: Problem, contender: Contender, peers: Path) -> Result:
    result = Result()
    try:
        with contender.start(peers) as running:
            result.start = float(running.start["wall"])
            cold = Result() if contender.rehearsed else result
            _learn(running, problem, cold, everything=contender.everything)
            if contender.rehearsed:
                running.restart()
                _learn(running, problem, result, everything=contender.everything)
            result.first, result.cold = float(cold.wall[0]), cold.total
            result.peak = running.peak()
            everything = rows(problem.channels, *problem.test)
            result.final, result.predict = _score(running, problem, everything)
            result.oldest_now = _score_oldest(running, problem)
    except ContenderError as error:
        result.reason = str(error)
    return result


def _learn(running: Running, problem: Problem, result: Result, *, everything: bool) -> None:
    """The whole stream: batches, then single samples."""
    channels, train = problem.channels, problem.train
    if everything:
        _learn_batch(running, rows(channels, *train), result)
        return
    for step, batch in enumerate(train[: problem.single]):
        _learn_batch(running, rows(channels, batch), result)
        if step == 0:
            result.oldest_first = _score_oldest(running, problem)
    if problem.single is not None:
        answer = running.stream(rows(channels, *train[problem.single :]))
        result.sample_cpu, result.sample_wall = answer["cpu"], answer["wall"]
        result.prequential = -float(np.mean(answer["log_density"]))


def _learn_batch(running: Running, batch: Rows, result: Result) -> None:
    took = running.learn(batch)
    result.cpu = np.append(result.cpu, took["cpu"])
    result.wall = np.append(result.wall, took["wall"])


def _score_oldest(running: Running, problem: Problem) -> float:
    return _score(running, problem, rows(problem.channels, problem.test[0]))[0].nlpd


def _score(running: Running, problem: Problem, held_out: Rows) -> tuple[Score, float]:
    answer = running.predict(held_out)
    found = score_of_moments(problem.kind, held_out.y[:, 0], answer["mean"], answer["variance"])
    return found, float(answer["wall"])
