"""`streamgp reproduce`: run experiments of the paper, and write down what they show."""

import time
from pathlib import Path

import jax
from rich.console import Console
from rich.markdown import Markdown
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from streamgp.errors import ConfigurationError, problem
from streamgp.experiments import report
from streamgp.experiments.catalogue import EXPERIMENTS
from streamgp.experiments.problem import Experiment, Options
from streamgp.experiments.protocol import Outcome
from streamgp.experiments.protocol import run as run_once


def list_all() -> None:
    """Print every experiment and what it is."""
    console = Console()
    for experiment in EXPERIMENTS.values():
        console.print(f"[bold]{experiment.name:14}[/bold] {experiment.about}")


def run(
    name: str, out: Path, *, seeds: int = 1, share: float = 1.0, data: Path | None = None
) -> None:
    """Run one experiment, or all, over so many seeds."""
    if name != "all" and name not in EXPERIMENTS:
        raise ConfigurationError(
            problem("the name of an experiment, or all", repr(name), "See `--list`.")
        )
    if data is not None and not data.is_dir():
        raise ConfigurationError(problem("a folder of data", str(data), "Check the path."))
    chosen = list(EXPERIMENTS.values()) if name == "all" else [EXPERIMENTS[name]]
    console, begin = Console(), time.perf_counter()
    for experiment in chosen:
        outcomes = _outcomes(experiment, seeds, share, data, console)
        written = report.write(outcomes, out)
        console.print(Markdown(written[0].read_text().split("![")[0]))
        jax.clear_caches()  # a process may hold some thousands of programs, and then dies
    page = report.index(out)
    console.print(f"{time.perf_counter() - begin:.0f} s in all. Everything is in {page}")


def _outcomes(
    experiment: Experiment, seeds: int, share: float, data: Path | None, console: Console
) -> list[Outcome]:
    columns = (
        TextColumn("{task.description}"), BarColumn(bar_width=20), MofNCompleteColumn(),
        TimeElapsedColumn(), TextColumn("{task.fields[method]}"),
    )  # fmt: skip
    outcomes = []
    with Progress(*columns, console=console) as progress:
        able = sum(entry.make is not None for entry in experiment.methods.values())
        task = progress.add_task(experiment.name, total=seeds * able, method="")

        def told(method: str) -> None:
            progress.update(task, method=method)

        for seed in range(seeds):
            options = Options(seed, share, data)
            outcomes.append(run_once(experiment, options, told, lambda: progress.advance(task)))
    return outcomes
