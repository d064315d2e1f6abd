"""What `streamgp-lab bench forecasts` measures, one series after the other."""

from collections.abc import Iterator
from dataclasses import asdict

from streamgp_lab.progress import Bar
from streamgp_lab.races.benchmark import Benchmark, Settings
from streamgp_lab.races.forecasts import rolling, tables
from streamgp_lab.races.forecasts.methods import METHODS, PLAIN, SEASONS
from streamgp_lab.races.forecasts.rolling import Run
from streamgp_lab.races.forecasts.series import SERIES, Series
from streamgp_lab.reporting.report import Report

_NOTE = (
    "The first values of a series come at once, the others one by one. Before each, every method "
    "forecasts all steps up to a season. The first half of these forecasts is a rehearsal, in "
    "which intervals are calibrated; the second half is scored. Means and standard deviations are "
    "scored as normal distributions. ETS (additive, damped trend), ARIMA and the Gaussian process "
    "on a window are refitted on all they see whenever the series has grown by a tenth, and filter "
    "in between. Methods without variances take them from their past errors at the same "
    "horizon. Where a series has no season, ours with `seasons=` is ours without. Times are CPU "
    "times of one process on one thread, forecasts apart."
)
_MOST = 400  # values of each series; all of them with --full


def measure(settings: Settings, bar: Bar) -> Iterator[Report]:
    """Every method on every series, and a report after each series."""
    chosen = SERIES if settings.full else [s for s in SERIES if not s.is_later]
    bar.expect(len(chosen) * len(METHODS))
    outcomes: dict[str, dict[str, Run]] = {}
    for series in chosen:
        outcomes[series.name] = _outcome(series, settings, bar)
        measured = {
            name: {method: asdict(run) for method, run in runs.items()}
            for name, runs in outcomes.items()
        }
        parts = tables.parts(outcomes)
        yield Report("forecasts", BENCHMARK.about, _NOTE, parts, {"measured": measured})


def _outcome(series: Series, settings: Settings, bar: Bar) -> dict[str, Run]:
    found: dict[str, Run] = {}
    y = series.values(None if settings.full else _MOST)
    y = y[: max(round(settings.share * len(y)), series.first + 2 * series.ahead)]
    for name, make in METHODS.items():
        bar.show(f"{series.name}: {name}")
        if name == SEASONS and series.season is None:
            found[name] = found[PLAIN]
        else:
            found[name] = rolling.run(make(series), series, y)
        bar.advance()
    return found


BENCHMARK = Benchmark(
    "forecasts",
    "Rolling forecasts of time series that come with packages, one step and one season ahead, "
    "beside exponential smoothing, ARIMA and others.",
    measure,
)
