"""Speed: first updates, one more row, single updates that learn, and two channels in batches."""

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import streamgp as sgp
from streamgp_lab.races.figures import (
    Bar,
    Figures,
    cpu_seconds,
    kalman_step_seconds,
    scaled,
    usual_seconds,
)

_FIRST = "first update of 300 rows, CPU ms"
_ROW = "one more row, nothing learned, Kalman steps"
_CALLS = "one more row, Python calls"
_FILES = "one more row, files of the package"
_MANY = "`update_many`, one row, Kalman steps"
_LONGEST = "4,000 single updates with learning: the longest, CPU ms"
_ALL = "4,000 single updates with learning: all, CPU s"
_COUNTS = "first update of 300 counts, CPU ms"
_TWO = "12,000 observations of two interleaved channels in 60 updates with learning, CPU s"
BARS = (
    Bar(_FIRST, 1 / 5, is_ratio=True),
    Bar(_COUNTS, 1 / 6, is_ratio=True),
    Bar(_ROW, 20),
    Bar(_CALLS, 400),
    Bar(_FILES, 35),
    Bar(_MANY, 0.15),
    Bar(_LONGEST, 100 / 280, is_ratio=True),
    Bar(_ALL, 1 / 7, is_ratio=True),
    Bar(_TWO, 6 / 63, is_ratio=True),
)
_TIMES = 5  # how often first updates are made
_SETTLING, _SINGLES, _PASSED, _MANY_ROWS = 100, 200, 50, 2000
_STEP, _LEVEL, _NOISE = 0.1, 5.0, 0.1


def measure(share: float) -> Figures:
    """The figures of the streamgp that is imported, from a share of the rows."""
    return {
        **_first_updates(share),
        **_more_rows(share),
        **_single_updates(share),
        **_two_channels(share),
    }


def _first_updates(share: float) -> Figures:
    x, y = _sine(scaled(300, share))
    counts = np.random.default_rng(1).poisson(np.exp(y - _LEVEL + 1)).astype(float)

    def gaussian() -> None:
        sgp.ContinualGP(sgp.Gaussian()).update(x, y)

    def poisson() -> None:
        sgp.ContinualGP(sgp.Poisson()).update(x, counts)

    found = {}
    for figure, work in ((_FIRST, gaussian), (_COUNTS, poisson)):
        work()  # imports, and what is compiled or kept for the next time
        found[figure] = 1e3 * usual_seconds(work, _TIMES)
    return found


def _more_rows(share: float) -> Figures:
    x, y = _sine(scaled(300, share))
    model = sgp.ContinualGP(sgp.Gaussian())
    model.update(x, y)
    ahead = itertools.count(1)

    def one() -> None:
        model.update([x[-1] + _STEP * next(ahead)], [_LEVEL], learn=False)

    def many() -> None:
        times = x[-1] + _STEP * np.array([next(ahead) for _ in range(count)])
        model.update_many(times, _LEVEL + np.sin(times), learn=False)

    for _ in range(scaled(_SETTLING, share)):
        one()
    calls, files = passed(one, _PASSED)
    count = scaled(_MANY_ROWS, share)
    before = kalman_step_seconds()
    row = usual_seconds(one, scaled(_SINGLES, share))
    block = usual_seconds(many, _TIMES) / count
    step = (before + kalman_step_seconds()) / 2
    return {_ROW: row / step, _CALLS: calls, _FILES: float(files), _MANY: block / step}


def passed(work: Callable[[], Any], times: int) -> tuple[float, int]:
    """Calls of Python functions each time, and how many files of streamgp these are in."""
    package = str(Path(sgp.__file__).parent)
    calls, files = 0, set()

    def note(frame: Any, event: str, _: Any) -> None:
        nonlocal calls
        if event == "call":
            calls += 1
            files.add(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        for _ in range(times):
            work()
    finally:
        sys.setprofile(before)
    return calls / times, sum(name.startswith(package) for name in files)


def _single_updates(share: float) -> Figures:
    x, y = _sine(scaled(4000, share))
    y = y + 0.5 * np.sin(x / 7)
    model = sgp.ContinualGP(sgp.Gaussian())
    seconds = [
        cpu_seconds(lambda k=k: model.update(x[k : k + 1], y[k : k + 1])) for k in range(len(x))
    ]
    return {_LONGEST: 1e3 * max(seconds), _ALL: sum(seconds)}


def _two_channels(share: float) -> Figures:
    rng = np.random.default_rng(3)
    x = 0.05 * np.arange(scaled(12_000, share))
    a = np.sin(x) + _NOISE * rng.normal(size=len(x))
    b = 0.5 * np.sin(x + 0.3) + np.cos(x / 9) + _NOISE * rng.normal(size=len(x))
    model = sgp.ContinualGP({"a": sgp.Gaussian(), "b": sgp.Gaussian()})

    def learn() -> None:
        for rows in np.array_split(np.arange(len(x)), min(60, len(x) // 2)):
            odd, even = rows[::2], rows[1::2]
            model.update({"a": (x[odd], a[odd]), "b": (x[even], b[even])})

    return {_TWO: cpu_seconds(learn)}


def _sine(count: int) -> tuple[np.ndarray, np.ndarray]:
    x = _STEP * np.arange(count)
    return x, _LEVEL + np.sin(x) + _NOISE * np.random.default_rng(0).normal(size=count)
