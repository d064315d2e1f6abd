"""Benchmarks: what `streamgp-lab bench` runs. Most are comparisons, which consist of races."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from streamgp_lab.progress import Bar
from streamgp_lab.races import race, summary
from streamgp_lab.races.environments import OWN, python
from streamgp_lab.reporting.report import Report


class Settings(NamedTuple):
    """How a benchmark is run: folder of the peers' environments, repeats, share of the data.

    `against` is a checkout of another version of streamgp, for benchmarks that compare versions.
    With `full`, a benchmark that has parts of many minutes measures them too. `only` names the
    topics that are measured, of a benchmark that has topics; all of them if it is empty.
    """

    peers: Path
    repeats: int = 3
    share: float = 1.0
    against: Path | None = None
    full: bool = False
    only: tuple[str, ...] = ()


@dataclass(frozen=True)
class Benchmark:
    """Something to measure. `measure` yields a report as soon as there are new results."""

    name: str
    about: str
    measure: Callable[[Settings, Bar], Iterator[Report]]


def comparison(name: str, about: str, races: Callable[[float], list[race.Race]]) -> Benchmark:
    """A benchmark of several races; `races` makes them from a share of their data."""

    def measure(settings: Settings, bar: Bar) -> Iterator[Report]:
        todo = races(settings.share)
        bar.expect(sum(len(list(each.turns(settings.repeats))) for each in todo))
        for needed in sorted({c.environment for each in todo for c in each.contenders} - {OWN}):
            bar.show(f"installing {needed} into {settings.peers}")
            python(needed, settings.peers)
        outcomes = []
        for each in todo:
            results = race.run(
                each, settings.peers, repeats=settings.repeats, begin=bar.show, end=bar.advance
            )  # fmt: skip
            outcomes.append((each, results))
            yield summary.report(name, about, outcomes)

    return Benchmark(name, about, measure)
