"""Batches: the paper's toy and banana, against methods that retrain and methods that forget."""

import numpy as np

from streamgp_lab.datasets import toys
from streamgp_lab.experiments import banana, streaming
from streamgp_lab.experiments.experiment import Options
from streamgp_lab.problem import Problem
from streamgp_lab.races.benchmark import comparison
from streamgp_lab.races.contender import Contender
from streamgp_lab.races.race import OURS, Race, Results
from streamgp_lab.races.summary import ratios
from streamgp_lab.reporting.claims import Claim, faster, no_worse

PAPER, SPARSE = "the paper's algorithm (ours)", "streaming sparse GP (ours)"
RETRAINED = "GPflow SVGP, retrained on everything"


def races(share: float) -> list[Race]:
    toy, plane = (each.problem(Options(share=share)) for each in (streaming, banana))
    grows = {"first": 3, "more": 3}
    return [
        Race(
            "streaming",
            [toy],
            [
                Contender(OURS, "ours", rehearsed=True),
                Contender(
                    PAPER, "paper", rehearsed=True,
                    settings={**grows, "noise": toys.NOISE, "lengthscale": 0.05},
                ),
                Contender(SPARSE, "streaming_sparse", settings=grows, rehearsed=True),
                *_variational(toy, points=30),
            ],
            claims,
        ),
        Race(
            "banana",
            [plane],
            [
                Contender(OURS, "ours", settings={"kind": "binary"}, rehearsed=True),
                Contender(
                    PAPER, "paper", rehearsed=True,
                    settings={"kind": "binary", "first": 3, "more": 1, "lengthscale": [0.5, 0.5]},
                ),
                Contender(
                    SPARSE, "streaming_sparse", rehearsed=True,
                    settings={"kind": "binary", "first": 50},
                ),
                *_variational(plane, points=50),
            ],
            claims,
        ),
    ]  # fmt: skip


def _variational(problem: Problem, points: int) -> list[Contender]:
    settings = {"span": problem.span, "kind": problem.kind, "points": points}
    return [
        Contender(RETRAINED, "gpflow_variational", "gpflow", settings),
        Contender(
            "GPflow SVGP, the new batch alone", "gpflow_variational", "gpflow",
            {**settings, "retrain": False},
        ),
        Contender(
            "GPyTorch SVGP, the new batch alone", "gpytorch_variational", "gpytorch", settings
        ),
    ]  # fmt: skip


def claims(results: Results) -> list[Claim]:
    """What is claimed of batches."""
    said = []
    for than, times in ((PAPER, 50), (RETRAINED, 20)):
        ratio = float(np.median(ratios(results[than], results[OURS], lambda run: run.warm)))
        said.append(faster(times, ratio, f"{than}, per warm update"))
        nlpds = _nlpd(results, OURS), _nlpd(results, than)
        said.append(no_worse(f"NLPD compared with {than}", *nlpds))
    return said


def _nlpd(results: Results, name: str) -> float:
    return float(np.median([run.final.nlpd for run in results[name]]))


BENCHMARK = comparison(
    "batches", "Updates with batches: the paper's toy in ten batches, banana in four.", races
)
