"""Channels: many channels that share a few functions, against a model of all data."""

import itertools

import numpy as np

from streamgp_lab.problem import Data, Problem
from streamgp_lab.races.benchmark import comparison
from streamgp_lab.races.contender import Contender
from streamgp_lab.races.race import OURS, Race, Results
from streamgp_lab.reporting.claims import Claim, faster, no_worse

OFFLINE = "GPyTorch LMC, on everything at once"
LATENTS, BATCHES, ROWS = 3, 8, 60
COUNTS = (4, 8, 16)


def problem(count: int, share: float) -> Problem:
    """Channels that mix three smooth functions, each with its own inputs."""
    generator = np.random.default_rng(count)
    speeds, phases = np.array([0.6, 1.1, 1.9]), generator.uniform(0, 6, LATENTS)
    weights = generator.normal(size=(count, LATENTS))
    noises = generator.uniform(0.1, 0.4, count)

    def draw(low: float, high: float) -> Data:
        drawn, each = {}, int(ROWS * share)
        for channel in range(count):
            x = np.sort(generator.uniform(low, high, each))
            f = weights[channel] @ np.sin(speeds[:, None] * x + phases[:, None])
            drawn[f"channel {channel}"] = (x, f + noises[channel] * generator.normal(size=each))
        return drawn

    spans = list(itertools.pairwise(np.linspace(0, 16, BATCHES + 1)))
    train = [draw(*span) for span in spans]
    return Problem(train, test=[draw(*span) for span in spans])


def races(share: float) -> list[Race]:
    return [_race(count, share) for count in COUNTS]


def _race(count: int, share: float) -> Race:
    settings = {"channels": count, "latents": LATENTS}
    contenders = [
        Contender(OURS, "ours", settings=settings, rehearsed=True),
        Contender(OFFLINE, "gpytorch_channels", "gpytorch", settings, everything=True),
    ]
    problems = [problem(count, share)]
    return Race(f"{count} channels", problems, contenders, claims, once=True)


def claims(results: Results) -> list[Claim]:
    """What is claimed of many channels."""
    ours, theirs = results[OURS][0], results[OFFLINE][0]
    return [
        faster(10, theirs.total / ours.total, "the offline model, all updates together"),
        no_worse("NLPD compared with the offline model", ours.final.nlpd, theirs.final.nlpd),
    ]


BENCHMARK = comparison(
    "channels", "Four to sixteen channels that share three functions, in eight batches.", races
)
