"""Start: the time to import streamgp, and the first update of a process."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from streamgp_lab.progress import Bar
from streamgp_lab.races.benchmark import Benchmark, Settings
from streamgp_lab.reporting.claims import Claim
from streamgp_lab.reporting.report import Report
from streamgp_lab.reporting.tables import Table, number

_PROGRAM = """
import sys, time
import numpy as np
begin = time.perf_counter()
import jax, jax.numpy
jax_there = time.perf_counter()
import streamgp as sgp
imported = time.perf_counter()
sgp.use_compilation_cache(sys.argv[1])
x = np.linspace(0, 1, 134)
sgp.ContinualGP(sgp.Gaussian()).update(x, np.sin(9 * x))
print(jax_there - begin, imported - jax_there, time.perf_counter() - imported)
"""


class Start(NamedTuple):
    """Wall seconds to import jax, to import streamgp after it, and of the first update."""

    jax: float
    streamgp: float
    update: float


Starts = dict[str, list[Start]]


def measure(settings: Settings, bar: Bar) -> Iterator[Report]:
    """Start new processes, with an empty and with a filled cache of compiled programs."""
    starts: Starts = {"cold cache": [], "warm cache": []}
    bar.expect(settings.repeats * len(starts))
    for _ in range(settings.repeats):
        with tempfile.TemporaryDirectory() as cache:
            for name, found in starts.items():
                bar.show(name)
                found.append(_start(cache))
                bar.advance()
    yield report(starts)


def _start(cache: str) -> Start:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, cache], capture_output=True, text=True, check=True
    )
    return Start(*map(float, done.stdout.split()))


def report(starts: Starts) -> Report:
    rows = [[name, *map(number, _median(found))] for name, found in starts.items()]
    heading = ["cache", "import jax, s", "import streamgp after jax, s", "first update, s"]
    repeats = len(next(iter(starts.values())))
    table = Table(f"Wall time of a new process, runs: {repeats}", heading, rows)
    return Report("start", BENCHMARK.about, "", [table, claims(starts)], {"measured": starts})


def claims(starts: Starts) -> list[Claim]:
    cold, warm = _median(starts["cold cache"]), _median(starts["warm cache"])
    limits = [
        ("importing streamgp after jax takes at most 1.5 s", cold.streamgp, 1.5),
        ("the first update with a cold cache takes at most 8 s", cold.update, 8.0),
        ("the first update with a warm cache takes at most 3 s", warm.update, 3.0),
    ]
    return [Claim(sentence, f"{took:.2f} s", took <= most) for sentence, took, most in limits]


def _median(starts: list[Start]) -> Start:
    return Start(*np.median(np.array(starts), axis=0))


BENCHMARK = Benchmark(
    "start", "The time to import streamgp, and the first update of a process.", measure
)
