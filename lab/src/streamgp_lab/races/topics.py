"""Benchmarks of several topics: figures of one or two versions, beside what they must be."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from streamgp_lab.progress import Bar as Line
from streamgp_lab.races import work
from streamgp_lab.races.benchmark import Benchmark, Settings, chosen
from streamgp_lab.races.environments import answer
from streamgp_lab.races.figures import Bar, Figures, usual
from streamgp_lab.reporting.report import Part, Report
from streamgp_lab.reporting.tables import Table, number


class Topic(NamedTuple):
    """A part of the report.

    Attributes:
        name: That of its module.
        bars: Of its figures.
        is_repeated: Whether there are several runs.
        is_shared: Whether earlier revisions can do it.
    """

    name: str
    bars: tuple[Bar, ...]
    is_repeated: bool = False
    is_shared: bool = True


@dataclass(frozen=True)
class Topics:
    """What such a benchmark consists of.

    Attributes:
        name: Of the benchmark.
        package: With a module for each topic.
        about: What is measured.
        note: How it is measured.
        topics: In their order.
        longest: Those that are measured only if everything is asked for.
        is_seeded: Whether each run has another seed, which its module's `measure` takes.
        summary: The figures of all runs in one.
    """

    name: str
    package: str
    about: str
    note: str
    topics: tuple[Topic, ...]
    longest: tuple[Topic, ...] = ()
    is_seeded: bool = False
    summary: Callable[[list[Figures]], Figures] = usual

    @property
    def benchmark(self) -> Benchmark:
        """For the catalogue."""
        return Benchmark(self.name, self.about, self.measure)

    def measure(self, settings: Settings, line: Line) -> Iterator[Report]:
        """Measure with this version and perhaps another, and report after each topic."""
        todo = chosen([*self.topics, *self.longest * settings.full], settings.only)
        runs = [(topic, turns(topic, settings)) for topic in todo]
        line.expect(sum(len(own) for _, own in runs))
        parts: list[Part] = []
        measured: dict[str, list[Figures]] = {}
        for topic, own in runs:
            found: dict[Path | None, list[Figures]] = {source: [] for source in own}
            for source in own:
                line.show(topic.name if source is None else f"{topic.name}, {source.name}")
                found[source].append(self.run(topic, settings.share, len(found[source]), source))
                line.advance()
            ours, *others = (self.summary(each) for each in found.values())
            theirs = others[0] if others else {}
            measured[topic.name] = [ours, theirs]
            parts += written(topic, ours, theirs)
            yield Report(self.name, self.about, self.note, parts, {"measured": measured})

    def run(self, topic: Topic, share: float, seed: int, source: Path | None) -> Figures:
        """Measure a topic in a process of its own."""
        arguments = [share, seed] if self.is_seeded else [share]
        return answer(
            ["-m", work.__name__, f"{self.package}.{topic.name}", str(arguments)], source,
            f"a version of streamgp that can do {topic.name}",
            "Give one since 0.2.0, such as ca6adae.",
        )  # fmt: skip


def turns(topic: Topic, settings: Settings) -> list[Path | None]:
    """Which versions do it, one after the other. None is this one."""
    both = topic.is_shared and settings.against is not None
    return [None, *[settings.against] * both] * (settings.repeats if topic.is_repeated else 1)


def written(topic: Topic, ours: Figures, theirs: Figures) -> list[Part]:
    """A table of both versions, and whether bars are met."""
    heading = ["", *["the other revision"] * bool(theirs), "this version", "must be"]
    rows = []
    for bar in topic.bars:
        others = [number(theirs[bar.figure])] if theirs else []
        rows.append([bar.figure, *others, number(ours[bar.figure]), str(bar)])
    claims = [bar.claim(ours, theirs) for bar in topic.bars if bar.most is not None]
    return [Table(topic.name, heading, rows), claims]
