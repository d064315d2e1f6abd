"""Start: the first steps of a new process, and the smallest ones, in CPU time."""

import compileall
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import streamgp
from streamgp.errors import ConfigurationError, problem
from streamgp_lab.progress import Bar
from streamgp_lab.races import first_steps
from streamgp_lab.races.benchmark import Benchmark, Settings
from streamgp_lab.races.environments import variables
from streamgp_lab.reporting.claims import Claim
from streamgp_lab.reporting.report import Part, Report
from streamgp_lab.reporting.tables import Table, median_and_range, number

OURS = "streamgp"
_LARGEST, _AROUND = (
    "growing stream, largest update",
    "growing stream, median of the ten around it",
)
_LIMITS = {  # CPU seconds
    "import streamgp": 1.0,
    "first update, one Gaussian channel": 0.2,
    "first update, three families": 1.0,
    "8 batches of a classifier with 30 inputs": 5.0,
}
_LARGEST_RATIO = 5.0

Runs = dict[str, list[float]]  # by figure, one number per repeat
Versions = dict[str, Runs]


def measure(settings: Settings, bar: Bar) -> Iterator[Report]:
    """Run every task in new processes, with this version and perhaps another, in turns."""
    sources = {OURS: None} if settings.against is None else {OURS: None, **_named(settings.against)}
    found: Versions = {name: {} for name in sources}
    for source in sources.values():
        _compile(source)
    bar.expect(settings.repeats * len(first_steps.TASKS) * len(sources))
    for _ in range(settings.repeats):
        for task in first_steps.TASKS:
            for name, source in sources.items():
                bar.show(f"{task}, {name}")
                for figure, seconds in _run(task, source).items():
                    found[name].setdefault(figure, []).append(seconds)
                bar.advance()
    yield report(found)


def _named(folder: Path) -> dict[str, Path]:
    return {str(folder): folder}


def _compile(source: Path | None) -> None:
    """Leave bytecode beside the sources, as pip does: else each process might compile them anew."""
    ours = Path(streamgp.__file__).parent
    compileall.compile_dir(ours if source is None else source / "src" / "streamgp", quiet=1)


def _run(task: str, source: Path | None) -> first_steps.Figures:
    done = subprocess.run(
        [sys.executable, first_steps.__file__, task], capture_output=True, text=True, check=False,
        env={**os.environ, **variables(source)},
    )  # fmt: skip
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["no output"])[-1]
        where = "this version" if source is None else str(source)
        raise ConfigurationError(
            problem(f"a version of streamgp that can do {task}", f"{where}: {said}", "Check it.")
        )
    return json.loads(done.stdout)


def report(found: Versions) -> Report:
    """The figures of every version, and their ratios to ours."""
    ours, others = found[OURS], [name for name in found if name != OURS]
    heading = ["CPU milliseconds", OURS]
    for name in others:
        heading += [name, "ratio"]
    rows = []
    for figure, times in ours.items():
        cells = [figure, median_and_range([1e3 * t for t in times])]
        for name in others:
            theirs = found[name][figure]
            ratio = f"{number(float(np.median(theirs) / np.median(times)))}×"
            cells += [median_and_range([1e3 * t for t in theirs]), ratio]
        rows.append(cells)
    repeats = len(next(iter(ours.values())))
    table = Table(f"New processes, runs: {repeats}", heading, rows)
    parts: list[Part] = [table, claims(ours)]
    return Report("start", BENCHMARK.about, "", parts, {"measured": found})


def claims(ours: Runs) -> list[Claim]:
    """Limits of the figures of this version."""
    said = []
    for figure, most in _LIMITS.items():
        took = float(np.median(ours[figure]))
        said.append(Claim(f"{figure}, at most {most:g} CPU s", f"{took:.2f} s", took <= most))
    ratio = float(np.median(ours[_LARGEST]) / np.median(ours[_AROUND]))
    sentence = f"a growing stream's largest update, at most {_LARGEST_RATIO:g}× those around it"
    return [*said, Claim(sentence, f"{ratio:.1f}×", ratio <= _LARGEST_RATIO)]


BENCHMARK = Benchmark(
    "start",
    "The import, the first updates of a process, the largest update of a growing stream, and "
    "small updates and predictions.",
    measure,
)
