"""`streamgp reproduce`: run experiments of the paper, and write down what they show."""

import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.markdown import Markdown
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from streamgp.errors import ConfigurationError, problem
from streamgp.numerics.compiling import use_compilation_cache
from streamgp_lab.experiments import report
from streamgp_lab.experiments.catalogue import EXPERIMENTS
from streamgp_lab.experiments.problem import Options
from streamgp_lab.experiments.protocol import run as run_once

_COLUMNS = (
    TextColumn("{task.description}"), BarColumn(bar_width=20), MofNCompleteColumn(),
    TimeElapsedColumn(), TextColumn("{task.fields[method]}"),
)  # fmt: skip


class Job(NamedTuple):
    """One experiment over so many seeds, and where it is written down."""

    name: str
    out: Path
    seeds: int
    share: float
    data: Path | None


def list_all() -> None:
    """Print every experiment and what it is."""
    console = Console()
    for experiment in EXPERIMENTS.values():
        console.print(f"[bold]{experiment.name:14}[/bold] {experiment.about}")


def run(
    names: Sequence[str], out: Path, *, seeds: int = 1, share: float = 1.0,
    data: Path | None = None, jobs: int = 2,
) -> None:  # fmt: skip
    """Run these experiments, or all, so many at a time."""
    for name in names:
        if name != "all" and name not in EXPERIMENTS:
            raise ConfigurationError(
                problem("the name of an experiment, or all", repr(name), "See `--list`.")
            )
    if data is not None and not data.is_dir():
        raise ConfigurationError(problem("a folder of data", str(data), "Check the path."))
    if min(seeds, jobs) < 1 or not 0 < share <= 1:
        got = f"seeds={seeds}, jobs={jobs}, share={share}"
        raise ConfigurationError(
            problem("at least one seed and job, a share up to 1", got, "Leave them out.")
        )
    chosen = list(EXPERIMENTS) if "all" in names else list(dict.fromkeys(names))
    console, begin = Console(), time.perf_counter()
    _run_all([Job(name, out, seeds, share, data) for name in chosen], jobs, console)
    page = report.index(out)
    console.print(f"{time.perf_counter() - begin:.0f} s in all. Everything is in {page}")


def _run_all(todo: Sequence[Job], jobs: int, console: Console) -> None:
    """Each in a process of its own: one that compiled all their programs would run out of room."""
    apart = get_context("spawn")  # JAX has threads, and threads do not survive a fork
    pool = ProcessPoolExecutor(jobs, apart, max_tasks_per_child=1)
    with apart.Manager() as manager, Progress(*_COLUMNS, console=console) as progress:
        news = manager.Queue()
        tasks = {job.name: _add(progress, job) for job in todo}
        order = sorted(todo, key=lambda job: not EXPERIMENTS[job.name].long)
        waiting = {pool.submit(_apart, job, news) for job in order}
        try:
            while waiting:
                done, waiting = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
                while not news.empty():
                    name, method = news.get()
                    progress.update(tasks[name], advance=not method, method=method)
                for future in done:
                    console.print(Markdown(future.result().read_text().split("![")[0]))
        finally:
            pool.shutdown(wait=not waiting, cancel_futures=True)


def _add(progress: Progress, job: Job) -> Any:
    able = sum(entry.make is not None for entry in EXPERIMENTS[job.name].methods.values())
    return progress.add_task(job.name, total=job.seeds * able, method="")


def _apart(job: Job, news: Any) -> Path:
    """In another process: run an experiment and write it down; which method is at work is news."""
    use_compilation_cache()

    def tell(method: str = "") -> None:
        news.put((job.name, method))

    outcomes = [
        run_once(EXPERIMENTS[job.name], Options(seed, job.share, job.data), tell, tell)
        for seed in range(job.seeds)
    ]
    return report.write(outcomes, job.out)[0]
