"""Writing down what a comparison showed: Markdown, JSON and pictures."""

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from streamgp.version import __version__
from streamgp_lab.experiments.report import plain
from streamgp_lab.experiments.tables import Table
from streamgp_lab.races import figures
from streamgp_lab.races.comparison import Claim, Comparison, Race, Results
from streamgp_lab.races.growth import Curve
from streamgp_lab.races.start import Start, median
from streamgp_lab.races.tables import number, race_table

_READ = (
    "Everything in a table was measured in one run, contender by contender in turn; read the "
    "ratios. CPU time counts all threads. In brackets: from the least to the most over repeats."
)

_VERDICTS = {True: "holds", False: "does not hold", None: "not measured"}


def write_races(
    comparison: Comparison, outcomes: Sequence[tuple[Race, Results]], out: Path
) -> Path:
    """One comparison."""
    parts, record = [comparison.about, _READ], []
    for index, (race, results) in enumerate(outcomes):
        table, claims = race_table(race, results), race.claims(results)
        picture = f"{comparison.name}-{index + 1}"
        _save(figures.race(race, results), out, picture)
        parts += [table.markdown(), sentences(claims), f"![{race.problem.name}]({picture}.png)"]
        record.append(
            {
                "problem": race.problem.name,
                "claims": [claim._asdict() for claim in claims],
                "results": {name: [asdict(run) for run in runs] for name, runs in results.items()},
            }
        )
    return _write(out, comparison.name, parts, record)


def write_growth(curves: Sequence[Curve], claims: Sequence[Claim], out: Path) -> Path:
    """The curves of growth."""
    rows = [
        [curve.name, str(size), number(1e3 * cpu), number(1e3 * wall), f"{peak:.0f}"]
        for curve in curves
        for size, cpu, wall, peak in zip(
            curve.sizes, curve.cpu, curve.wall, curve.peak, strict=True
        )
    ]
    heading = ["what grows", "size", "CPU ms", "wall ms", "peak MB"]
    table = Table("An update of ours", heading, rows)
    exponents = Table(
        "Fitted exponents",
        ["what grows", "CPU time", "memory"],
        [[c.name, f"{c.exponent:.2f}", f"{c.memory_exponent:.2f}"] for c in curves],
    )
    _save(figures.growth(curves), out, "growth")
    about = "What an update costs as the stream, the points, the channels and the functions grow."
    parts = [about, exponents.markdown(), sentences(claims), "![growth](growth.png)"]
    return _write(out, "growth", [*parts, table.markdown()], [asdict(c) for c in curves])


def write_starts(starts: dict[str, list[Start]], claims: Sequence[Claim], out: Path) -> Path:
    """What a new process waits for."""
    rows = [[name, *map(number, median(found))] for name, found in starts.items()]
    heading = ["", "import jax, s", "import streamgp after it, s", "first update, s"]
    table = Table(
        f"A new process, wall time ({len(next(iter(starts.values())))} runs)", heading, rows
    )
    parts = ["Importing, and the first update of a process.", table.markdown(), sentences(claims)]
    return _write(out, "start", parts, {n: [s._asdict() for s in f] for n, f in starts.items()})


def sentences(claims: Sequence[Claim]) -> str:
    """What was claimed, what was measured, and whether it holds."""
    return "\n".join(f"- {c.sentence}: {c.measured} ({_VERDICTS[c.holds]})" for c in claims)


def _write(out: Path, name: str, parts: Sequence[str], record: Any) -> Path:
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, streamgp {__version__}"
    text = out / f"{name}.md"
    text.write_text("\n\n".join([f"# {name}", *parts, f"{machine}."]) + "\n")
    contents = {"machine": machine, "measured": record}
    (out / f"{name}.json").write_text(json.dumps(plain(contents), indent=1))
    return text


def _save(figure: Any, out: Path, stem: str) -> None:
    from streamgp.plot.style import pyplot

    for kind in ("png", "svg"):
        figure.savefig(out / f"{stem}.{kind}", dpi=110)
    pyplot().close(figure)
