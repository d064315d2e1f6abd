"""Synchronous: two channels that mix two functions, both in every batch (the paper's Table 5)."""

import numpy as np

import streamgp as sgp
from streamgp.model.specification import Specification
from streamgp_lab.datasets import toys
from streamgp_lab.experiments import methods, pictures
from streamgp_lab.experiments.experiment import Entry, Experiment, Options, Printed
from streamgp_lab.problem import Data, Problem, split

STEPS = 5


def stretches(options: Options) -> list[tuple[Data, Data]]:
    """Training and held-out data of both channels, for one stretch of the input after the other."""
    channels = {}
    for name, data in toys.two_channels(options.seed, int(2000 * options.share)).items():
        parts = np.array_split(np.arange(len(data.x)), STEPS)
        channels[name] = split(*data, parts, name)
    return [
        ({n: train[t][n] for n, (train, _) in channels.items()},
         {n: test[t][n] for n, (_, test) in channels.items()})
        for t in range(STEPS)
    ]  # fmt: skip


def problem(options: Options) -> Problem:
    train, test = zip(*stretches(options), strict=True)
    return Problem(list(train), list(test))


def channels() -> dict[str, sgp.Likelihood]:
    return {name: sgp.Gaussian() for name in toys.NOISES}


def model(seed: int) -> sgp.ContinualGP:
    """All weights, noises and lengthscales are learned."""
    return sgp.ContinualGP(channels(), latents=2, engine="dense", seed=seed)


def trained(seed: int) -> sgp.ContinualGP:
    return sgp.ContinualGP(
        channels(), latents=2, engine="dense", learning=sgp.VEM(evaluations=200), seed=seed
    )


def told_the_noise(seed: int) -> Specification:
    """The noises of the paper. Its mixing weights are the true ones; here they are learned."""
    noises = {name: sgp.Gaussian(sgp.fixed(noise)) for name, noise in toys.NOISES.items()}
    return Specification(noises, [sgp.RBF(lengthscale=0.05)] * 2, seed=seed)


def methods_of(rule: methods.Rule) -> dict[str, Entry]:
    return {
        methods.OURS: methods.ours(model),
        methods.INDEPENDENT: methods.independent(channels()),
        methods.SPARSE: methods.ONE_CHANNEL_ONLY,
        methods.PAPER: methods.paper(told_the_noise, rule),
        methods.HORIZON: methods.ONE_CHANNEL_ONLY,
        methods.OFFLINE: methods.offline(trained),
        methods.EXACT: methods.exact(
            lambda seed: Specification(channels(), 2, seed=seed), evaluations=12
        ),
    }


_: None = None
PRINTED = Printed(
    "Table 5: synchronous",
    old=(1,),
    rows={
        "first": [
            (0.19, _, 0.19), (0.18, 0.19, 0.38), (0.19, 0.19, 0.58),
            (0.17, 0.19, 0.75), (0.16, 0.19, 0.92),
        ],
        "second": [
            (0.30, _, 0.30), (0.35, 0.32, 0.67), (0.40, 0.31, 1.07),
            (0.33, 0.31, 1.41), (0.35, 0.31, 1.76),
        ],
    },
)  # fmt: skip

EXPERIMENT = Experiment(
    name="synchronous",
    about="Two channels of different noise that mix two functions. Every batch has both.",
    problem=problem,
    methods=methods_of(lambda t: 5 * t),
    pictures={"What the model knew": pictures.steps(0, 2, 4)},
    printed=PRINTED,
)
