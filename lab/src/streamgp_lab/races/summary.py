"""The report of a comparison: a table, claims and a picture for each race."""

from collections.abc import Callable, Sequence
from dataclasses import asdict

import numpy as np

from streamgp_lab.races import pictures
from streamgp_lab.races.race import OURS, Race, Result, Results
from streamgp_lab.reporting.report import Part, Picture, Report
from streamgp_lab.reporting.tables import Table, median_and_range, number

_NOTE = (
    "All numbers of a table were measured in one run, one contender at a time, so compare the "
    "ratios. CPU time counts all threads. The brackets have the lowest and the highest value over "
    "repeats, or over splits of the data."
)
_WINDOW = 50  # the number of updates whose median is shown


def report(name: str, about: str, outcomes: Sequence[tuple[Race, Results]]) -> Report:
    """Everything that is written about a comparison."""
    parts: list[Part] = []
    for race, results in outcomes:
        claims = [claim.of(race.name) for claim in race.claims(results)]
        picture = Picture(race.name, pictures.race(race, results))
        parts += [table(race, results), claims, picture]
    measured = [
        {
            "problem": race.name,
            "results": {name: [asdict(run) for run in runs] for name, runs in results.items()},
        }
        for race, results in outcomes
    ]
    return Report(name, about, _NOTE, parts, {"measured": measured})


def table(race: Race, results: Results) -> Table:
    """One row per contender."""
    single = race.problems[0].single is not None
    reference = results[OURS]
    columns = _sample_columns(results) if single else _BATCH_COLUMNS
    cost = at_end if single else (lambda result: result.warm)
    heading = ["contender", *columns, "time relative to streamgp", *_SCORES]
    heading += ["prequential NLPD"] * single + ["peak MB"]
    rows, most = [], max(len(runs) for runs in results.values())
    for name, runs in results.items():
        good = [run for run in runs if not run.reason]
        if not good:
            rows.append([name, runs[0].reason, *[""] * (len(heading) - 2)])
            continue
        cells = [median_and_range([column(run) for run in good]) for column in columns.values()]
        relative = ratios(good, reference, cost)
        cells.append("1" if name == OURS else median_and_range(relative, "×"))
        cells += [number(np.median([pick(run) for run in good])) for pick in _SCORES.values()]
        cells += [number(np.median([run.prequential for run in good]))] * single
        shown = name if len(runs) == most else f"{name} (first problem only)"
        rows.append([shown, *cells, f"{np.median([run.peak for run in good]):.0f}"])
    return Table(f"{race.name}, runs: {most}", heading, rows)


_SCORES: dict[str, Callable[[Result], float]] = {
    "NLPD per point": lambda run: run.final.nlpd,
    "RMSE or error rate": lambda run: run.final.error,
    "share in 95% intervals": lambda run: run.final.coverage,
    "NLPD of first batch when learned": lambda run: run.oldest_first,
    "NLPD of first batch at the end": lambda run: run.oldest_now,
}

_BATCH_COLUMNS: dict[str, Callable[[Result], float]] = {
    "import, s": lambda run: run.start,
    "first update, wall s": lambda run: run.first,
    "all learning, cold, CPU s": lambda run: run.cold,
    "all learning, warm, CPU s": lambda run: run.total,
    "one warm update, CPU s": lambda run: run.warm,
    "one warm update, wall s": lambda run: float(np.median(run.wall[len(run.wall) // 2 :])),
}


def _sample_columns(results: Results) -> dict[str, Callable[[Result], float]]:
    """CPU milliseconds per update after several numbers of samples."""
    count = max(len(run.sample_cpu) for runs in results.values() for run in runs)
    ages = [age for age in (100, 500, 1000) if age <= count] or [count]
    columns = {f"CPU ms at n = {age}": _at(age) for age in ages}
    columns["wall ms at the end"] = lambda run: 1e3 * float(np.median(run.sample_wall[-_WINDOW:]))
    columns["first batch, wall s"] = lambda run: run.first
    columns["all learning, cold, CPU s"] = lambda run: run.cold
    return columns


def _at(age: int) -> Callable[[Result], float]:
    return lambda run: 1e3 * float(np.median(run.sample_cpu[max(age - _WINDOW, 0) : age]))


def at_end(run: Result) -> float:
    """CPU seconds per update at the end of a stream of samples."""
    return float(np.median(run.sample_cpu[-_WINDOW:])) if len(run.sample_cpu) else np.nan


def ratios(
    theirs: Sequence[Result], ours: Sequence[Result], cost: Callable[[Result], float]
) -> list[float]:
    """Their cost divided by ours, for each repeat."""
    return [cost(t) / cost(o) for t, o in zip(theirs, ours, strict=False)]
