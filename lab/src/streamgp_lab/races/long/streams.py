"""Streams of a Matérn-3/2 process, the models that learn them, and the clock."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float

import streamgp as sgp
from streamgp_lab.baselines.smoother import Matern, path

TRUTH = Matern(lengthscale=1.0, variance=1.0, noise=0.3)
CHAIN, DENSE = "chain", "dense"
_ROWS, _HELD_OUT = 10, 2  # per lengthscale

_Result = TypeVar("_Result")


class Stream(NamedTuple):
    """Rows in the order of time, and held-out times between them, in that order too."""

    x: Float[np.ndarray, " N"]
    y: Float[np.ndarray, " N"]
    at: Float[np.ndarray, " K"]
    f: Float[np.ndarray, " K"]
    y_at: Float[np.ndarray, " K"]


def stream(length: float, seed: int = 0) -> Stream:
    """Times at random, ten to a lengthscale; two more are held out."""
    generator = np.random.default_rng(seed)
    count = round(_ROWS * length)
    x = np.sort(generator.uniform(0, length, count))
    at = np.sort(generator.uniform(0, length, round(_HELD_OUT * length)))
    times = np.concatenate([x, at])
    order = np.argsort(times)
    f = np.zeros(len(times))
    f[order] = path(times[order], TRUTH, generator)
    y = f + TRUTH.noise * generator.normal(size=len(f))
    return Stream(x, y[:count], at, f[count:], y[count:])


def known_model(engine: str) -> sgp.ContinualGP:
    """A model that has the true hyperparameters and keeps them."""
    return sgp.ContinualGP(
        sgp.Gaussian(sgp.fixed(TRUTH.noise)),
        latents=sgp.Matern32(sgp.fixed(TRUTH.lengthscale), sgp.fixed(TRUTH.variance)),
        learning=None, scale=False, mean=None, engine=engine,
    )  # fmt: skip


def learning_model(engine: str) -> sgp.ContinualGP:
    """A model that learns them, from where it starts by itself. Its level is the true one, zero."""
    return sgp.ContinualGP(
        sgp.Gaussian(), latents=sgp.Matern32(), mean=None, scale={"y": (0.0, 1.0)}, engine=engine
    )


def learned(model: sgp.ContinualGP) -> Matern:
    """What a model of one channel has learned."""
    said: dict[str, Any] = model.hyperparameters
    kernel, channel = said["latents"][0], said["channels"]["y"]
    return Matern(kernel["lengthscale"], kernel["variance"], channel["noise"])


def timed(work: Callable[[], _Result]) -> tuple[float, _Result]:
    """CPU seconds of this process, and what came out."""
    begin = time.process_time()
    result = work()
    return time.process_time() - begin, result
