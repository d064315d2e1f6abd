"""Incremental: ten batches, each from the whole input range (the paper's Table 3)."""

import numpy as np

import streamgp as sgp
from streamgp_lab.datasets import toys
from streamgp_lab.experiments import methods, pictures, toy_methods
from streamgp_lab.experiments.experiment import Experiment, Options, Printed
from streamgp_lab.problem import Problem, split

STEPS = 10


def problem(options: Options) -> Problem:
    data = toys.one_channel(options.seed, int(2000 * options.share))
    order = np.random.default_rng([options.seed, 1]).permutation(len(data.x))
    return Problem(*split(*data, [np.sort(part) for part in np.array_split(order, STEPS)]))


def model(seed: int) -> sgp.ContinualGP:
    return sgp.ContinualGP(sgp.Gaussian(), engine="dense", seed=seed)


_: None = None
PRINTED = Printed(
    "Table 3: incremental (the paper does not name the unit)",
    old=(1, 4, 8),
    rows={
        "y": [
            (3.17, _, _, _, 3.17),
            (2.58, 2.56, _, _, 5.14),
            (1.46, 1.22, _, _, 3.94),
            (1.95, 2.00, _, _, 7.90),
            (1.50, 1.45, 1.38, _, 7.16),
            (0.80, 0.77, 0.79, _, 4.93),
            (0.69, 0.66, 0.68, _, 4.88),
            (0.63, 0.66, 0.68, _, 5.43),
            (0.66, 0.65, 0.66, 0.62, 6.00),
            (0.63, 0.64, 0.66, 0.62, 6.65),
        ]
    },
)

EXPERIMENT = Experiment(
    name="incremental",
    about="Ten batches of one channel, each from the whole input range.",
    problem=problem,
    methods={
        methods.OURS: methods.ours(model),
        **toy_methods.beside(lambda t: 2 * t + 2, "2t + 2"),
    },
    pictures={"What the model knew": pictures.steps(0, 2, 6)},
    printed=PRINTED,
)
