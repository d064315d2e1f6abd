"""Progress bars: what is running, how much is done, and how long it has taken."""

import contextlib
import sys
from collections.abc import Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


def bars() -> Progress:
    """A display for bars. If standard output is not a terminal it uses standard error."""
    terminal = sys.stdout.isatty()
    return Progress(
        TextColumn("{task.description}"), BarColumn(bar_width=20), MofNCompleteColumn(),
        TimeElapsedColumn(), TextColumn("{task.fields[running]}"),
        console=Console(stderr=not terminal), redirect_stdout=terminal,
    )  # fmt: skip


class Bar:
    """One line of a display."""

    def __init__(self, progress: Progress, name: str, total: float | None = None):
        self._progress = progress
        self._task = progress.add_task(name, total=total, running="")

    def expect(self, total: float) -> None:
        """Set how many steps there are."""
        self._progress.update(self._task, total=total)

    def show(self, running: str) -> None:
        """Name what is running now."""
        self._progress.update(self._task, running=running)

    def advance(self, steps: float = 1) -> None:
        """Add steps that are done."""
        self._progress.update(self._task, advance=steps)


@contextlib.contextmanager
def bar(name: str, total: float | None = None) -> Iterator[Bar]:
    """A display with a single bar."""
    with bars() as progress:
        yield Bar(progress, name, total)
