"""Currency: the US dollar in euros, one batch per year (the paper's Figure 5)."""

import numpy as np

import streamgp as sgp
from streamgp.model.specification import Specification
from streamgp_lab.datasets import files
from streamgp_lab.experiments import methods, pictures
from streamgp_lab.experiments.experiment import Experiment, Options
from streamgp_lab.problem import Problem, split

BEGIN, END = "2015-01-01", "2018-12-31"
YEARS = 4
TEST_SHARE = 0.3


def problem(options: Options) -> Problem:
    days, rates = files.exchange_rates(BEGIN, END)
    days, rates = days[: int(len(days) * options.share)], rates[: int(len(rates) * options.share)]
    x = (days - days[0]).astype(float)
    test = np.random.default_rng(options.seed).uniform(size=len(x)) < TEST_SHARE
    parts = np.array_split(np.arange(len(x)), YEARS)
    dates = f"{len(x)} days from {days[0]} to {days[-1]}"
    note = f"European Central Bank, {dates}. The input counts days from the first."
    return Problem(*split(x, rates, test, parts), note=note)


def model(seed: int) -> sgp.ContinualGP:
    return sgp.ContinualGP(sgp.Gaussian(), latents=[sgp.Matern32()], seed=seed)


def trained(seed: int) -> sgp.ContinualGP:
    return sgp.ContinualGP(
        sgp.Gaussian(), latents=[sgp.Matern32()], learning=sgp.VEM(evaluations=200), seed=seed
    )


def told_the_noise(seed: int) -> Specification:
    """The noise and the kernel of the paper. Its M starts at 20 and grows by 20 per year."""
    channels = {"y": sgp.Gaussian(sgp.fixed(1e-2))}
    return Specification(channels, [sgp.Matern32(lengthscale=30.0)], seed=seed)


EXPERIMENT = Experiment(
    name="currency",
    about="Four years of the US dollar in euros, one batch per year, with a Matérn-3/2 kernel.",
    problem=problem,
    methods={
        methods.OURS: methods.ours(model),
        methods.SPARSE: methods.sparse(sgp.Gaussian(), lambda t: 20 * t, sgp.Matern32()),
        methods.PAPER: methods.paper(told_the_noise, lambda t: 20 * t),
        methods.HORIZON: methods.NOT_EQUALLY_SPACED,
        methods.OFFLINE: methods.offline(trained),
        methods.EXACT: methods.exact(
            lambda seed: Specification({"y": sgp.Gaussian()}, [sgp.Matern32()], seed=seed)
        ),
    },
    pictures={"What the model knew": pictures.steps(0, 1, 2, 3)},
)
