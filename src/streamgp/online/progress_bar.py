"""Progress bars for work that takes seconds. They need rich (`pip install rich`)."""

import contextlib
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def progress_bar(total: int, what: str, *, shown: bool) -> Iterator[Callable[[int], None]]:
    """A function that is told how much more has been done, with a bar beside it if `shown`."""
    if not shown:
        yield lambda _: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    with Progress(what, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()) as bar:
        task = bar.add_task(what, total=total)
        yield lambda more: bar.update(task, advance=more)
