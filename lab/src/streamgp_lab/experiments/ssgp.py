"""SSGP: the toy regression of streaming sparse GPs, in three parts (the paper's Figure 13).

With `--data FOLDER`, where the folder has `reg_toy_x.txt` and `reg_toy_y.txt` of the authors of
streaming sparse GPs, these are the data. Otherwise other data of the same size, noise and range.
"""

import numpy as np

import streamgp as sgp
from streamgp.model.specification import Specification
from streamgp_lab.datasets import files
from streamgp_lab.experiments import methods, pictures
from streamgp_lab.experiments.experiment import Experiment, Options
from streamgp_lab.problem import Problem, split

STEPS = 3
TEST_SHARE = 0.2
POINTS = 3  # per part, as in the paper


def recording(options: Options) -> tuple[np.ndarray, np.ndarray, str]:
    inputs, values = (files.found(options.data, f"reg_toy_{part}.txt") for part in "xy")
    if inputs is not None and values is not None:
        return np.loadtxt(inputs), np.loadtxt(values), f"{inputs.name}, {values.name}"
    x = np.linspace(-1, 9, 150)
    noise = 0.3 * np.random.default_rng(options.seed).normal(size=150)
    y = np.sin(1.6 * x) + 0.6 * np.cos(3.1 * x) - 0.08 * (x - 4) + noise
    return x, y, "Stand-in: 150 samples of a sum of waves, noise 0.3."


def problem(options: Options) -> Problem:
    x, y, note = recording(options)
    test = np.random.default_rng([options.seed, 1]).uniform(size=len(x)) < TEST_SHARE
    parts = np.array_split(np.arange(len(x)), STEPS)
    return Problem(*split(x, y, test, parts), note=note)


def model(seed: int) -> sgp.ContinualGP:
    return sgp.ContinualGP(sgp.Gaussian(), engine="dense", seed=seed)


def few(seed: int) -> sgp.ContinualGP:
    """Three inducing points per part, moved by gradient, like the other methods."""
    rule = sgp.Refined(sgp.Growing(lambda t: POINTS * t))
    return sgp.ContinualGP(sgp.Gaussian(), inducing=rule, seed=seed)


def trained(seed: int) -> sgp.ContinualGP:
    return sgp.ContinualGP(
        sgp.Gaussian(), engine="dense", learning=sgp.VEM(evaluations=200), seed=seed
    )


def specification(seed: int) -> Specification:
    return Specification({"y": sgp.Gaussian()}, 1, seed=seed)


EXPERIMENT = Experiment(
    name="ssgp",
    about="A short series in three batches, with three inducing points per batch.",
    problem=problem,
    methods={
        methods.OURS: methods.ours(model),
        "streamgp, M = 3t": methods.ours(few),
        methods.SPARSE: methods.sparse(sgp.Gaussian(), lambda t: POINTS * t),
        methods.PAPER: methods.paper(specification, lambda t: POINTS * t),
        methods.HORIZON: methods.NOT_EQUALLY_SPACED,
        methods.OFFLINE: methods.offline(trained),
        methods.EXACT: methods.exact(specification),
    },
    pictures={"What the model knew": pictures.steps(0, 1, 2)},
)
