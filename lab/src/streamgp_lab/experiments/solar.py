"""Solar: sunspots month by month, a stream that never ends and never repeats itself.

Monthly mean sunspot numbers since 1749 (from statsmodels), as log(1 + y) less its mean. The first
319 months warm a model up; then 1,000 months arrive one by one (the paper's Figure 11).
"""

import re

import numpy as np
from jaxtyping import Float

import streamgp as sgp
from streamgp_lab.baselines.core import Specification
from streamgp_lab.experiments import figures, methods
from streamgp_lab.experiments.problem import Entry, Experiment, Options, Problem
from streamgp_lab.experiments.sources import files

WARM_UP = 319
STREAM = 1000


def load() -> Float[np.ndarray, " N"]:
    """The monthly numbers out of the file that statsmodels ships."""
    path = files.shipped("statsmodels", "datasets", "sunspots", "src", "sunspots_monthly.dat")
    return np.concatenate([_year(line) for line in path.read_text().splitlines()])


def _year(line: str) -> Float[np.ndarray, " _"]:
    """The twelve (or, in the last year, fewer) numbers of a line of the table; else none."""
    match = re.match(r"^(1[789]|20)\d\d\s+(.*)$", line)
    return np.array(match[2].split(), float) if match else np.zeros(0)


def problem(options: Options) -> Problem:
    """The months that were learned are also those that are scored: what is kept of them?"""
    numbers = load()
    y = np.log1p(numbers)
    x, y = np.linspace(0, 100, len(y)), y - y.mean()
    warm = int(WARM_UP * options.share)
    end = warm + int(STREAM * options.share)
    parts = [{"y": (x[:warm], y[:warm])}, {"y": (x[warm:end], y[warm:end])}]
    note = "Months 1749–2009 from statsmodels; inputs from 0 to 100. Scored on months learned."
    return Problem(parts, parts, single=1, note=note)


def model(seed: int, learning: sgp.VEM = sgp.VEM(every=5)) -> sgp.ContinualGP:  # noqa: B008
    """A rough kernel, as sunspots are anything but smooth, and so many points."""
    return sgp.ContinualGP(
        sgp.Gaussian(),
        latents=[sgp.Matern32()],
        inducing=sgp.Adaptive(budget=512),
        learning=learning,
        seed=seed,
    )


def trained(seed: int) -> sgp.ContinualGP:
    return model(seed, sgp.VEM(evaluations=200))


def specification(seed: int) -> Specification:
    return Specification({"y": sgp.Gaussian()}, [sgp.Matern32()], seed)


def told_the_noise(seed: int) -> Specification:
    """The paper's noise and start."""
    channels = {"y": sgp.Gaussian(sgp.fixed(1.0))}
    return Specification(channels, [sgp.RBF(lengthscale=0.5)], seed)


def steady(problem: Problem, seed: int) -> methods.InfiniteHorizon:
    """Hyperparameters by maximum likelihood on the warm-up."""
    warm = methods.Exact(specification(seed))
    warm.update(problem.train[0])
    return methods.steady(warm)


def hindsight(problem: Problem, seed: int) -> methods.Exact:
    """One that knew from the start which hyperparameters would suit the whole stream."""
    everything = methods.Exact(specification(seed))
    everything.update(problem.everything())
    return methods.Exact(specification(seed), start=everything.model, evaluations=0)


EXPERIMENT = Experiment(
    name="solar",
    about="319 months of sunspots to warm up, then 1,000 months one by one.",
    problem=problem,
    methods={
        methods.OURS: methods.ours(model),
        methods.SPARSE: methods.sparse(sgp.Gaussian(), lambda t: 60 + t // 8, sgp.Matern32()),
        methods.PAPER: methods.paper(
            told_the_noise, lambda t: 10 + t // 100, rounds=1, iterations=20
        ),
        methods.HORIZON: Entry(steady),
        "exact GP, the warm-up's hyperparameters": Entry(
            lambda _, seed: methods.Exact(specification(seed))
        ),
        "exact GP, hindsight": Entry(hindsight),
        methods.OFFLINE: methods.offline(trained),
        methods.EXACT: methods.exact(specification),
    },
    figures={"What the model knew": figures.steps(0, 1)},
    long=True,
)
