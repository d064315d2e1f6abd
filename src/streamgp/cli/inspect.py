"""`streamgp inspect`: show what a saved model is and what it has learned, in units of its data."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import streamgp as sgp
from streamgp.cli.bookkeeping import Bookkeeping
from streamgp.online.report import percent

_LINES = 12  # the largest number of lines of the history
_TOLERANCE = 0.01  # the part of the variance that may stay open without a word


def run(path: Path, console: Console | None = None) -> None:
    """Print the channels, hyperparameters, inducing points and scores of a saved model.

    Args:
        path: The model's file.
        console: Where to print; by default standard output.
    """
    show(sgp.load(path), f"{path}: {path.stat().st_size / 1024:.1f} KiB", console or Console())


def show(model: sgp.ContinualGP, where: str, console: Console) -> None:
    """Print what a model is and what it has learned."""
    console.print(f"{model!r}\n{where}", soft_wrap=True)
    console.print(_channels(model))
    console.print(_latents(model))
    for sentence in (_budget(model), _resolution(model)):
        if sentence is not None:
            console.print(sentence, soft_wrap=True)
    history = Bookkeeping.of(model).history
    if history:
        console.print(_history(model, history))


def _channels(model: sgp.ContinualGP) -> Table:
    table = Table("channel", "kind", "observations", "hyperparameters", title="Channels")
    numbers = model.hyperparameters.get("channels", {})
    for name, count in model.observations.items():
        kind = type(model.likelihoods[name]).__name__
        table.add_row(name, kind, f"{count:,}", _numbers(numbers.get(name, {})))
    return table


def _latents(model: sgp.ContinualGP) -> Table:
    table = Table("kernel", "hyperparameters", title="Latent functions")
    for kernel in model.hyperparameters.get("latents", []):
        table.add_row(kernel["kind"], _numbers(kernel))
    if model.state is not None and model.kept_rows:
        all_rows, size = sum(model.observations.values()), model.state.kept_bytes / 1000
        kept = f"kept rows: {model.kept_rows:,} for {all_rows:,} observations, {size:,.0f} kB"
        table.caption = kept
        return table
    sizes = "+".join(str(len(points)) for points in model.inducing_points) or "no"
    left = ", ".join(map(percent, model.open_variance)) or "none"
    table.caption = f"inducing points: {sizes}\nopen variance: {left}"
    return table


def _budget(model: sgp.ContinualGP) -> str | None:
    """How much of the budget of inducing points is in use; None if there is no budget."""
    if model.kept_rows:
        return None
    budget = model._version.updater.engines.budget
    if budget is None or not model.inducing_points:
        return None
    most = max(len(points) for points in model.inducing_points)
    used = f"Budget: at most {budget} inducing points per latent function; {most} are in use."
    # A stream of single samples drops a few points at a time, so it stays a little below.
    if most < budget - budget // 8:
        return used
    spent = "spent" if most >= budget else "spent or nearly spent"
    return (
        f"{used} The budget is {spent}: new points replace old ones, and the model keeps less "
        "detail of the past. Raise `budget` to keep more."
    )


def _resolution(model: sgp.ContinualGP) -> str | None:
    """What the points leave open and how many would do; None if it is little."""
    left = max(model.open_variance, default=0.0)
    if left <= _TOLERANCE:
        return None
    return (
        f"Open variance: the inducing points leave {percent(left)} of the variance at past rows "
        f"open. About {model.suggest_budget(_TOLERANCE)} per latent function would leave "
        f"{percent(_TOLERANCE)} open."
    )


def _history(model: sgp.ContinualGP, history: list[dict[str, Any]]) -> Table:
    """Log predictive densities before learning, at evenly spaced places of the history."""
    table = Table("rows", *model.channels, title="Log predictive density before learning")
    chosen = np.unique(np.linspace(0, len(history) - 1, _LINES).round().astype(int))
    for entry in (history[index] for index in chosen):
        scores = entry["log_predictive"]
        cells = [f"{scores[name]:.3f}" if name in scores else "" for name in model.channels]
        table.add_row(f"{entry['rows']:,}", *cells)
    return table


def _numbers(parameters: Mapping[str, Any]) -> str:
    return "\n".join(f"{name} {value}" for name, value in _flat(parameters))


def _flat(parameters: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in parameters.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            for part in value:  # of a sum or a product
                yield from _flat(part, f"{prefix}{part['kind']}.")
        elif name != "kind":
            yield f"{prefix}{name}", np.array2string(np.asarray(value), precision=4)
