"""Heterogeneous: a real, a binary, a count and a categorical channel that share two functions.

The paper announces such an experiment but does not contain one. The first batch has all channels.
Later batches have one channel each. The real channel has a gap, where only the other channels tell
about the functions.
"""

from itertools import pairwise

import numpy as np
from scipy.special import expit, softmax

import streamgp as sgp
from streamgp.model.specification import Specification
from streamgp_lab.experiments import methods, pictures
from streamgp_lab.experiments.experiment import Experiment, Options
from streamgp_lab.problem import Data, Problem

EDGES = (0.0, 0.4, 0.6, 0.8, 1.0)  # where stretches of the input begin and end
ROWS = {"real": 400, "binary": 800, "count": 400, "category": 400}
GAP = (0.5, 0.75)
TEST_SHARE = 0.3


def functions(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.sin(2 * np.pi * 2.5 * x), np.cos(2 * np.pi * (x + 1.5 * x**2))


def draw(name: str, x: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Observations of a channel. Each channel mixes the two functions in its own way."""
    u, v = functions(x)
    if name == "real":
        return 3 * u + 2 * v + 0.3 * generator.normal(size=len(x))
    if name == "binary":
        return (generator.uniform(size=len(x)) < expit(2.5 * u - 2 * v)).astype(float)
    if name == "count":
        return generator.poisson(np.exp(1.5 + u + 0.3 * v)).astype(float)
    chances = softmax(np.stack([2 * v, 0.5 * u - v, -2 * u], axis=-1), axis=-1)
    return (np.cumsum(chances, axis=-1) < generator.uniform(size=(len(x), 1))).sum(-1).astype(float)


def problem(options: Options) -> Problem:
    generator = np.random.default_rng(options.seed)
    train: list[Data] = []
    test: list[Data] = []
    for low, high in pairwise(EDGES):
        learned, held_out = stretch(low, high, options.share, generator)
        together = low == EDGES[0]
        train += [learned] if together else [{name: part} for name, part in learned.items()]
        test += [held_out] if together else [{name: part} for name, part in held_out.items()]
    x = np.sort(generator.uniform(*GAP, 100))
    return Problem(train, test, gap={"real": (x, draw("real", x, generator))})


def stretch(
    low: float, high: float, share: float, generator: np.random.Generator
) -> tuple[Data, Data]:
    """Training and held-out data of all channels between two inputs."""
    learned, held_out = {}, {}
    for name, rows in ROWS.items():
        x = np.sort(generator.uniform(low, high, int(rows * (high - low) * share)))
        y = draw(name, x, generator)
        shown = (x < GAP[0]) | (x > GAP[1]) if name == "real" else np.ones(len(x), bool)
        test = generator.uniform(size=len(x)) < TEST_SHARE
        learned[name] = (x[shown & ~test], y[shown & ~test])
        held_out[name] = (x[shown & test], y[shown & test])
    return learned, held_out


def channels() -> dict[str, sgp.Likelihood]:
    return {
        "real": sgp.Gaussian(),
        "binary": sgp.Bernoulli(),
        "count": sgp.Poisson(),
        "category": sgp.Categorical(3),
    }


def model(seed: int) -> sgp.ContinualGP:
    return sgp.ContinualGP(channels(), engine="dense", seed=seed)


def trained(seed: int) -> sgp.ContinualGP:
    learning = sgp.VEM(rounds=15, evaluations=60)
    return sgp.ContinualGP(channels(), engine="dense", learning=learning, seed=seed)


EXPERIMENT = Experiment(
    name="heterogeneous",
    about="Real, binary, count and categorical channels of two functions, mostly one at a time. "
    "The real channel has a gap that the others cover.",
    problem=problem,
    methods={
        methods.OURS: methods.ours(model),
        methods.INDEPENDENT: methods.independent(channels()),
        methods.SPARSE: methods.ONE_CHANNEL_ONLY,
        methods.PAPER: methods.paper(
            lambda seed: Specification(channels(), [sgp.RBF(lengthscale=0.1)] * 3, seed=seed),
            lambda t: 6 + t,
            rounds=1,
            iterations=40,
        ),
        methods.HORIZON: methods.ONE_CHANNEL_ONLY,
        methods.OFFLINE: methods.offline(trained),
        methods.EXACT: methods.GAUSSIAN_ONLY,
    },
    pictures={
        "What the model knew": pictures.steps(0, 12),
        "A gap of the real channel": pictures.gap(methods.INDEPENDENT),
    },
)
