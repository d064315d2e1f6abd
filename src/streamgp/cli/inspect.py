"""`streamgp inspect`: what a saved model is and knows, in the units of its data."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import streamgp as sgp

_LINES = 12  # of the history


def run(path: Path, console: Console | None = None) -> None:
    """Print channels, inducing points, hyperparameters and the history of scores."""
    console, model = console or Console(), sgp.load(path)
    console.print(f"{model!r}\n{path}: {path.stat().st_size / 1024:.1f} KiB")
    console.print(_channels(model))
    console.print(_latents(model))
    if model.notes.get("history"):
        console.print(_history(model))


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
    sizes = "+".join(str(len(points)) for points in model.inducing_points) or "no"
    table.caption = f"{sizes} inducing points"
    return table


def _history(model: sgp.ContinualGP) -> Table:
    """Log predictive densities before learning, evenly chosen among those there are."""
    history = model.notes["history"]
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
        elif name != "kind":
            yield f"{prefix}{name}", np.array2string(np.asarray(value), precision=4)
