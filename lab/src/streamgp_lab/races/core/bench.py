"""Core: evidence and gradient by the compiled core, beside the passes of another revision."""

import itertools
from collections.abc import Iterator
from pathlib import Path

from streamgp_lab.progress import Bar
from streamgp_lab.races.benchmark import Benchmark, Settings
from streamgp_lab.races.core import work
from streamgp_lab.races.environments import answer
from streamgp_lab.reporting.claims import Claim, faster
from streamgp_lab.reporting.report import Part, Report
from streamgp_lab.reporting.tables import Table, number

_COUNTS = (100, 1000, 10_000)
_TIMES = {"grid": 25.0, "irregular": 12.0}  # how often the other revision's time at the least
_NOTE = (
    "CPU times of processes on one thread, one after the other, the least of several runs in each "
    "and of all repeats. The kernel is a Matérn-1/2, a Matérn-3/2 and a Matérn-5/2, with a level."
)
Seconds = dict[str, float]


def measure(settings: Settings, bar: Bar) -> Iterator[Report]:
    """Measure the core, and the revision given by `against`, in turns."""
    counts = [count for count in _COUNTS if count <= max(10_000 * settings.share, 100)]
    passes: dict[str, Path | None] = {"core": None}
    if settings.against is not None:
        passes["chain"] = settings.against
    bar.expect(settings.repeats * len(passes))
    runs: dict[str, list[Seconds]] = {name: [] for name in passes}
    for _ in range(settings.repeats):
        for name, source in passes.items():
            bar.show(name)
            runs[name].append(_run(name, counts, source))
            bar.advance()
    yield report(counts, *(_least(runs.get(name, [])) for name in ("core", "chain")))


def report(counts: list[int], core: Seconds, chain: Seconds) -> Report:
    """Tables of both, and what must be faster by how much."""
    parts: list[Part] = [_beside(counts, core, chain), _by_size(core)]
    if chain:
        parts.insert(1, claims(counts, core, chain))
    return Report("core", BENCHMARK.about, _NOTE, parts, {"core": core, "chain": chain})


def claims(counts: list[int], core: Seconds, chain: Seconds) -> list[Claim]:
    """The core is faster than the passes of the other revision, by a number of times."""
    cases = [(work.case(spacing, n), times) for spacing, times in _TIMES.items() for n in counts]
    return [
        faster(times, chain[case] / core[case], "the other revision").of(case)
        for case, times in cases
    ]


def _beside(counts: list[int], core: Seconds, chain: Seconds) -> Table:
    heading = ["CPU milliseconds", "core"] + ["the other revision", "ratio"] * bool(chain)
    rows = []
    for spacing in work.SPACINGS:
        for case in (work.case(spacing, count) for count in counts):
            cells = [case, number(1e3 * core[case])]
            if chain:
                cells += [number(1e3 * chain[case]), f"{chain[case] / core[case]:.0f}×"]
            rows.append(cells)
    return Table("Evidence and gradient, default kernel", heading, rows)


def _by_size(core: Seconds) -> Table:
    sizes = work.SIZES
    heading = ["CPU microseconds per row", *(f"d = {size}" for size in sizes)]
    rows = []
    for part, season, spacing in itertools.product(work.PARTS, work.SEASONS, work.SPACINGS):
        seconds = (core[work.sized(part, season, spacing, size)] for size in sizes)
        rows.append([f"{part}, {season} season, {spacing}", *(number(1e6 * s) for s in seconds)])
    return Table("A row with a season, by the size d of the state", heading, rows)


def _least(runs: list[Seconds]) -> Seconds:
    return {name: min(run[name] for run in runs) for name in runs[0]} if runs else {}


def _run(name: str, counts: list[int], source: Path | None) -> Seconds:
    return answer(
        [work.__file__, name, *map(str, counts)], source,
        "a revision whose chains keep sums over pairs of states",
        "Give one before the compiled core, such as ca6adae.",
    )  # fmt: skip


BENCHMARK = Benchmark(
    "core",
    "Evidence and gradient of the default kernel by the compiled core, beside an earlier revision "
    "(--against ca6adae), and what a row costs as states grow.",
    measure,
)
