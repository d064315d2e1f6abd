"""Heterogeneous: a real, a binary, a count and a categorical channel that share two functions.

The paper promises such an experiment and has none. Channels come one at a time. The real one is
never seen between 0.4 and 0.6, where the others are: what they
know of the functions must fill its gap.
"""

import numpy as np
from scipy.special import expit, softmax

import streamgp as sgp
from streamgp.baselines.core import Specification
from streamgp.experiments import figures, methods
from streamgp.experiments.problem import Data, Experiment, Options, Problem

STEPS = 4
ROWS = {"real": 300, "binary": 600, "count": 300, "category": 300}
GAP = (0.4, 0.6)
TEST_SHARE = 0.3


def functions(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.sin(2 * np.pi * 1.5 * x), np.cos(2 * np.pi * (x + 0.6 * x**2))


def draw(name: str, x: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Observations of a channel: each mixes the two functions in its own way."""
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
    for t in range(STEPS):
        for name, rows in ROWS.items():
            low, high = t / STEPS, (t + 1) / STEPS
            x = np.sort(generator.uniform(low, high, int(rows * options.share / STEPS)))
            y = draw(name, x, generator)
            if name == "real":
                x, y = (part[(x < GAP[0]) | (x > GAP[1])] for part in (x, y))
            held_out = generator.uniform(size=len(x)) < TEST_SHARE
            train.append({name: (x[~held_out], y[~held_out])})
            test.append({name: (x[held_out], y[held_out])})
    x = np.sort(generator.uniform(*GAP, 100))
    return Problem(train, test, gap={"real": (x, draw("real", x, generator))})


def channels() -> dict[str, sgp.Likelihood]:
    return {
        "real": sgp.Gaussian(),
        "binary": sgp.Bernoulli(),
        "count": sgp.Poisson(),
        "category": sgp.Categorical(3),
    }


def model(seed: int) -> sgp.ContinualGP:
    return sgp.ContinualGP(channels(), latents=2, seed=seed)


def trained(seed: int) -> sgp.ContinualGP:
    learning = sgp.VEM(rounds=15, evaluations=60)
    return sgp.ContinualGP(channels(), latents=2, learning=learning, seed=seed)


EXPERIMENT = Experiment(
    name="heterogeneous",
    about="Real, binary, count and categorical channels of two functions, one channel at a time; "
    "the real channel has a gap that the others cover.",
    problem=problem,
    methods={
        methods.OURS: methods.ours(model),
        methods.INDEPENDENT: methods.independent(channels()),
        methods.SPARSE: methods.ONE_CHANNEL_ONLY,
        methods.PAPER: methods.paper(
            lambda seed: Specification(channels(), [sgp.RBF(lengthscale=0.1)] * 2, seed),
            lambda t: 4 * ((t + 3) // 4),
        ),
        methods.HORIZON: methods.ONE_CHANNEL_ONLY,
        methods.OFFLINE: methods.offline(trained),
        methods.EXACT: methods.GAUSSIAN_ONLY,
    },
    figures={
        "What the model knew": figures.steps(7, 15),
        "A gap of the real channel": figures.gap(methods.INDEPENDENT),
    },
)
