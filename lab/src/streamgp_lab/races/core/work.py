"""Evidence and gradient of rows over time, in a process of its own.

    python work.py PASS COUNT ...

PASS is `core`, the compiled core of this version, or `chain`, the passes in NumPy of versions that
keep sums over pairs of states, so that PYTHONPATH may point at one of them. It prints CPU seconds
by what was done, as JSON.
"""

import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

_LEAST, _MOST, _ENOUGH = 3, 200, 1.0  # repeats at least and at most, and seconds that suffice
_STEP, _NOISE = 0.1, 0.3
SIZES = (6, 14, 22, 38, 74)
_ROWS = 10_000  # of streams whose states differ in size
SPACINGS = ("grid", "irregular")
SEASONS = ("fixed", "evolving")
PARTS = ("evidence and gradient", "marginals")


def case(spacing: str, count: int) -> str:
    """The name of the default kernel with its level on so many rows."""
    return f"{spacing}, {count:,} rows"


def sized(part: str, season: str, spacing: str, size: int) -> str:
    """The name of what a row costs with states of that size."""
    return f"{part}, {season} season, {spacing}, d = {size}"


def chain(counts: list[int]) -> dict[str, float]:
    """By the passes over a chain that an M step of such a version makes."""
    from streamgp.inference.chain.evidence import Past, evidence
    from streamgp.inference.chain.segments import joined

    import streamgp as sgp

    found = {}
    for spacing in SPACINGS:
        for count in counts:
            model = sgp.ContinualGP(
                sgp.Gaussian(noise=_NOISE), latents=[_kernel()], learning=None, scale=False
            )
            model.update(*_data(spacing, count))
            state: Any = model.state
            past = Past(joined(state.segments), state.totals)
            found[case(spacing, count)] = _seconds(
                lambda past=past, state=state: evidence(past, state.model)
            )
    return found


def core(counts: list[int]) -> dict[str, float]:
    """By the compiled core, and what a row costs for states of several sizes."""
    found = {}
    for spacing in SPACINGS:
        for count in counts:
            states, rows = _states(_kernel()), _rows(spacing, count)
            found[case(spacing, count)] = _seconds(
                lambda states=states, rows=rows: states.evidence(rows)
            )
        rows = _rows(spacing, _ROWS)
        for size in SIZES:
            for season in SEASONS:
                states = _states(_kernel((size - 6) // 2, season))
                works = (states.evidence, states.smoothed)
                for part, work in zip(PARTS, works, strict=True):
                    seconds = _seconds(lambda work=work, rows=rows: work(rows))
                    found[sized(part, season, spacing, size)] = seconds / _ROWS
    return found


def _kernel(cosines: int = 0, season: str = "fixed") -> Any:
    """The default over time: a fast, a medium and a slow part; and so many waves of a season."""
    from streamgp import Matern12, Matern32, Matern52, kernels

    kernel: Any = Matern12(0.5, 0.2) + Matern32(1.5, 0.6) + Matern52(5.0, 0.8)
    for number in range(1, cosines + 1):
        wave: Any = kernels.Cosine(50.0 / number, 0.5 / number**2)
        kernel = kernel + (wave * Matern12(200.0, 1.0) if season == "evolving" else wave)
    return kernel


def _states(kernel: Any) -> Any:
    from streamgp.inference.over_time.law import Law
    from streamgp.inference.over_time.states import States

    parts = kernel.state_space()
    level = np.array([[100.0]])
    return States(Law(parts, (0,) * len(parts), 1, 0.0), np.ones((1, 1)), level)


def _rows(spacing: str, count: int) -> Any:
    from streamgp.inference.over_time.states import Rows

    x, y = _data(spacing, count)
    noise, output = np.full(count, _NOISE**2), np.zeros(count, int)
    return Rows(x, y, noise, output, np.ones((count, 1)))


def _data(spacing: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(count)
    x = _STEP * np.arange(count)
    if spacing == "irregular":
        x = np.sort(rng.uniform(0, _STEP * count, count))
    return x, np.sin(x) + _NOISE * rng.normal(size=count)


def _seconds(work: Callable[[], Any]) -> float:
    """The least of several CPU times, after one that does not count."""
    work()
    times: list[float] = []
    while len(times) < _LEAST or (len(times) < _MOST and sum(times) < _ENOUGH):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


PASSES = {"chain": chain, "core": core}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.stdout.write(json.dumps(PASSES[sys.argv[1]]([int(count) for count in sys.argv[2:]])))
