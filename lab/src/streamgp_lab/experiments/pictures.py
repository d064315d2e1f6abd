"""Pictures of experiments: what our model knew after some of the steps."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from streamgp import plot
from streamgp_lab.experiments.protocol import Outcome
from streamgp_lab.problem import Data, Problem, merged
from streamgp_lab.reporting.figures import grid, limit_height

Draw = Callable[[Outcome], Any]

_WIDTH, _HEIGHT = 5.2, 2.4  # inches of a panel


def steps(*chosen: int) -> Draw:
    """One row of panels per channel and one column per step.

    A panel shows past data, new data, the prediction and the inducing points.
    """

    def draw(outcome: Outcome) -> Any:
        problem, snapshots = outcome.problem, outcome.ours.snapshots
        columns = sorted({min(step, len(snapshots) - 1) for step in chosen})
        figure, axes = grid(len(problem.channels), len(columns), _WIDTH, _HEIGHT)
        for column, step in zip(axes.T, columns, strict=True):
            known = {name for batch in problem.train[: step + 1] for name in batch}
            for ax, name in zip(column, problem.channels, strict=True):
                if name in known:
                    _panel(ax, snapshots[step], problem, name, step)
                else:
                    ax.text(0.5, 0.5, "not seen yet", ha="center", transform=ax.transAxes)
            column[0].set_title(f"after step {step + 1} of {len(problem.train)}")
        _same_height(axes)
        return figure

    return draw


def maps(*chosen: int) -> Draw:
    """Two inputs: new data in colour, past data in grey, and the boundary of the classes."""

    def draw(outcome: Outcome) -> Any:
        problem, snapshots = outcome.problem, outcome.ours.snapshots
        columns = sorted({min(step, len(snapshots) - 1) for step in chosen})
        x = np.concatenate([batch["y"][0] for batch in problem.train])
        sides = [np.linspace(low, high, 60) for low, high in zip(x.min(0), x.max(0), strict=True)]
        figure, axes = grid(1, len(columns), 3.4, 3.4)
        for ax, step in zip(axes[0], columns, strict=True):
            past = merged(problem.train[:step]).get("y")
            plot.channel(
                snapshots[step], "y", x=tuple(sides), data=problem.train[step]["y"], past=past,
                legend=False, ax=ax,
            )  # fmt: skip
            ax.set_title(f"after step {step + 1} of {len(problem.train)}")
        return figure

    return draw


def gap(other: str) -> Draw:
    """The stretch without data of one channel: our prediction, and that of another method."""

    def draw(outcome: Outcome) -> Any:
        problem = outcome.problem
        ((name, (x, y)),) = problem.gap.items()
        figure, axes = grid(1, 2, _WIDTH, _HEIGHT)
        span = _span(problem, name)
        for ax, which in zip(axes[0], (next(iter(outcome.runs)), other), strict=True):
            run = outcome.runs[which]
            plot.band(run.method.predict(span, name), span, name=name, ax=ax)
            ax.plot(*merged(problem.train)[name], ".", color="0.6", markersize=3, label="learned")
            ax.plot(x, y, ".", color="tab:red", markersize=4, label="never learned")
            ax.set_title(f"{which}: NLPD {run.gap[name].nlpd:.2f} in the gap")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8)
        _same_height(axes)
        return figure

    return draw


def retention(outcome: Outcome) -> Any:
    """NLPD of the first batch of each channel as later batches follow, for every method."""
    problem = outcome.problem
    figure, axes = grid(1, len(problem.channels), 4.6, 3.0)
    for ax, name in zip(axes[0], problem.channels, strict=True):
        styles = itertools.cycle(("--", ":", "-."))
        for method, run in outcome.runs.items():
            curve = _oldest(run.scores.get(name, []))
            if len(curve) > 1:
                ax.plot(np.arange(1, len(curve) + 1), curve, marker="o", markersize=3, label=method)
            elif len(curve) == 1:
                style = next(styles)
                ax.axhline(curve[0], color="0.4", linestyle=style, linewidth=1, label=method)
        ax.set_xlabel("updates, counted from the first batch")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_ylabel(f"NLPD of the first batch of {name}")
        limit_height(ax)
    axes[0, 0].legend(fontsize=7)
    return figure


def _oldest(scores: list) -> list[float]:
    """NLPD of the first batch with held-out data, after each step from there on."""
    first = next((b for row in scores for b, s in enumerate(row) if s is not None), None)
    if first is None:
        return []
    return [row[first].nlpd for row in scores if len(row) > first and row[first] is not None]


def _panel(ax: Any, model: Any, problem: Problem, name: str, step: int) -> None:
    past = merged(problem.train[:step]).get(name)
    new: Data = problem.train[step]
    plot.channel(
        model, name, x=_span(problem, name), data=new.get(name), past=past, legend=False, ax=ax
    )


def _span(problem: Problem, name: str) -> np.ndarray:
    x = merged(problem.train)[name][0]
    return np.linspace(x.min(), x.max(), 400)


def _same_height(axes: Any) -> None:
    for row in axes:
        limits = [ax.get_ylim() for ax in row if ax.has_data()]
        for ax in row:
            if limits and ax.has_data():
                ax.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))
