"""Streaming: ten batches, each from a new stretch of the input (the paper's Table 1)."""

import numpy as np

import streamgp as sgp
from streamgp_lab.datasets import toys
from streamgp_lab.experiments import methods, pictures, toy_methods
from streamgp_lab.experiments.experiment import Experiment, Options, Printed
from streamgp_lab.problem import Problem, split

STEPS = 10


def problem(options: Options) -> Problem:
    data = toys.one_channel(options.seed, int(2000 * options.share))
    parts = np.array_split(np.arange(len(data.x)), STEPS)
    return Problem(*split(*data, parts))


def model(seed: int) -> sgp.ContinualGP:
    return sgp.ContinualGP(sgp.Gaussian(), engine="dense", seed=seed)


_: None = None
PRINTED = Printed(
    "Table 1: streaming",
    old=(1, 4, 8),
    unit=1e-2,
    rows={
        "y": [
            (13.13, _, _, _, 13.13),
            (12.50, 13.24, _, _, 25.74),
            (12.54, 13.29, _, _, 38.48),
            (11.59, 13.33, _, _, 52.26),
            (11.34, 13.28, 11.34, _, 63.78),
            (11.56, 13.29, 11.33, _, 75.35),
            (12.71, 13.29, 11.34, _, 88.09),
            (11.92, 13.29, 11.34, _, 100.01),
            (13.55, 13.29, 11.34, 11.98, 113.60),
            (11.73, 13.30, 11.34, 11.97, 125.34),
        ]
    },
)

EXPERIMENT = Experiment(
    name="streaming",
    about="Ten batches of one channel, each from a new stretch of the input.",
    problem=problem,
    methods={
        methods.OURS: methods.ours(model),
        **toy_methods.beside(lambda t: 3 * t, "3t"),
    },
    pictures={"What the model knew": pictures.steps(0, 4, 9)},
    printed=PRINTED,
)
