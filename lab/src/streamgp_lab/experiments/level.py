"""Level: a series whose level moves after the first batch, and its forecast beyond the end.

Far from all data a forecast returns to the level of the channel. A level that is learned has moved
with the data. One that is not is still that of the first batch.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

import streamgp as sgp
from streamgp.model.specification import Specification
from streamgp_lab.experiments import methods, more_tables, pictures
from streamgp_lab.experiments.experiment import Experiment, Options
from streamgp_lab.experiments.protocol import Outcome, Run
from streamgp_lab.problem import Problem, split
from streamgp_lab.reporting.tables import Table

BATCH, STEPS = 60, 8  # months in a batch, and batches
MOVES = (60, 260)  # the months between which the level moves
LEVELS = (316.0, 372.0)  # before and after
SEASON, NOISE = 3.0, 0.3
AHEAD = 120  # months of the forecast
TEST_SHARE = 0.3


def truth(month: np.ndarray) -> np.ndarray:
    return np.interp(month, MOVES, LEVELS) + SEASON * np.sin(2 * np.pi * month / 12)


def problem(options: Options) -> Problem:
    """With a share of the data there are fewer months in a year, not fewer years."""
    generator = np.random.default_rng(options.seed)
    every = np.arange(0, STEPS * BATCH + AHEAD, 1 / options.share)
    y = truth(every) + NOISE * generator.normal(size=len(every))
    learned = every < STEPS * BATCH
    month, values = every[learned], y[learned]
    parts = np.split(np.arange(len(month)), np.searchsorted(month, BATCH * np.arange(1, STEPS)))
    test = generator.uniform(size=len(month)) < TEST_SHARE
    ahead = (every[~learned], y[~learned])
    return Problem(*split(month, values, test, parts), gap={"y": ahead})


def model(seed: int, **settings: Any) -> sgp.ContinualGP:
    return sgp.ContinualGP(sgp.Gaussian(), engine="dense", seed=seed, **settings)


def kernel() -> sgp.RBF:
    """It starts at a season. From a start at all years the season would be taken for noise."""
    return sgp.RBF(lengthscale=3.0)


def trained(seed: int) -> sgp.ContinualGP:
    return model(seed, latents=[kernel()], learning=sgp.VEM(evaluations=200))


def specification(seed: int) -> Specification:
    return Specification({"y": sgp.Gaussian()}, [kernel()], seed=seed)


def tables(outcomes: Sequence[Outcome]) -> list[Table]:
    more = {"forecast of the last year": _forecast, "half the width of its band": _width}
    caption = f"The forecast beyond the end, where the level is {LEVELS[1]:g}"
    return [more_tables.gap(outcomes, "y", caption, more)]


def _last_year(outcome: Outcome) -> np.ndarray:
    x = outcome.problem.gap["y"][0]
    return x[x > x[-1] - 12]


def _forecast(outcome: Outcome, run: Run) -> float:
    return float(np.mean(run.method.predict(_last_year(outcome), "y").mean))


def _width(outcome: Outcome, run: Run) -> float:
    low, high = run.method.predict(_last_year(outcome), "y").interval(0.95)
    return float(np.mean(high - low) / 2)


EXPERIMENT = Experiment(
    name="level",
    about="A yearly season whose level moves after the first batch, and its forecast for ten more "
    "years.",
    problem=problem,
    methods={
        methods.OURS: methods.ours(model),
        f"{methods.OURS}, level of the first batch": methods.ours(
            lambda seed: model(seed, mean=None)
        ),
        methods.OFFLINE: methods.offline(trained),
        methods.EXACT: methods.exact(specification),
    },
    pictures={"What the model knew": pictures.steps(0, 3, 7)},
    more=tables,
)
