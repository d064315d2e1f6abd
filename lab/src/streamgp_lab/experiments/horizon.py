"""Horizon: the infinite-horizon GP's toy classification, sample by sample (Figure 12).

A hundred labels along a line, sign(sinc(6 − x) + noise), a probit likelihood and a Matérn-3/2
kernel.
"""

import numpy as np

import streamgp as sgp
from streamgp_lab.baselines.core import Specification
from streamgp_lab.experiments import figures, methods
from streamgp_lab.experiments.problem import Entry, Experiment, Options, Problem

STOPS = (30, 90, 100)  # where the paper looks, and the end
NOISE = 0.1


def draw(x: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    return (np.sinc(6 - x) + NOISE * generator.normal(size=len(x)) > 0).astype(float)


def problem(options: Options) -> Problem:
    """Held out: labels drawn anew, half-way between the inputs."""
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


def trained(seed: int) -> sgp.ContinualGP:
    return sgp.ContinualGP(
        sgp.Bernoulli(link="probit"),
        latents=[sgp.Matern32()],
        learning=sgp.VEM(rounds=15, evaluations=60),
        seed=seed,
    )


def specification(seed: int) -> Specification:
    return Specification({"y": sgp.Bernoulli(link="probit")}, [sgp.Matern32()], seed)


def steady(problem: Problem, seed: int) -> methods.InfiniteHorizon:
    """With the hyperparameters that suit the whole stream."""
    offline = trained(seed)
    offline.update(problem.everything())
    return methods.steady(offline)


EXPERIMENT = Experiment(
    name="horizon",
    about="Yes or no along a line, in 100 one-sample updates.",
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
    figures={"What the model knew": figures.steps(0, 1)},
)
