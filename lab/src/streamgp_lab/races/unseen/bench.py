"""Unseen: what `streamgp-lab bench unseen` measures."""

from collections.abc import Iterator
from typing import Any

from streamgp_lab.progress import Bar
from streamgp_lab.races.benchmark import Benchmark, Settings
from streamgp_lab.races.unseen import sensors, tables
from streamgp_lab.races.unseen.marks import HEADING, Marks, averaged
from streamgp_lab.reporting.report import Part, Report
from streamgp_lab.reporting.tables import Table

_NOTE = (
    "Nothing in the library was chosen by these data. All values are standardised in the tables. "
    "Settings are those by default: streamgp keeps at most 1,024 rows. The collapsed GP has 256 "
    "points. Rows are means over splits."
)
_ORDERS = {"shuffled": False, "drifting": True}
_SENSORS = "sensors"


def measure(settings: Settings, bar: Bar) -> Iterator[Report]:
    """One table after the other, then the sensors; `repeats` is the number of splits."""
    wanted = settings.only or (*tables.TABLES, _SENSORS)
    names = [name for name in tables.TABLES if name in wanted]
    bar.expect(len(names) * len(_ORDERS) * settings.repeats + settings.repeats)
    parts: list[Part] = []
    measured: dict[str, Any] = {}
    for name in names:
        for order, drift in _ORDERS.items():
            runs = []
            for seed in range(settings.repeats):
                bar.show(f"{name}, {order}")
                runs.append(tables.run(name, drift=drift, share=settings.share, seed=seed))
                bar.advance()
            title = f"{name}, {order}"
            measured[title] = [{k: m._asdict() for k, m in run.items()} for run in runs]
            parts.append(_table(title, {k: [run[k] for run in runs] for k in runs[0]}))
            yield _report(parts, measured)
    if _SENSORS in wanted:
        found: dict[str, list[Marks]] = {}
        for seed in range(settings.repeats):
            bar.show(_SENSORS)
            for method, by_station in sensors.run(settings.share, seed).items():
                found.setdefault(method, []).extend(by_station.values())
            bar.advance()
        measured[_SENSORS] = {k: [m._asdict() for m in runs] for k, runs in found.items()}
        parts.append(_table("dew points at three airports, within outages", found))
        yield _report(parts, measured)


def _table(title: str, found: dict[str, list[Marks]]) -> Table:
    rows = [[method, *averaged(runs).cells()] for method, runs in found.items()]
    return Table(title, ["", *HEADING], rows)


def _report(parts: list[Part], measured: dict[str, Any]) -> Report:
    return Report("unseen", BENCHMARK.about, _NOTE, list(parts), {"measured": measured})


BENCHMARK = Benchmark(
    "unseen",
    "Data that nothing was tuned to: tables of 5 to 15 inputs in fifty batches, and three weather "
    "stations with outages.",
    measure,
)
