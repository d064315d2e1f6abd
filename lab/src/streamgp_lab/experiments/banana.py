"""Banana: two classes and two inputs, from left to right (the paper's Table 4)."""

import numpy as np

import streamgp as sgp
from streamgp.model.specification import Specification
from streamgp_lab.datasets import files
from streamgp_lab.experiments import methods, pictures
from streamgp_lab.experiments.experiment import Experiment, Options, Printed
from streamgp_lab.problem import Problem, split

STEPS = 4
TEST_SHARE = 0.3


def problem(options: Options) -> Problem:
    x, y = files.banana()
    generator = np.random.default_rng(options.seed)
    rows = generator.permutation(len(x))[: int(len(x) * options.share)]
    rows = rows[np.argsort(x[rows, 0])]
    test = generator.uniform(size=len(rows)) < TEST_SHARE
    parts = np.array_split(np.arange(len(rows)), STEPS)
    return Problem(*split(x[rows], y[rows], test, parts), note="5,300 rows from river.")


def model(seed: int) -> sgp.ContinualGP:
    return sgp.ContinualGP(sgp.Bernoulli(), seed=seed)


def trained(seed: int) -> sgp.ContinualGP:
    return sgp.ContinualGP(sgp.Bernoulli(), learning=sgp.VEM(rounds=20, evaluations=60), seed=seed)


def specification(seed: int) -> Specification:
    return Specification({"y": sgp.Bernoulli()}, [sgp.RBF(lengthscale=[0.5, 0.5])], seed=seed)


_: None = None
PRINTED = Printed(
    "Table 4: banana",
    old=(1, 2, 3),
    rows={
        "y": [
            (0.08, _, _, _, 0.08),
            (0.06, 0.09, _, _, 0.17),
            (0.13, 0.09, 0.07, _, 0.30),
            (0.09, 0.10, 0.07, 0.13, 0.39),
        ]
    },
)

EXPERIMENT = Experiment(
    name="banana",
    about="Two classes and two inputs, in four batches sorted by the first input.",
    problem=problem,
    methods={
        methods.OURS: methods.ours(model),
        methods.SPARSE: methods.sparse(sgp.Bernoulli(), lambda t: 50),
        methods.PAPER: methods.paper(specification, lambda t: t + 2),
        methods.HORIZON: methods.cannot("one input only"),
        methods.OFFLINE: methods.offline(trained),
        methods.EXACT: methods.GAUSSIAN_ONLY,
    },
    pictures={"What the model knew": pictures.maps(0, 1, 2, 3)},
    printed=PRINTED,
)
