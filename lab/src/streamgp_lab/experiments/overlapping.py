"""Overlapping: ten batches, each overlapping the one before (the paper's Table 2)."""

import numpy as np

import streamgp as sgp
from streamgp_lab.datasets import toys
from streamgp_lab.experiments import methods, pictures, toy_methods
from streamgp_lab.experiments.experiment import Experiment, Options, Printed
from streamgp_lab.problem import Problem, split

STEPS = 10
OVERLAP = 0.5


def problem(options: Options) -> Problem:
    """Half of the rows in the last fifth of a stretch, chosen at random, are in the next batch."""
    data = toys.one_channel(options.seed, int(2000 * options.share))
    place = STEPS * np.arange(len(data.x)) / len(data.x)
    late = np.random.default_rng([options.seed, 1]).uniform(size=len(place)) < OVERLAP
    batch = np.where((place % 1 > 0.8) & late, place + 1, place).astype(int)
    parts = [np.flatnonzero(np.minimum(batch, STEPS - 1) == step) for step in range(STEPS)]
    return Problem(*split(*data, parts))


def model(seed: int) -> sgp.ContinualGP:
    return sgp.ContinualGP(sgp.Gaussian(), engine="dense", seed=seed)


_: None = None
PRINTED = Printed(
    "Table 2: overlapping",
    old=(1, 4, 8),
    unit=1e-2,
    rows={
        "y": [
            (13.26, _, _, _, 13.26),
            (11.70, 12.23, _, _, 23.94),
            (13.60, 12.26, _, _, 37.58),
            (12.63, 12.08, _, _, 50.37),
            (14.50, 12.07, 12.66, _, 64.93),
            (13.68, 12.04, 12.77, _, 79.38),
            (13.80, 12.24, 12.75, _, 92.86),
            (13.45, 12.03, 12.67, _, 106.21),
            (12.64, 12.09, 12.69, 13.78, 119.04),
            (12.84, 12.08, 12.71, 13.65, 131.93),
        ]
    },
)

EXPERIMENT = Experiment(
    name="overlapping",
    about="Ten batches of one channel. Each overlaps the stretch of the batch before.",
    problem=problem,
    methods={
        methods.OURS: methods.ours(model),
        **toy_methods.beside(lambda t: 2 * t + 2, "2t + 2"),
    },
    pictures={"What the model knew": pictures.steps(0, 4, 9)},
    printed=PRINTED,
)
