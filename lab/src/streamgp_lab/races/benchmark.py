"""Benchmarks: what `streamgp-lab bench` runs. Most are comparisons, which consist of races."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from streamgp.errors import ConfigurationError, problem
from streamgp_lab.progress import Bar
from streamgp_lab.races import race, summary
from streamgp_lab.races.environments import OWN, python
from streamgp_lab.reporting.report import Report


class Settings(NamedTuple):
    """How a benchmark is run: folder of the peers' environments, repeats, share of the data.

    `against` is a checkout of another version of streamgp, for benchmarks that compare versions.
    With `full`, a benchmark that has parts of many minutes measures them too. `only` names the
    topics or races that are measured; all of them if it is empty. With `own`, other libraries are
    left out, and need not be installed.
    """

    peers: Path
    repeats: int = 3
    share: float = 1.0
    against: Path | None = None
    full: bool = False
    only: tuple[str, ...] = ()
    own: bool = False


class Named(Protocol):
    """A topic or a race."""

    @property
    def name(self) -> str:
        """Such as "cost", or "powerplant, shuffled"."""


_Some = TypeVar("_Some", bound=Named)


def chosen(found: Sequence[_Some], only: Sequence[str]) -> list[_Some]:
    """Those of these names, or of names that begin so up to a comma; all if none is named."""
    names = {each.name: {each.name, each.name.split(",")[0]} for each in found}
    unknown = [name for name in only if not any(name in own for own in names.values())]
    if unknown:
        raise ConfigurationError(
            problem(f"a topic among {list(names)}", repr(unknown[0]), "Check the name.")
        )
    return [each for each in found if not only or names[each.name] & set(only)]


@dataclass(frozen=True)
class Benchmark:
    """Something to measure. `measure` yields a report as soon as there are new results."""

    name: str
    about: str
    measure: Callable[[Settings, Bar], Iterator[Report]]


def comparison(name: str, about: str, races: Callable[[float], list[race.Race]]) -> Benchmark:
    """A benchmark of several races; `races` makes them from a share of their data."""

    def measure(settings: Settings, bar: Bar) -> Iterator[Report]:
        todo = chosen(races(settings.share), settings.only)
        bar.expect(sum(len(list(each.turns(settings.repeats))) for each in todo))
        environments = {c.environment for each in todo for c in each.contenders} - {OWN}
        for needed in [] if settings.own else sorted(environments):
            bar.show(f"installing {needed} into {settings.peers}")
            python(needed, settings.peers)
        outcomes = []
        for each in todo:
            results = race.run(
                each, settings.peers, repeats=settings.repeats, own=settings.own,
                begin=bar.show, end=bar.advance,
            )  # fmt: skip
            outcomes.append((each, results))
            yield summary.report(name, about, outcomes)

    return Benchmark(name, about, measure)
