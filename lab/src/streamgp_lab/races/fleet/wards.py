"""Wards: many keys with streams of one kind, and fleets of models that know a little of each."""

import copy
import time
from collections.abc import Callable, Hashable
from typing import NamedTuple, TypeVar

import numpy as np
import pandas as pd
from jaxtyping import Float

import streamgp as sgp
from streamgp_lab.baselines.smoother import Matern, path

TRUTH = Matern(lengthscale=3.0, variance=4.0, noise=0.7)
FIRST, ROWS = 20, 5  # rows of the first batch, and of each later one
PER_LENGTHSCALE = 5.0  # rows
_PROTOTYPES = 20  # models that learn; all keys begin as copies of them

_Result = TypeVar("_Result")
Batch = tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]


class Ward(NamedTuple):
    """Batches of all keys, one after the other: inputs and values, (K, n) each."""

    batches: list[Batch]

    @property
    def keys(self) -> int:
        return len(self.batches[0][0])

    def table(self, number: int) -> pd.DataFrame:
        """A batch of all keys as a table, in random order."""
        x, y = self.batches[number]
        key = np.repeat(np.arange(self.keys), x.shape[1])
        order = np.random.default_rng(number).permutation(len(key))
        frame = {"key": key[order], "time": x.ravel()[order], "y": y.ravel()[order]}
        return pd.DataFrame(frame)


def ward(keys: int, batches: int, seed: int = 0, *, apart: bool = False) -> Ward:
    """Streams of Matérn-3/2 paths with levels of their own.

    As many paths are drawn as there are prototypes. The noise of later rows is each key's own, and
    with `apart` that of the first rows too.
    """
    generator = np.random.default_rng(seed)
    count = FIRST + batches * ROWS
    span = count / PER_LENGTHSCALE * TRUTH.lengthscale
    times, values = [], []
    for _ in range(min(keys, _PROTOTYPES)):
        t = np.sort(generator.uniform(0, span, count))
        times.append(t)
        values.append(75 + 8 * generator.normal() + path(t, TRUTH, generator))
    which = np.arange(keys) % len(times)
    noise = TRUTH.noise * generator.normal(size=(keys, count))
    if not apart:
        noise[:, :FIRST] = noise[: len(times), :FIRST][which]
    x, y = np.array(times)[which], np.array(values)[which] + noise
    cuts = [FIRST + ROWS * i for i in range(batches)]
    parts = zip(np.split(x, cuts, axis=1), np.split(y, cuts, axis=1), strict=True)
    return Ward(list(parts))


def models(
    data: Ward, keys: int, template: sgp.ContinualGP, *, apart: bool = False
) -> dict[Hashable, sgp.ContinualGP]:
    """Models of the first keys that know their first batch: copies of those that learned it.

    Args:
        data: The ward.
        keys: How many.
        template: What they begin as.
        apart: Whether copies have no memory in common.
    """
    x, y = data.batches[0]
    learned = []
    for k in range(min(keys, _PROTOTYPES)):
        model = copy.copy(template)
        model.update(x[k], y[k])
        learned.append(model)
    each = copy.deepcopy if apart else copy.copy
    return {k: each(learned[k % len(learned)]) for k in range(keys)}


def fleet_of(members: dict[Hashable, sgp.ContinualGP], template: sgp.ContinualGP) -> sgp.Fleet:
    """A fleet of these models."""
    fleet = sgp.Fleet(template)
    for key, model in members.items():
        fleet.add(key, model)
    return fleet


def timed(work: Callable[[], _Result]) -> tuple[float, _Result]:
    """CPU seconds, and the result."""
    begin = time.process_time()
    result = work()
    return time.process_time() - begin, result
