"""Rows over time: what `streamgp-lab bench over_time` measures, one topic after the other."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from streamgp_lab.progress import Bar as Line
from streamgp_lab.races.benchmark import Benchmark, Settings, chosen
from streamgp_lab.races.environments import answer
from streamgp_lab.races.over_time import files, joining, million, speed, traps, work
from streamgp_lab.races.over_time.figures import Bar, Figures
from streamgp_lab.reporting.report import Part, Report
from streamgp_lab.reporting.tables import Table, number

_NOTE = (
    "CPU times of processes on one thread, versions in turns, medians of all repeats. A Kalman "
    "step is one of a filter of seven states in NumPy, in the same process."
)


class Topic(NamedTuple):
    """A part of the report.

    Attributes:
        name: That of its module.
        bars: Of its figures.
        is_timed: Whether it is repeated.
        is_shared: Whether earlier revisions can do it.
    """

    name: str
    bars: tuple[Bar, ...]
    is_timed: bool = False
    is_shared: bool = True


TOPICS = (
    Topic("speed", speed.BARS, is_timed=True),
    Topic("files", files.BARS),
    Topic("traps", traps.BARS),
    Topic("joining", joining.BARS, is_shared=False),
)
LONGEST = Topic("million", million.BARS, is_shared=False)


def measure(settings: Settings, line: Line) -> Iterator[Report]:
    """Measure the topics, with this version and perhaps another, and report after each of them."""
    todo = chosen([*TOPICS, *[LONGEST] * settings.full], settings.only)
    runs = [(topic, _turns(topic, settings)) for topic in todo]
    line.expect(sum(len(turns) for _, turns in runs))
    parts: list[Part] = []
    measured: dict[str, list[Figures]] = {}
    for topic, turns in runs:
        found: dict[Path | None, list[Figures]] = {None: [], settings.against: []}
        for source in turns:
            line.show(topic.name if source is None else f"{topic.name}, {source.name}")
            found[source].append(_run(topic, settings.share, source))
            line.advance()
        ours, theirs = usual(found[None]), {}
        if settings.against in turns and settings.against is not None:
            theirs = usual(found[settings.against])
        measured[topic.name] = [ours, theirs]
        parts += written(topic, ours, theirs)
        yield Report("over_time", BENCHMARK.about, _NOTE, parts, {"measured": measured})


def written(topic: Topic, ours: Figures, theirs: Figures) -> list[Part]:
    """A table of both versions, and whether bars are met."""
    heading = ["", *["the other revision"] * bool(theirs), "this version", "must be"]
    rows = []
    for bar in topic.bars:
        others = [number(theirs[bar.figure])] if theirs else []
        rows.append([bar.figure, *others, number(ours[bar.figure]), str(bar)])
    claims = [bar.claim(ours, theirs) for bar in topic.bars if bar.most is not None]
    return [Table(topic.name, heading, rows), claims]


def usual(runs: list[Figures]) -> Figures:
    """The median of each figure."""
    return {name: float(np.median([run[name] for run in runs])) for name in runs[0]}


def _turns(topic: Topic, settings: Settings) -> list[Path | None]:
    """Which versions do it, one after the other."""
    both = topic.is_shared and settings.against is not None
    return [None, *[settings.against] * both] * (settings.repeats if topic.is_timed else 1)


def _run(topic: Topic, share: float, source: Path | None) -> Figures:
    return answer(
        ["-m", work.__name__, topic.name, str(share)], source,
        f"a version of streamgp that can do {topic.name}", "Give one since 0.2.0, such as ca6adae.",
    )  # fmt: skip


BENCHMARK = Benchmark(
    "over_time",
    "Rows over time: speed, files, what traps cost, and what joining loses, beside an earlier "
    "revision (--against ca6adae); --full adds a million rows.",
    measure,
)
