"""Silent: three channels of two functions, one of which has no data after the second batch.

Where it is silent, the other channels tell about the functions, and the weights that were learned
while it spoke tell what it would have said.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

import streamgp as sgp
from streamgp.model.specification import Specification
from streamgp_lab.experiments import heterogeneous, methods, more_tables, pictures
from streamgp_lab.experiments.experiment import Experiment, Options
from streamgp_lab.experiments.protocol import Outcome
from streamgp_lab.problem import Data, Problem, merged
from streamgp_lab.reporting.tables import Table

LEVELS = {"first": 0.0, "second": 4.0, "silent": -2.0}
STEPS, SPOKEN = 6, 2  # batches, and those with data of the silent channel
ROWS, TEST_SHARE = 60, 0.3
WEIGHT, NOISE = 2.0, 0.3  # standard deviations


def problem(options: Options) -> Problem:
    """Later held-out data of the silent channel are the gap."""
    generator = np.random.default_rng(options.seed)
    weights = WEIGHT * generator.normal(size=(len(LEVELS), 2))
    train, test = [], []
    for low, high in pairwise(np.linspace(0, 1, STEPS + 1)):
        learned, held_out = stretch(low, high, weights, options.share, generator)
        train.append(learned)
        test.append(held_out)
    later = merged(test[SPOKEN:])["silent"]
    for part in (train, test):
        part[SPOKEN:] = [_without_silent(batch) for batch in part[SPOKEN:]]
    return Problem(train, test, gap={"silent": later})


def stretch(
    low: float, high: float, weights: np.ndarray, share: float, generator: np.random.Generator
) -> tuple[Data, Data]:
    """Training and held-out data of all channels between two inputs."""
    learned, held_out = {}, {}
    for (name, level), own in zip(LEVELS.items(), weights, strict=True):
        x = np.sort(generator.uniform(low, high, int(ROWS * share)))
        f = level + own @ np.stack(heterogeneous.functions(x))
        y = f + NOISE * generator.normal(size=len(x))
        test = generator.permutation(len(x)) < TEST_SHARE * len(x)
        learned[name], held_out[name] = (x[~test], y[~test]), (x[test], y[test])
    return learned, held_out


def _without_silent(batch: Data) -> Data:
    return {name: part for name, part in batch.items() if name != "silent"}


def channels() -> dict[str, sgp.Likelihood]:
    return {name: sgp.Gaussian() for name in LEVELS}


def model(seed: int, latents: int = 2) -> sgp.ContinualGP:
    return sgp.ContinualGP(channels(), latents=latents, engine="dense", seed=seed)


def trained(seed: int, latents: int = 2) -> sgp.ContinualGP:
    learning = sgp.VEM(evaluations=200)
    return sgp.ContinualGP(
        channels(), latents=latents, engine="dense", learning=learning, seed=seed
    )


def tables(outcomes: Sequence[Outcome]) -> list[Table]:
    later = "The silent channel where it has no data, at the end"
    every = [more_tables.every_batch(outcomes, name) for name in LEVELS]
    return [*every, more_tables.gap(outcomes, "silent", later)]


EXPERIMENT = Experiment(
    name="silent",
    about="Three channels of two functions in six batches. One has data only in the first two; "
    "later the others have to tell what it would have said.",
    problem=problem,
    methods={
        methods.OURS: methods.ours(model),
        f"{methods.OURS}, three functions": methods.ours(lambda seed: model(seed, 3)),
        methods.OFFLINE: methods.offline(trained),
        f"{methods.OFFLINE}, three functions": methods.offline(lambda seed: trained(seed, 3)),
        methods.EXACT: methods.exact(
            lambda seed: Specification(channels(), 2, seed=seed), evaluations=100
        ),
    },
    pictures={"What the model knew": pictures.steps(1, 3, 5)},
    more=tables,
)
