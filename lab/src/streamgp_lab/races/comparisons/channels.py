"""Channels: many that share a few functions, streaming beside a model of all data."""

import itertools

import numpy as np

from streamgp_lab.races.comparison import OURS, Claim, Comparison, Race, Results, at_least, no_worse
from streamgp_lab.races.contender import Entry
from streamgp_lab.races.problem import Problem, joined, rows

OFFLINE = "GPyTorch LMC, on everything at once"
LATENTS, BATCHES, ROWS = 3, 8, 60
COUNTS = (4, 8, 16)


def problem(count: int, share: float) -> Problem:
    """Channels that mix three smooth functions, at inputs of their own."""
    generator = np.random.default_rng(count)
    speeds, phases = np.array([0.6, 1.1, 1.9]), generator.uniform(0, 6, LATENTS)
    weights = generator.normal(size=(count, LATENTS))
    noises = generator.uniform(0.1, 0.4, count)

    def draw(low: float, high: float, each: int) -> list:
        drawn = []
        for channel in range(count):
            x = np.sort(generator.uniform(low, high, each))
            f = weights[channel] @ np.sin(speeds[:, None] * x + phases[:, None])
            drawn.append(rows(x, f + noises[channel] * generator.normal(size=each), channel))
        return drawn

    edges = np.linspace(0, 16, BATCHES + 1)
    spans = list(itertools.pairwise(edges))
    train = [joined(draw(*span, int(ROWS * share))) for span in spans]
    test = [joined(draw(*span, int(ROWS * share))) for span in spans]
    return Problem(f"{count} channels", train, test)


def races(share: float) -> list[Race]:
    return [_race(problem(count, share), count) for count in COUNTS]


def _race(stream: Problem, count: int) -> Race:
    settings = {"channels": count, "latents": LATENTS}
    entries = [
        Entry(OURS, "ours", settings={**settings, "budget": 64}, rehearsed=True),
        Entry(OFFLINE, "gpytorch_channels", "gpytorch", settings, everything=True),
    ]
    return Race(stream, entries, claims, once=True)


def claims(results: Results) -> list[Claim]:
    """What many channels are to show."""
    ours, theirs = results[OURS][0], results[OFFLINE][0]
    return [
        at_least(10, theirs.total / ours.total, "as the offline model, all updates together"),
        no_worse("NLPD, to the offline model", ours.final.nlpd, theirs.final.nlpd),
    ]


COMPARISON = Comparison(
    name="channels",
    about="Four to sixteen channels that share three functions, in eight batches.",
    races=races,
)
