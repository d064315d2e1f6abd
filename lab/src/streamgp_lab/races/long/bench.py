"""Long: what `streamgp-lab bench long` measures, one topic after the other."""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any, NamedTuple

from streamgp_lab.progress import Bar
from streamgp_lab.races.benchmark import Benchmark, Settings, chosen
from streamgp_lab.races.long import accuracy, cost, million, sunspots, year
from streamgp_lab.reporting.report import Part, Report

_NOTE = (
    "Times are CPU times of one process on one thread, measured in one run, so compare the ratios. "
    "Streams have Matérn-3/2 paths with ten rows to a lengthscale at random times, and noise 0.3."
)
_LENGTHS = (50, 200, 800, 3200)  # in lengthscales
_LEARNED_LENGTHS = (50, 200, 800)  # the dense engine takes minutes to learn longer ones
_LONGEST = (10_000, 1000)  # with --full: lengthscales, batches
_BATCHES = 20
_SIZES = (100, 1000, 10_000)  # kept rows
_LARGEST = 100_000
_SAMPLES = 1_000_000
_WEEKS = 52


class Topic(NamedTuple):
    """A part of the report: what is running, and how it is measured and written."""

    name: str
    run: Callable[[], tuple[list[Part], Any]]


def topics(settings: Settings) -> list[Topic]:
    """The topics; `full` adds the longest streams, the largest chain and a million samples."""
    share, full = settings.share, settings.full
    lengths = [(length, _BATCHES) for length in _LENGTHS if length <= max(3200 * share, 50)]
    learned = [(length, _BATCHES) for length in _LEARNED_LENGTHS if length <= max(3200 * share, 50)]
    sizes = [size for size in _SIZES if size <= max(10_000 * share, 1000)]
    if full:
        lengths, sizes = [*lengths, _LONGEST], [*sizes, _LARGEST]
    samples = round((_SAMPLES if full else _SAMPLES // 100) * share)
    found = [
        Topic("accuracy", lambda: _accuracy(lengths)),
        Topic("learning", lambda: _learning(learned)),
        Topic("cost", lambda: _cost(sizes)),
        Topic("sunspots", lambda: _sunspots(share)),
        Topic("samples", lambda: _million(samples)),
    ]
    weeks = max(round(_WEEKS * share), 2)
    found.append(Topic("year", lambda: _year(weeks)))
    return chosen(found, settings.only)


def measure(settings: Settings, bar: Bar) -> Iterator[Report]:
    """Measure the topics, and report what there is after each of them."""
    todo = topics(settings)
    bar.expect(len(todo))
    parts: list[Part] = []
    measured: dict[str, Any] = {}
    for topic in todo:
        bar.show(topic.name)
        more, measured[topic.name] = topic.run()
        parts += more
        bar.advance()
        yield Report("long", BENCHMARK.about, _NOTE, parts, {"measured": measured})


def _accuracy(lengths: list[tuple[int, int]]) -> tuple[list[Part], Any]:
    found = [each for length in lengths for each in accuracy.known(*length)]
    return accuracy.known_parts(found), [asdict(each) for each in found]


def _learning(lengths: list[tuple[int, int]]) -> tuple[list[Part], Any]:
    found = [each for length in lengths for each in accuracy.learning(*length)]
    return accuracy.learning_parts(found), [asdict(each) for each in found]


def _cost(sizes: list[int]) -> tuple[list[Part], Any]:
    works, held = cost.measure(sizes)
    measured = {"works": [asdict(work) for work in works], "held": held}
    return cost.parts(works, held), measured


def _sunspots(share: float) -> tuple[list[Part], Any]:
    found = sunspots.measure(share)
    return sunspots.parts(found), [asdict(each) for each in found]


def _million(samples: int) -> tuple[list[Part], Any]:
    found = million.measure(samples)
    return million.parts(found), [asdict(each) for each in found]


def _year(weeks: int) -> tuple[list[Part], Any]:
    found = year.measure(weeks)
    return year.parts(found), asdict(found)


BENCHMARK = Benchmark(
    "long",
    "Long streams on the chain: accuracy over length, learning, cost as it grows, memory, single "
    "samples, and a year of four channels.",
    measure,
)
