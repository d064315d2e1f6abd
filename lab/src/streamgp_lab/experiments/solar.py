"""Solar: monthly sunspots, one sample at a time (the paper's Figure 11).

The data are monthly mean sunspot numbers since 1749 (from statsmodels), as log(1 + y) minus its
mean. The first 319 months are one batch. Then 1,000 months arrive one by one.
"""

import re
from typing import Any

import numpy as np
from jaxtyping import Float

import streamgp as sgp
from streamgp.model.specification import Specification
from streamgp_lab.datasets import files
from streamgp_lab.experiments import methods, pictures
from streamgp_lab.experiments.experiment import Entry, Experiment, Options
from streamgp_lab.problem import Problem

WARM_UP = 319
STREAM = 1000


def load() -> Float[np.ndarray, " N"]:
    """The monthly numbers, from a file of statsmodels."""
    path = files.shipped("statsmodels", "datasets", "sunspots", "src", "sunspots_monthly.dat")
    return np.concatenate([_year(line) for line in path.read_text().splitlines()])


def _year(line: str) -> Float[np.ndarray, " _"]:
    """The numbers of one year: twelve, or fewer in the last year. No numbers for other lines."""
    match = re.match(r"^(1[789]|20)\d\d\s+(.*)$", line)
    return np.array(match[2].split(), float) if match else np.zeros(0)


def problem(options: Options) -> Problem:
    """The months that are learned are also the ones that are scored."""
    numbers = load()
    y = np.log1p(numbers)
    x, y = np.linspace(0, 100, len(y)), y - y.mean()
    warm = int(WARM_UP * options.share)
    end = warm + int(STREAM * options.share)
    parts = [{"y": (x[:warm], y[:warm])}, {"y": (x[warm:end], y[warm:end])}]
    note = "Months 1749–2009 from statsmodels, inputs from 0 to 100. Scored on the learned months."
    return Problem(parts, parts, single=1, note=note)


def model(seed: int, learning: sgp.VEM = sgp.VEM()) -> sgp.ContinualGP:  # noqa: B008 (frozen)
    """Sunspots are not smooth: the kernel is rough."""
    return sgp.ContinualGP(sgp.Gaussian(), latents=[sgp.Matern32()], learning=learning, seed=seed)


def trained(seed: int) -> sgp.ContinualGP:
    return model(seed, sgp.VEM(evaluations=200))


def specification(seed: int, **settings: Any) -> Specification:
    return Specification({"y": sgp.Gaussian()}, [sgp.Matern32()], seed=seed, **settings)


def told_the_noise(seed: int) -> Specification:
    """The noise and the initial lengthscale of the paper."""
    channels = {"y": sgp.Gaussian(sgp.fixed(1.0))}
    return Specification(channels, [sgp.RBF(lengthscale=0.5)], seed=seed)


def steady(problem: Problem, seed: int) -> methods.InfiniteHorizon:
    """Its hyperparameters are those of an exact GP of the first batch, without a learned level."""
    warm = methods.Exact(specification(seed, mean=None))
    warm.update(problem.train[0])
    return methods.steady(warm)


def hindsight(problem: Problem, seed: int) -> methods.Exact:
    """An exact GP that starts with the best hyperparameters for the whole stream."""
    everything = methods.Exact(specification(seed))
    everything.update(problem.everything())
    return methods.Exact(specification(seed), start=everything.model, evaluations=0)


EXPERIMENT = Experiment(
    name="solar",
    about="319 months of sunspots in one batch, then 1,000 months one by one.",
    problem=problem,
    methods={
        methods.OURS: methods.ours(model),
        "streamgp, no settings": methods.ours(
            lambda seed: sgp.ContinualGP(sgp.Gaussian(), seed=seed)
        ),
        methods.SPARSE: methods.sparse(sgp.Gaussian(), lambda t: 60 + t // 8, sgp.Matern32()),
        methods.PAPER: methods.paper(
            told_the_noise, lambda t: 10 + t // 100, rounds=1, iterations=20
        ),
        methods.HORIZON: Entry(steady),
        "exact GP, hyperparameters of the first batch": Entry(
            lambda _, seed: methods.Exact(specification(seed))
        ),
        "exact GP, hyperparameters of the whole stream": Entry(hindsight),
        methods.OFFLINE: methods.offline(trained),
        methods.EXACT: methods.exact(specification),
    },
    pictures={"What the model knew": pictures.steps(0, 1)},
    long=True,
    drawn=False,
)
