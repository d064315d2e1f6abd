"""Tables of races: medians over repeats, with their range where there are several."""

from collections.abc import Callable, Sequence

import numpy as np

from streamgp_lab.experiments.tables import Table
from streamgp_lab.races.comparison import OURS, Race, Results
from streamgp_lab.races.race import Result

_WINDOW = 50  # updates that one figure of a stream is the median of


def race_table(race: Race, results: Results) -> Table:
    """Every contender of a race in a row."""
    single = race.problem.single is not None
    reference = results[OURS]
    columns = _stream_columns(results) if single else _batch_columns()
    heading = ["contender", *columns, "ratio", *_SCORES, *["prequential NLPD"] * single, "peak MB"]
    cost = at_end if single else (lambda result: result.warm)
    rows = []
    for name, runs in results.items():
        good = [run for run in runs if not run.reason]
        if not good:
            rows.append([name, runs[0].reason, *[""] * (len(heading) - 2)])
            continue
        cells = [spread([column(run) for run in good]) for column in columns.values()]
        cells.append("1" if name == OURS else spread(ratios(good, reference, cost), "×"))
        cells += [number(np.median([pick(run) for run in good])) for pick in _SCORES.values()]
        cells += [number(np.median([run.prequential for run in good]))] * single
        rows.append([name, *cells, f"{np.median([run.peak for run in good]):.0f}"])
    repeats = max(len(runs) for runs in results.values())
    return Table(f"{race.problem.name} ({repeats} runs)", heading, rows)


_SCORES: dict[str, Callable[[Result], float]] = {
    "NLPD": lambda run: run.final.nlpd,
    "RMSE or error": lambda run: run.final.error,
    "95% hold": lambda run: run.final.coverage,
    "first batch, first": lambda run: run.oldest_first,
    "now": lambda run: run.oldest_now,
}


def _batch_columns() -> dict[str, Callable[[Result], float]]:
    return {
        "import, s": lambda run: run.start,
        "first update, wall s": lambda run: run.first,
        "all learning, cold, CPU s": lambda run: run.cold,
        "warm, CPU s": lambda run: run.total,
        "a warm update, CPU s": lambda run: run.warm,
        "wall s": lambda run: float(np.median(run.wall[len(run.wall) // 2 :])),
    }


def _stream_columns(results: Results) -> dict[str, Callable[[Result], float]]:
    """CPU milliseconds of an update at several ages of the stream."""
    count = max(len(run.sample_cpu) for runs in results.values() for run in runs)
    ages = [age for age in (100, 500, 1000) if age <= count] or [count]
    columns = {f"CPU ms at n = {age}": _at(age) for age in ages}
    columns["wall ms"] = lambda run: 1e3 * float(np.median(run.sample_wall[-_WINDOW:]))
    columns["first batch, wall s"] = lambda run: run.first
    columns["all learning, cold, CPU s"] = lambda run: run.cold
    return columns


def _at(age: int) -> Callable[[Result], float]:
    return lambda run: 1e3 * float(np.median(run.sample_cpu[max(age - _WINDOW, 0) : age]))


def at_end(run: Result) -> float:
    """CPU seconds of an update at the end of a stream of samples."""
    return float(np.median(run.sample_cpu[-_WINDOW:])) if len(run.sample_cpu) else np.nan


def ratios(
    theirs: Sequence[Result], ours: Sequence[Result], cost: Callable[[Result], float]
) -> list[float]:
    """How many times as long as ours, run by run."""
    return [cost(t) / cost(o) for t, o in zip(theirs, ours, strict=False)]


def spread(values: Sequence[float], unit: str = "") -> str:
    """The median, and from where to where the runs go."""
    middle = f"{number(float(np.median(values)))}{unit}"
    if len(values) == 1 or not np.isfinite(values).all():
        return middle
    return f"{middle} ({number(min(values))}–{number(max(values))})"


def number(value: float) -> str:
    """Three digits that count."""
    if not np.isfinite(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
