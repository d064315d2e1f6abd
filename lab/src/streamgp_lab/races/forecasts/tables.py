"""Forecasts as tables and a picture."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamgp_lab.races.forecasts import claims
from streamgp_lab.races.forecasts.claims import HORIZONS, Outcomes, ranks, relative
from streamgp_lab.races.forecasts.methods import LAST, OURS, PLAIN, SEASONS
from streamgp_lab.races.forecasts.rolling import Run
from streamgp_lab.reporting.figures import grid
from streamgp_lab.reporting.report import Part, Picture
from streamgp_lab.reporting.tables import Table, number

_MARKERS = "ov^<>sDP*X"
_HIGHEST = 2.0  # of the picture: what is farther out is drawn at its edge


def parts(outcomes: Outcomes) -> list[Part]:
    """Scores at both horizons, coverage, cost, claims and a picture."""
    scores = [_scores(outcomes, far, horizon) for far, horizon in enumerate(HORIZONS)]
    pictures = Picture("CRPS relative to the last value", _draw(outcomes))
    return [*scores, _coverage(outcomes), _cost(outcomes), claims.of(outcomes), pictures]


def _scores(outcomes: Outcomes, far: int, horizon: str) -> Table:
    names = list(next(iter(outcomes.values())))
    rows = []
    for series, runs in outcomes.items():
        ratios = relative(runs, far)
        best = min(ratios.values())
        cells = [_cell(ratios.get(name, np.nan), best, runs[name]) for name in names]
        last = runs[LAST].scores[far]
        rows.append([series, f"{last.steps}", number(last.crps), *cells])
    mean = ranks(outcomes, far)
    rows.append(
        ["mean rank", "", "", *(f"{mean[name]:.2f}" if name in mean else "" for name in names)]
    )
    heading = ["series", "steps", "CRPS of the last value", *names]
    return Table(f"CRPS relative to the last value, {horizon}", heading, rows)


def _cell(ratio: float, best: float, run: Run) -> str:
    if run.reason:
        return run.reason
    text = f"{ratio:.3f}" if ratio < 10 else "> 10"
    return f"**{text}**" if ratio == best else text


def _coverage(outcomes: Outcomes) -> Table:
    heading = ["series", "forecasts"]
    heading += [f"{name}, {horizon}" for name in OURS for horizon in HORIZONS]
    rows = []
    for series, runs in outcomes.items():
        shares = [
            f"{100 * score.plain:.0f} → {100 * score.calibrated:.0f}"
            for name in OURS
            for score in runs[name].scores
        ]
        rows.append([series, f"{runs[PLAIN].scores[0].count}", *shares])
    return Table("Per cent of values in 95% intervals, plain → calibrated", heading, rows)


def _cost(outcomes: Outcomes) -> Table:
    names = list(next(iter(outcomes.values())))
    rows = []
    for series, runs in outcomes.items():
        rows.append([series, f"{runs[LAST].length:,}", *(_times(runs[name]) for name in names)])
    caption = "CPU milliseconds per value: the mean and, of methods that are refitted, one refit"
    return Table(caption, ["series", "values", *names], rows)


def _times(run: Run) -> str:
    mean = number(1e3 * run.update)
    return f"{mean}, {number(1e3 * run.refit)}" if run.refit > 1e-3 else mean


def _draw(outcomes: Outcomes) -> Any:
    """A row per series and a mark per method, one panel per horizon."""
    figure, axes = grid(1, len(HORIZONS), 6.0, 0.32 * len(outcomes) + 1.6)
    height = np.arange(len(outcomes))[::-1]
    for far, (ax, horizon) in enumerate(zip(axes.flat, HORIZONS, strict=True)):
        each = [relative(runs, far) for runs in outcomes.values()]
        for marker, name in zip(_MARKERS, _names(outcomes), strict=False):
            at = np.minimum([ratios.get(name, np.nan) for ratios in each], _HIGHEST)
            ours = name in OURS
            ax.plot(
                at, height, marker, markersize=9 if ours else 5, alpha=1.0 if ours else 0.7,
                label=name if far == 0 else None, zorder=3 if ours else 2,
            )  # fmt: skip
        ax.axvline(1.0, color="0.6", linewidth=0.8, zorder=1)
        ax.set(xlim=(0, _HIGHEST * 1.02), xlabel="CRPS / CRPS of the last value", title=horizon)
        ax.set_yticks(height, list(outcomes) if far == 0 else [""] * len(outcomes), fontsize=8)
    figure.legend(loc="outside lower center", ncols=4, fontsize=8)
    return figure


def _names(outcomes: Mapping[str, Mapping[str, Run]]) -> list[str]:
    """Methods in the order of drawing; the last value is the line at one."""
    names = [name for name in next(iter(outcomes.values())) if name != LAST]
    return sorted(names, key=lambda name: name in (PLAIN, SEASONS))
