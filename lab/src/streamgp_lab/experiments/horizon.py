"""Horizon: the toy classification of the infinite-horizon GP (the paper's Figure 12).

A hundred labels, sign(sinc(6 − x) + noise), arrive one at a time. The likelihood is probit and the
kernel is Matérn-3/2.
"""

from typing import Any

import numpy as np

import streamgp as sgp
from streamgp.model.specification import Specification
from streamgp_lab.experiments import methods, pictures
from streamgp_lab.experiments.experiment import Entry, Experiment, Options
from streamgp_lab.problem import Problem

STOPS = (30, 90, 100)  # the steps that the paper shows, and the end
NOISE = 0.1


def draw(x: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    return (np.sinc(6 - x) + NOISE * generator.normal(size=len(x)) > 0).astype(float)


def problem(options: Options) -> Problem:
    """The held-out labels are new draws, half-way between the inputs."""
    generator = np.random.default_rng(options.seed)
    x = np.linspace(0, 6, STOPS[-1])
    between = x + 0.5 * (x[1] - x[0])
    y, other = draw(x, generator), draw(between, generator)
    stops = [int(stop * options.share) for stop in STOPS]
    parts = np.split(np.arange(stops[-1]), stops[:-1])
    train = [{"y": (x[rows], y[rows])} for rows in parts]
    return Problem(train, [{"y": (between[r], other[r])} for r in parts], single=0)


def model(seed: int) -> sgp.ContinualGP:
    likelihood = sgp.Bernoulli(link="probit")
    return sgp.ContinualGP(likelihood, latents=[sgp.Matern32()], seed=seed)


def trained(seed: int, **settings: Any) -> sgp.ContinualGP:
    return sgp.ContinualGP(
        sgp.Bernoulli(link="probit"),
        latents=[sgp.Matern32()],
        learning=sgp.VEM(rounds=15, evaluations=60),
        seed=seed,
        **settings,
    )


def specification(seed: int) -> Specification:
    return Specification({"y": sgp.Bernoulli(link="probit")}, [sgp.Matern32()], seed=seed)


def steady(problem: Problem, seed: int) -> methods.InfiniteHorizon:
    """Its hyperparameters are those of the offline model, without a learned level."""
    offline = trained(seed, mean=None)
    offline.update(problem.everything())
    return methods.steady(offline)


EXPERIMENT = Experiment(
    name="horizon",
    about="Two classes and one input, in 100 updates of one sample each.",
    problem=problem,
    methods={
        methods.OURS: methods.ours(model),
        methods.SPARSE: methods.sparse(
            sgp.Bernoulli(link="probit"), lambda t: 3 + t // 8, sgp.Matern32()
        ),
        methods.PAPER: methods.paper(specification, lambda t: 3 + t // 8, rounds=1, iterations=20),
        methods.HORIZON: Entry(steady),
        methods.OFFLINE: methods.offline(trained),
        methods.EXACT: methods.GAUSSIAN_ONLY,
    },
    pictures={"What the model knew": pictures.steps(0, 1)},
)
