"""Sunspots, month by month: a stream that never ends and never repeats itself.

Monthly mean sunspot numbers since 1749 (from statsmodels), as log(1 + y) less its mean. The first
319 months warm a model up; then 1 000 months arrive one by one.
"""

import re
from importlib import resources
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

import streamgp as sgp

WARM_UP = 319
STREAM = 1000


class Solar(NamedTuple):
    """The whole series; inputs run from 0 to 100 over it."""

    x: Float[np.ndarray, " N"]
    y: Float[np.ndarray, " N"]


class Outcome(NamedTuple):
    """What the stream showed."""

    model: sgp.ContinualGP
    scores: Float[np.ndarray, " N"]  # log predictive density of each month before it was learned
    warm_up_first: float  # NLPD of the warm-up months when they had just been learned
    warm_up_now: float  # and at the end
    rmse: float  # over everything seen, at the end


def load() -> Solar:
    """The monthly series out of the file that statsmodels ships."""
    folder = resources.files("statsmodels.datasets.sunspots")
    text = (folder / "src" / "sunspots_monthly.dat").read_text()
    return prepared(np.concatenate([_year(line) for line in text.splitlines()]))


def prepared(numbers: Float[np.ndarray, " N"]) -> Solar:
    """Monthly numbers as the paper takes them."""
    y = np.log1p(numbers)
    return Solar(np.linspace(0, 100, len(y)), y - y.mean())


def _year(line: str) -> Float[np.ndarray, " _"]:
    """The twelve (or, in the last year, fewer) numbers of a line of the table; else none."""
    match = re.match(r"^(1[789]|20)\d\d\s+(.*)$", line)
    return np.array(match[2].split(), float) if match else np.zeros(0)


def model() -> sgp.ContinualGP:
    """A rough kernel, as sunspots are anything but smooth, and so many points."""
    return sgp.ContinualGP(
        sgp.Gaussian(),
        latents=[sgp.Matern32()],
        inducing=sgp.Adaptive(budget=512),
        learning=sgp.VEM(every=5),
    )


def run(data: Solar, gp: sgp.ContinualGP, *, progress: bool = False) -> Outcome:
    """Warm up, then take 1 000 months one by one."""
    warm, stream = slice(0, WARM_UP), slice(WARM_UP, WARM_UP + STREAM)
    gp.update(data.x[warm], data.y[warm])
    first = _nlpd(gp, data, warm)
    report = gp.update_many(data.x[stream], data.y[stream], progress=progress)
    seen = slice(0, WARM_UP + STREAM)
    residual = gp.predict(data.x[seen]).mean - data.y[seen]
    return Outcome(
        gp,
        report.log_predictive_rows["y"],
        first,
        _nlpd(gp, data, warm),
        float(np.sqrt(np.mean(residual**2))),
    )


def _nlpd(gp: sgp.ContinualGP, data: Solar, part: slice) -> float:
    return -float(np.mean(gp.predict(data.x[part]).log_density(data.y[part])))
