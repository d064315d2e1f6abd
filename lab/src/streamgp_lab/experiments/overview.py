"""One table over all experiments in a folder of results: what docs/experiments.md shows."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from streamgp_lab.experiments.catalogue import EXPERIMENTS
from streamgp_lab.experiments.methods import EXACT, OFFLINE, OURS, PAPER, SPARSE
from streamgp_lab.experiments.protocol import Run
from streamgp_lab.reporting.tables import Table, mean, number
from streamgp_lab.scores import Score

FILE = "overview.md"
_BESIDE = (OFFLINE, EXACT, SPARSE, PAPER)


class Result(NamedTuple):
    """What the file of an experiment holds: the runs of each method, one per seed."""

    name: str
    channels: list[str]
    runs: dict[str, list[Run]]
    cpu: float
    printed: list[Table]  # beside the paper's numbers

    def label(self, channel: str) -> str:
        return f"{self.name}: {channel}" if len(self.channels) > 1 else self.name

    def final(self, method: str, channel: str) -> list[float]:
        """NLPD at the end, one per seed; none if the method failed or was not run."""
        runs = self.runs.get(method, [])
        return [] if any(run.reason for run in runs) else [run.final(channel).nlpd for run in runs]


def write(folder: Path) -> Path:
    """Write the tables of all experiments whose results are in the folder."""
    found = [_read(folder / f"{name}.json") for name in EXPERIMENTS]
    results = [result for result in found if result is not None]
    path = folder / FILE
    tables = [scores(results), differences(results)]
    tables += [table for result in results for table in result.printed]
    path.write_text("\n".join(table.markdown() for table in tables))
    return path


def _read(path: Path) -> Result | None:
    if not path.exists():
        return None
    record = json.loads(path.read_text())
    runs: dict[str, list[Run]] = {}
    for seed in record["seeds"]:
        for method, numbers in seed.items():
            runs.setdefault(method, []).append(_run(numbers))
    tables = [Table(**table) for table in record["tables"]]
    printed = [table for table in tables if table.caption.startswith("Table")]
    return Result(record["name"], list(runs[OURS][0].scores), runs, record["cpu"], printed)


def _run(numbers: dict[str, Any]) -> Run:
    scores = {
        channel: [[None if each is None else _score(each) for each in step] for step in steps]
        for channel, steps in numbers["scores"].items()
    }
    return Run(scores, singles=numbers["singles"], reason=numbers["reason"])


def _score(numbers: dict[str, Any]) -> Score:
    numbers = {key: np.nan if each is None else each for key, each in numbers.items()}
    return Score(**numbers)


def scores(results: list[Result]) -> Table:
    """NLPD of every method on every channel, and how the oldest batch fared."""
    heading = ["experiment", "seeds", OURS, *_BESIDE]
    heading += ["oldest batch, first → now", "share in 95% intervals", "CPU s"]
    rows = []
    for result in results:
        for channel in result.channels:
            runs = result.runs[OURS]
            oldest = np.mean([run.oldest(channel) for run in runs], axis=0)
            cells = [result.label(channel), str(len(runs))]
            cells += [_mean(result.final(method, channel)) for method in (OURS, *_BESIDE)]
            cells.append(" → ".join(mean([each]) for each in oldest))
            cells.append(mean([run.final(channel).coverage for run in runs]))
            rows.append([*cells, number(result.cpu) if channel == result.channels[0] else ""])
    return Table("NLPD per held-out point, means over seeds", heading, rows)


def differences(results: list[Result]) -> Table:
    """How far our models are from the offline and the exact one, and what they forgot."""
    heading = ["experiment", "model", "minus offline", "minus exact", "oldest batch, now − first"]
    rows = []
    for result in results:
        for method in (name for name in result.runs if name.startswith(OURS)):
            for channel in result.channels:
                ours = result.final(method, channel)
                if not ours:
                    continue
                cells = [_worst(ours, result.final(other, channel)) for other in (OFFLINE, EXACT)]
                first, now = np.transpose([run.oldest(channel) for run in result.runs[method]])
                rows.append([result.label(channel), method, *cells, _worst(now, first)])
    return Table("Differences of NLPD: mean over seeds (worst seed)", heading, rows)


def _mean(values: list[float]) -> str:
    return mean(values) if values else ""


def _worst(ours: Any, theirs: Any) -> str:
    if not len(theirs):
        return ""
    gaps = np.subtract(ours, theirs)
    if not np.isfinite(gaps).all():
        return "–"
    return f"{gaps.mean():+.4f} ({gaps.max():+.4f})"
