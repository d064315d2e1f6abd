"""What runs share: signals that stop them, and a line that shows how far they are."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


@contextmanager
def interruptions() -> Iterator[list[int]]:
    """Collect signals to stop, so that the current batch is learned and saved first."""
    received: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if received:  # the second signal stops the run at once
            raise KeyboardInterrupt
        received.append(number)

    kinds = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(kind, note) for kind in kinds]
    try:
        yield received
    finally:
        for kind, handler in zip(kinds, before, strict=True):
            signal.signal(kind, handler)


@contextmanager
def bar(console: Console, done: int) -> Iterator[Callable[[int, str], None]]:
    """A line that shows how many rows are learned. What it gives is called with more of them."""
    columns = (
        TextColumn("rows"), BarColumn(bar_width=20), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("{task.fields[last]}"),
    )  # fmt: skip
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("rows", total=None, completed=done, last="")

        def show(more: int, last: str) -> None:
            progress.update(task, advance=more, last=last)

        yield show
