"""Currency: the US dollar in euros, day by day, learned once a year (the paper's Figure 5)."""

import numpy as np

import streamgp as sgp
from streamgp_lab.baselines.core import Specification
from streamgp_lab.experiments import figures, methods
from streamgp_lab.experiments.problem import Experiment, Options, Problem, split
from streamgp_lab.experiments.sources import files

BEGIN, END = "2015-01-01", "2018-12-31"
YEARS = 4
TEST_SHARE = 0.3


def problem(options: Options) -> Problem:
    days, rates = files.exchange_rates(BEGIN, END)
    days, rates = days[: int(len(days) * options.share)], rates[: int(len(rates) * options.share)]
    x = (days - days[0]).astype(float)
    test = np.random.default_rng(options.seed).uniform(size=len(x)) < TEST_SHARE
    parts = np.array_split(np.arange(len(x)), YEARS)
    note = (
        f"European Central Bank, {len(x)} days from {days[0]} to {days[-1]}; days from the first."
    )
    return Problem(*split(x, rates, test, parts), note=note)


def model(seed: int) -> sgp.ContinualGP:
    return sgp.ContinualGP(sgp.Gaussian(), latents=[sgp.Matern32()], seed=seed)


def trained(seed: int) -> sgp.ContinualGP:
    return sgp.ContinualGP(
        sgp.Gaussian(), latents=[sgp.Matern32()], learning=sgp.VEM(evaluations=200), seed=seed
    )


def told_the_noise(seed: int) -> Specification:
    """The paper's noise and kernel; its M is 20 and grows by 20 a year."""
    channels = {"y": sgp.Gaussian(sgp.fixed(1e-2))}
    return Specification(channels, [sgp.Matern32(lengthscale=30.0)], seed)


EXPERIMENT = Experiment(
    name="currency",
    about="Four years of the US dollar in euros, a batch a year, with a Matérn-3/2 kernel.",
    problem=problem,
    methods={
        methods.OURS: methods.ours(model),
        methods.SPARSE: methods.sparse(sgp.Gaussian(), lambda t: 20 * t, sgp.Matern32()),
        methods.PAPER: methods.paper(told_the_noise, lambda t: 20 * t),
        methods.HORIZON: methods.NOT_EQUALLY_SPACED,
        methods.OFFLINE: methods.offline(trained),
        methods.EXACT: methods.exact(
            lambda seed: Specification({"y": sgp.Gaussian()}, [sgp.Matern32()], seed)
        ),
    },
    figures={"What the model knew": figures.steps(0, 1, 2, 3)},
)
