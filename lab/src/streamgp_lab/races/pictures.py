"""Pictures of races."""

import itertools
from typing import Any

import numpy as np

from streamgp_lab.races.race import OURS, Race, Result, Results
from streamgp_lab.reporting.figures import grid, limit_height

_MARKERS = "oDsv^P*X<>"
_SMOOTH = 50  # samples


def race(race: Race, results: Results) -> Any:
    """Cost per update along a stream of samples, or accuracy against cost for batches."""
    figure, ((ax,),) = grid(1, 1, 7.5, 4.2)
    runs = [(name, runs[0]) for name, runs in results.items() if not runs[0].reason]
    if race.problems[0].single is None:
        _draw_accuracy(ax, runs)
        ax.set_title(race.name)
    else:
        _draw_cost(ax, runs)
    figure.legend(loc="outside lower center", ncols=2, fontsize=8)
    return figure


def _draw_cost(ax: Any, runs: list[tuple[str, Result]]) -> None:
    for name, run in runs:
        blocks = np.array_split(run.sample_cpu, max(len(run.sample_cpu) // _SMOOTH, 1))
        seconds = [np.median(block) for block in blocks]
        where = np.cumsum([len(block) for block in blocks])
        ax.plot(where, seconds, label=name, linewidth=2.5 if name == OURS else 1.2)
    ax.set(yscale="log", xlabel="samples after the first batch", ylabel="CPU seconds per update")


def _draw_accuracy(ax: Any, runs: list[tuple[str, Result]]) -> None:
    for marker, (name, run) in zip(itertools.cycle(_MARKERS), runs, strict=False):
        size = 11 if name == OURS else 7
        ax.plot(run.total, run.final.nlpd, marker, markersize=size, label=name)
    above = limit_height(ax)
    note = f" ({above} above the top)" if above else ""
    ax.set(xscale="log", xlabel="CPU seconds of all learning", ylabel=f"NLPD per point{note}")
