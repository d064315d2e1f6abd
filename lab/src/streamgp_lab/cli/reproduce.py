"""`streamgp-lab reproduce`: run experiments of the paper and write reports."""

import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from streamgp.errors import ConfigurationError, problem
from streamgp_lab.cli import listing
from streamgp_lab.experiments import overview
from streamgp_lab.experiments.catalogue import EXPERIMENTS
from streamgp_lab.experiments.experiment import Options
from streamgp_lab.experiments.protocol import run as run_once
from streamgp_lab.experiments.summary import report
from streamgp_lab.progress import Bar, bars
from streamgp_lab.reporting.page import index
from streamgp_lab.reporting.report import show, write


class Job(NamedTuple):
    """One experiment with several seeds, and the folder for its report."""

    name: str
    out: Path
    seeds: int
    share: float
    data: Path | None


def list_all() -> None:
    """Print every experiment and what it is."""
    listing.show({name: experiment.about for name, experiment in EXPERIMENTS.items()})


def run(
    names: Sequence[str], out: Path, *, seeds: int = 1, share: float = 1.0,
    data: Path | None = None, jobs: int = 2,
) -> None:  # fmt: skip
    """Run these experiments, or all of them, with `jobs` at a time."""
    todo = listing.chosen(names, EXPERIMENTS, "an experiment")
    listing.check_numbers(share, seeds=seeds, jobs=jobs)
    if data is not None and not data.is_dir():
        raise ConfigurationError(problem("a folder of data", str(data), "Check the path."))
    begin = time.perf_counter()
    _run_all([Job(name, out, _seeds(name, seeds), share, data) for name in todo], jobs)
    overview.write(out)
    page = index(out, "The experiments of Continual Multi-task Gaussian Processes")
    Console().print(f"{time.perf_counter() - begin:.0f} s in total. All results: {page}")


def _run_all(todo: Sequence[Job], jobs: int) -> None:
    """Run each job in its own process."""
    spawn = get_context("spawn")  # threads of BLAS do not survive a fork
    pool = ProcessPoolExecutor(jobs, spawn, max_tasks_per_child=1)
    with spawn.Manager() as manager, bars() as progress:
        news = manager.Queue()
        lines = {job.name: Bar(progress, job.name, job.seeds * _able(job.name)) for job in todo}
        order = sorted(todo, key=lambda job: not EXPERIMENTS[job.name].long)
        waiting = {pool.submit(_run, job, news) for job in order}
        try:
            while waiting:
                done, waiting = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
                while not news.empty():
                    name, method = news.get()
                    lines[name].show(method)
                    lines[name].advance(not method)
                for future in done:
                    show(future.result(), Console())
        finally:
            pool.shutdown(wait=not waiting, cancel_futures=True)


def _seeds(name: str, seeds: int) -> int:
    """How many seeds an experiment is run with; one if its data do not depend on it."""
    return seeds if EXPERIMENTS[name].drawn else 1


def _able(name: str) -> int:
    """The number of methods that can run in an experiment."""
    return sum(entry.make is not None for entry in EXPERIMENTS[name].methods.values())


def _run(job: Job, news: Any) -> Path:
    """In another process: run an experiment, tell which method is running, write the report."""

    def tell(method: str = "") -> None:
        news.put((job.name, method))

    outcomes = [
        run_once(EXPERIMENTS[job.name], Options(seed, job.share, job.data), tell, tell)
        for seed in range(job.seeds)
    ]
    return write(report(outcomes, time.process_time()), job.out)
