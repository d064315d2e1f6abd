"""Batches: the paper's toy and banana, beside those that retrain and those that forget."""

import numpy as np

from streamgp_lab.experiments import banana, streaming
from streamgp_lab.experiments.sources import toys
from streamgp_lab.races.comparison import OURS, Claim, Comparison, Race, Results, at_least, no_worse
from streamgp_lab.races.contender import Entry
from streamgp_lab.races.problem import Problem, of_experiment
from streamgp_lab.races.tables import ratios

PAPER, SPARSE = "the paper's algorithm (ours)", "streaming sparse GP (ours)"
RETRAINED = "GPflow SVGP, retrained on everything"


def races(share: float) -> list[Race]:
    toy = of_experiment(streaming.EXPERIMENT, share)
    plane = of_experiment(banana.EXPERIMENT, share)
    grows = {"first": 3, "more": 3}
    return [
        Race(
            toy,
            [
                Entry(OURS, "ours", rehearsed=True),
                Entry(
                    PAPER, "paper", rehearsed=True,
                    settings={**grows, "noise": toys.NOISE, "lengthscale": 0.05},
                ),
                Entry(SPARSE, "streaming_sparse", settings=grows, rehearsed=True),
                *_variational(toy, points=30),
            ],
            claims,
        ),
        Race(
            plane,
            [
                Entry(OURS, "ours", settings={"kind": "binary", "budget": 100}, rehearsed=True),
                Entry(
                    PAPER, "paper", rehearsed=True,
                    settings={"kind": "binary", "first": 3, "more": 1, "lengthscale": [0.5, 0.5]},
                ),
                Entry(
                    SPARSE, "streaming_sparse", rehearsed=True,
                    settings={"kind": "binary", "first": 50},
                ),
                *_variational(plane, points=50),
            ],
            claims,
        ),
    ]  # fmt: skip


def _variational(problem: Problem, points: int) -> list[Entry]:
    settings = {"span": problem.span, "kind": problem.kind, "points": points}
    return [
        Entry(RETRAINED, "gpflow_variational", "gpflow", settings),
        Entry(
            "GPflow SVGP, the new batch alone", "gpflow_variational", "gpflow",
            {**settings, "retrain": False},
        ),
        Entry("GPyTorch SVGP, the new batch alone", "gpytorch_variational", "gpytorch", settings),
    ]  # fmt: skip


def claims(results: Results) -> list[Claim]:
    """What batches are to show."""
    said = []
    for than, times in ((PAPER, 50), (RETRAINED, 20)):
        faster = float(np.median(ratios(results[than], results[OURS], lambda run: run.warm)))
        said.append(at_least(times, faster, f"as {than}, a warm update"))
        said.append(no_worse(f"NLPD, to {than}", _nlpd(results, OURS), _nlpd(results, than)))
    return said


def _nlpd(results: Results, name: str) -> float:
    return float(np.median([run.final.nlpd for run in results[name]]))


COMPARISON = Comparison(
    name="batches",
    about="A batch at a time: the paper's toy in ten batches, banana in four.",
    races=races,
)
