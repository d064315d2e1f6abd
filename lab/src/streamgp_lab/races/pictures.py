"""Pictures of races and of growth."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from streamgp.plot.style import pyplot
from streamgp_lab.races.comparison import OURS, Race, Results
from streamgp_lab.races.growth import Curve

_MARKERS = "oDsv^P*X<>"
_SMOOTH = 50  # samples
_LEAST = 30.0  # from the bottom of a curve's axis to its top


def race(race: Race, results: Results) -> Any:
    """A stream: what an update costs as it goes on. Batches: accuracy against cost."""
    return _stream(results) if race.problem.single is not None else _against(race, results)


def _stream(results: Results) -> Any:
    figure, ax = pyplot().subplots(figsize=(7.5, 4.2), layout="constrained")
    for name, run in _first_runs(results):
        blocks = np.array_split(run.sample_cpu, max(len(run.sample_cpu) // _SMOOTH, 1))
        seconds = [np.median(block) for block in blocks]
        where = np.cumsum([len(block) for block in blocks])
        style = {"linewidth": 2.5} if name == OURS else {"linewidth": 1.2}
        ax.plot(where, seconds, label=name, **style)
    ax.set(yscale="log", xlabel="samples since the warm-up", ylabel="CPU seconds an update")
    _legend(figure)
    return figure


def _against(race: Race, results: Results) -> Any:
    figure, ax = pyplot().subplots(figsize=(7.5, 4.2), layout="constrained")
    for marker, (name, run) in zip(itertools.cycle(_MARKERS), _first_runs(results), strict=False):
        size = 11 if name == OURS else 7
        ax.plot(run.total, run.final.nlpd, marker, markersize=size, label=name)
    scores = np.array([run.final.nlpd for _, run in _first_runs(results)])
    low, middle = np.nanmin(scores), np.nanmedian(scores)
    top = middle + 4 * max(middle - low, 0.02)  # one that fails must not flatten the others
    ax.set_ylim(low - 0.1 * (top - low), top)
    beyond = sum(scores > top)
    note = f" ({beyond} beyond the top)" if beyond else ""
    ax.set(
        xscale="log", xlabel="CPU seconds of all learning",
        ylabel=f"NLPD a held-out point{note}", title=race.problem.name,
    )  # fmt: skip
    _legend(figure)
    return figure


def _first_runs(results: Results) -> list[tuple[str, Any]]:
    return [(name, runs[0]) for name, runs in results.items() if not runs[0].reason]


def growth(curves: Sequence[Curve]) -> Any:
    """Every curve on logarithmic axes, with its exponent."""
    columns = 3
    rows = -(-len(curves) // columns)
    figure, axes = pyplot().subplots(
        rows, columns, figsize=(4 * columns, 3 * rows), squeeze=False, layout="constrained"
    )
    for ax, curve in zip(axes.flat, curves, strict=False):
        ax.plot(curve.sizes, curve.cpu, "o-", label="CPU")
        ax.plot(curve.sizes, curve.wall, "s--", markersize=4, label="wall")
        ax.set(xscale="log", yscale="log", xlabel=curve.along, ylabel="seconds")
        ax.set_title(f"{curve.name}: exponent {curve.exponent:.2f}", fontsize=9)
        ax.set_xticks(curve.sizes, [f"{size:,}" for size in curve.sizes], fontsize=7)
        ax.minorticks_off()
        low, high = min(*curve.cpu, *curve.wall), max(*curve.cpu, *curve.wall)
        widen = max(1.2, (_LEAST / (high / low)) ** 0.5)  # what is flat must look flat
        ax.set_ylim(low / widen, high * widen)
    for ax in axes.flat[len(curves) :]:
        ax.set_axis_off()
    axes[0, 0].legend(fontsize=8)
    return figure


def _legend(figure: Any) -> None:
    figure.legend(loc="outside lower center", ncols=2, fontsize=8)
