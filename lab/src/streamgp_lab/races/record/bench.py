"""Record: appends the speed of one commit to lab/record.json, and draws all of them."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from streamgp.errors import ConfigurationError, problem
from streamgp_lab.progress import Bar
from streamgp_lab.races.benchmark import Benchmark, Settings
from streamgp_lab.races.environments import REPOSITORY, answer
from streamgp_lab.races.record import workloads
from streamgp_lab.reporting.figures import grid
from streamgp_lab.reporting.report import Part, Picture, Report
from streamgp_lab.reporting.tables import Table, number

RECORD = REPOSITORY / "lab" / "record.json"
PICTURE = REPOSITORY / "docs" / "images" / "record.png"
NAMES = (workloads.IMPORT, *workloads.WORKLOADS)
_NOTE = (
    "CPU times in units of a fixed piece of NumPy work that is measured in the same process, so "
    "that machines cancel out: the least of several runs on one thread, and the least of all "
    "processes. Lower is faster. Where a workload is missing, that commit could not do it."
)
Entry = dict[str, Any]


def measure(settings: Settings, bar: Bar) -> Iterator[Report]:
    """Measure this checkout, or the one given by `against`, and add it to the record."""
    source = settings.against or REPOSITORY
    bar.expect(settings.repeats)
    runs = []
    for _ in range(settings.repeats):
        bar.show(str(source))
        runs.append(_run(source))
        bar.advance()
    entries = added(read(RECORD), {**_commit(source), **combined(runs)})
    RECORD.write_text(json.dumps(entries, indent=1) + "\n")
    picture(entries).savefig(PICTURE, dpi=110)
    yield report(entries)


def read(path: Path) -> list[Entry]:
    """The entries of a record; none if there is no such file."""
    return json.loads(path.read_text()) if path.exists() else []


def combined(runs: list[Entry]) -> Entry:
    """Of each workload the least ratio of several processes."""
    found = {name: [r["ratios"][name] for r in runs if name in r["ratios"]] for name in NAMES}
    ratios = {name: min(values) for name, values in found.items() if values}
    return {"version": runs[0]["version"], "ratios": ratios}


def added(entries: list[Entry], entry: Entry) -> list[Entry]:
    """With one more entry, in place of one of the same commit, in the order of time."""
    others = [each for each in entries if each["commit"] != entry["commit"]]
    return sorted([*others, entry], key=lambda each: each["date"])


def report(entries: list[Entry]) -> Report:
    """A table with a row for each workload and a column for each commit."""
    heading = ["units of NumPy work", *(f"{e['commit']} ({e['date'][:10]})" for e in entries)]
    rows = [
        [name, *(number(e["ratios"][name]) if name in e["ratios"] else "–" for e in entries)]
        for name in NAMES
    ]
    parts: list[Part] = [
        Table("Speed by commit", heading, rows),
        Picture("by commit", picture(entries)),
    ]
    return Report("record", BENCHMARK.about, _NOTE, parts, {"entries": entries})


def picture(entries: list[Entry]) -> Any:
    """A panel for each workload, commits from left to right, axes from zero."""
    figure, panels = grid(3, 3, 3.4, 2.5)
    ticks = range(len(entries))
    for ax, name in zip(panels.flat, NAMES, strict=True):
        values = [entry["ratios"].get(name, np.nan) for entry in entries]
        ax.plot(ticks, values, "o-", markersize=4)
        ax.set_title(name, fontsize=10)
        ax.set_xlim(-0.5, len(entries) - 0.5)
        ax.set_ylim(bottom=0)
        ax.set_xticks(ticks, [entry["commit"] for entry in entries], rotation=60, fontsize=7)
    for ax in panels[:, 0]:
        ax.set_ylabel("units of NumPy work")
    return figure


def _run(source: Path) -> Entry:
    wanted = "a version of streamgp that can be measured"
    return answer([workloads.__file__], source, wanted, "Give another checkout.")


def _commit(source: Path) -> Entry:
    """The commit of a checkout and its time; a star marks changes that are not committed."""

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(source), *words], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise ConfigurationError(
                problem("a checkout of a Git repository", str(source), "Clone the repository.")
            )
        return done.stdout.strip()

    commit, date = git("log", "-1", "--format=%h %cI").split()
    changed = git("status", "--porcelain", "--", "src")
    return {"commit": commit + "*" * bool(changed), "date": date}


BENCHMARK = Benchmark(
    "record",
    "Small workloads as multiples of fixed NumPy work, appended to the record of commits "
    "(lab/record.json) with its picture.",
    measure,
)
