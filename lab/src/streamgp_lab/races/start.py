"""Start: importing, and the first update of a process, with and without compiled programs kept."""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

_PROGRAM = """
import sys, time
import numpy as np
begin = time.perf_counter()
import jax, jax.numpy
jax_there = time.perf_counter()
import streamgp as sgp
imported = time.perf_counter()
if len(sys.argv) > 1:
    sgp.use_compilation_cache(sys.argv[1])
x = np.linspace(0, 1, 134)
sgp.ContinualGP(sgp.Gaussian()).update(x, np.sin(9 * x))
print(jax_there - begin, imported - jax_there, time.perf_counter() - imported)
"""


class Start(NamedTuple):
    """Wall seconds: of importing jax, of importing streamgp after it, and of the first update."""

    jax: float
    streamgp: float
    update: float


def starts(repeats: int, told: Callable[[str], None]) -> dict[str, list[Start]]:
    """Fresh processes: without a cache of compiled programs, and with one that is filled."""
    found: dict[str, list[Start]] = {"cold cache": [], "warm cache": []}
    for _ in range(repeats):
        told("first updates")
        with tempfile.TemporaryDirectory() as cache:
            found["cold cache"].append(_start(cache))
            found["warm cache"].append(_start(cache))
    return found


def _start(*arguments: str) -> Start:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *arguments], capture_output=True, text=True, check=True
    )
    return Start(*map(float, done.stdout.split()))


def median(starts: list[Start]) -> Start:
    return Start(*np.median(np.array(starts), axis=0))
