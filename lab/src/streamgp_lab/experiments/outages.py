"""Outages: unemployment in the United States, with stretches of two years that are missing.

The channels are unemployment, the rate of treasury bills, inflation, and whether there is a
recession, each quarter of a year from 1959 to 2009 (from statsmodels). All but unemployment are
complete.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from jaxtyping import Bool

import streamgp as sgp
from streamgp_lab.datasets import files
from streamgp_lab.experiments import methods, more_tables, pictures
from streamgp_lab.experiments.experiment import Experiment, Options
from streamgp_lab.experiments.protocol import Outcome
from streamgp_lab.problem import Data, Problem, merged
from streamgp_lab.reporting.tables import Table, mean, mean_and_deviation

BATCH = 12  # quarters
OUTAGE, SLOT = 8, 14  # quarters of an outage, and at least so many per outage
WHOLE = 2 * BATCH  # quarters at the beginning without outages
TARGET = "unemployment"


def outages(count: int, generator: np.random.Generator) -> Bool[np.ndarray, " N"]:
    """The missing quarters: one outage in each slot, which ends before its slot."""
    missing = np.zeros(count, bool)
    edges = np.linspace(WHOLE, count, (count - WHOLE) // SLOT + 1).astype(int)
    for begin, end in pairwise(edges):
        first = generator.integers(begin, end - OUTAGE)
        missing[first : first + OUTAGE] = True
    return missing


def problem(options: Options) -> Problem:
    """Unemployment is scored in its outages, and the other channels on what is learned."""
    x, values = files.economy()
    count = int(len(x) * options.share)
    missing = outages(count, np.random.default_rng(options.seed))
    train: list[Data] = []
    test: list[Data] = []
    for begin in range(0, count, BATCH):
        rows = np.arange(begin, min(begin + BATCH, count))
        both = {name: (x[rows], y[rows]) for name, y in values.items()}
        known, lost = rows[~missing[rows]], rows[missing[rows]]
        train.append(both | {TARGET: (x[known], values[TARGET][known])})
        test.append(both | {TARGET: (x[lost], values[TARGET][lost])})
    note = "Quarters 1959–2009 from statsmodels. Unemployment is scored where it is missing."
    return Problem(train, test, note=note)


def channels() -> dict[str, sgp.Likelihood]:
    return {
        TARGET: sgp.Gaussian(),
        "bills": sgp.Gaussian(),
        "inflation": sgp.Gaussian(),
        "recession": sgp.Bernoulli(),
    }


def model(seed: int) -> sgp.ContinualGP:
    return sgp.ContinualGP(channels(), engine="dense", seed=seed)


def trained(seed: int) -> sgp.ContinualGP:
    return sgp.ContinualGP(
        channels(), engine="dense", learning=sgp.VEM(rounds=15, evaluations=60), seed=seed
    )


def tables(outcomes: Sequence[Outcome]) -> list[Table]:
    """The outages alone, beside straight lines between their ends."""
    rows = []
    for method, runs in more_tables.succeeded(outcomes).items():
        scores = [run.final(TARGET) for run in runs]
        error, density = ([getattr(s, part) for s in scores] for part in ("error", "nlpd"))
        covered = mean([s.coverage for s in scores])
        rows.append([method, mean_and_deviation(error), mean_and_deviation(density), covered])
    lines = mean_and_deviation([interpolation(outcome.problem) for outcome in outcomes])
    heading = ["method", "RMSE", "NLPD per point", "share in 95% intervals"]
    return [
        Table("Outages of unemployment", heading, [*rows, ["linear interpolation", lines, "", ""]])
    ]


def interpolation(problem: Problem) -> float:
    """The RMSE of straight lines between the ends of each outage."""
    x, y = merged(problem.test)[TARGET]
    return float(np.sqrt(np.mean((np.interp(x, *merged(problem.train)[TARGET]) - y) ** 2)))


EXPERIMENT = Experiment(
    name="outages",
    about="Unemployment with twelve outages of two years, beside three complete channels, in "
    "batches of twelve quarters.",
    problem=problem,
    methods={
        methods.OURS: methods.ours(model),
        methods.INDEPENDENT: methods.independent(channels()),
        methods.OFFLINE: methods.offline(trained),
    },
    pictures={"What the model knew": pictures.steps(5, 16)},
    more=tables,
)
