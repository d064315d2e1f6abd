"""`streamgp-lab bench`: measure streamgp and other libraries, and write reports."""

import os
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from streamgp_lab.cli import listing
from streamgp_lab.progress import bar
from streamgp_lab.races.benchmark import Settings
from streamgp_lab.races.catalogue import BENCHMARKS
from streamgp_lab.races.environments import checkout
from streamgp_lab.reporting.page import index
from streamgp_lab.reporting.report import show, write


def list_all() -> None:
    """Print every benchmark and what it is."""
    listing.show({name: benchmark.about for name, benchmark in BENCHMARKS.items()})


def run(
    names: Sequence[str], out: Path, *, peers: Path, repeats: int = 3, share: float = 1.0,
    against: str | None = None, full: bool = False, only: Sequence[str] = (),
    own: bool = False,
) -> None:  # fmt: skip
    """Run these benchmarks, or all of them, one at a time so that none disturbs another."""
    todo = listing.chosen(names, BENCHMARKS, "a benchmark")
    listing.check_numbers(share, repeats=repeats)
    console = Console()
    with checkout(against) as source:
        settings = Settings(peers, repeats, share, source, full, tuple(only), own)
        for name in todo:
            before = _cpu()
            with bar(name) as line:
                for report in BENCHMARKS[name].measure(settings, line):
                    text = write(report, out)
            show(text, console)
            console.print(f"{name}: {_cpu() - before:.0f} CPU s with all processes.")
    page = index(out, "streamgp and other libraries")
    console.print(f"All results: {page}")


def _cpu() -> float:
    """CPU seconds of this process and of those that it started and that have ended."""
    return sum(os.times()[:4])
