"""`streamgp run`: stream a table into a model. A run may be stopped at any moment and continued.

A snapshot is one file. It holds the model, the number of rows that the model has learned and the
size that the file of predictions had at that time. A run that finds a snapshot continues from it.

- From a file, it leaves out the rows that were learned. Batches begin where they would have begun,
  so that the model ends as if the run had never been stopped.
- A file that is followed is continued after the place that the snapshot has, even if the file was
  rotated since. Rows wait there until their batch is complete.
- From standard input, it learns every row. Only a caller who sends the same rows again asks to
  leave out those that were learned.
- It cuts off the predictions that were written after the snapshot, and writes them again.
"""

import dataclasses
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import streamgp as sgp
from streamgp.cli import follow, tables
from streamgp.cli.bookkeeping import Bookkeeping
from streamgp.cli.prequential import Predictions, as_observations, predicted, scored
from streamgp.configuration import Config
from streamgp.errors import ConfigurationError, problem
from streamgp.online.report import UpdateReport
from streamgp.sources import Place

_HISTORY = 256  # the largest number of scores that a snapshot keeps


class Run:
    """A model, the number of rows it has learned, and the files that both are saved in."""

    def __init__(self, config: Config, path: Path, out: Path | None, *, resume: bool):
        self.config, self.path = config, path
        self.model = sgp.load(path) if resume and path.exists() else config.build()
        self.book = Bookkeeping.of(self.model)
        if resume and path.exists():
            self._check_same_configuration()
        self.predictions = None if out is None else Predictions(out)
        if self.predictions is not None:
            self.predictions.begin(self.book.predictions)

    @property
    def rows(self) -> int:
        """How many rows the model has learned, in this run and before it."""
        return self.book.rows

    @property
    def place(self) -> Place | None:
        """How far a file that is followed was read."""
        return None if self.book.place is None else Place(**self.book.place)

    @place.setter
    def place(self, place: Place | None) -> None:
        self.book.place = None if place is None else dataclasses.asdict(place)

    def _check_same_configuration(self) -> None:
        if self.book.config == self.config.meaning:
            return
        made = "another one" if self.book.config else "a model that `streamgp run` has not made"
        raise ConfigurationError(
            problem(
                f"the configuration that {self.path} was made with",
                made,
                "Use that configuration, name another file with `--model`, or start a new model "
                "with `--restart`.",
            )
        )

    def take(self, frame: pd.DataFrame) -> UpdateReport:
        """Predict the rows, then learn them."""
        data = self.config.data
        made = None
        if self.predictions is not None:
            made = predicted(self.model, as_observations(frame, data), data.columns)
        learn = self.model.update_many if self.config.stream.samples else self.model.update
        report = learn(frame, inputs=data.inputs, channel=data.channel, value=data.value)
        if self.predictions is not None and made is not None and len(made):
            self.predictions.append(scored(made, report))
        self.book.rows += len(frame)
        self._remember(report)
        return report

    def _remember(self, report: UpdateReport) -> None:
        """Keep the scores. When there are too many, keep every second one."""
        scores = {name: float(score) for name, score in report.log_predictive.items()}
        self.book.history.append({"rows": self.rows, "log_predictive": scores})
        if len(self.book.history) > _HISTORY:
            self.book.history = self.book.history[1::2]

    def save(self) -> None:
        """Write a snapshot: the model and its bookkeeping, in one file and in one step."""
        self.book.config = self.config.meaning
        self.book.predictions = 0 if self.predictions is None else self.predictions.size
        self.book.put_into(self.model)
        self.model.save(self.path)


def run(
    config: Config,
    source: str,
    path: Path,
    *,
    out: Path | None = None,
    resume: bool = True,
    skip_learned: bool = False,
    is_followed: bool = False,
    format: str | None = None,  # noqa: A002
) -> bool:
    """Stream a table into a model.

    Args:
        config: What the model is and how its data come.
        source: The table's file, or `-` for standard input.
        path: The file of the snapshot.
        out: The file of predictions, if any.
        resume: Whether to continue from a snapshot that exists.
        skip_learned: Whether the rows of standard input begin again with the first one, so that
            those that were learned are left out. Rows of files that were learned always are.
        is_followed: Whether to wait for further rows at the end of the file.
        format: The format of the table, if the name of its file does not tell.

    Returns:
        Whether the table was read to its end. If not, the run was interrupted.
    """
    console = Console(stderr=True)
    running = Run(config, path, out, resume=resume)
    feed = _feed(running, source, console, skip_learned, is_followed, format)
    with _interruptions() as interrupted, _bar(console, running.rows) as show:
        saved, is_due = time.monotonic(), False
        for frame, place in feed:
            if frame is not None:
                show(len(frame), running.take(frame))
            is_due |= frame is not None or place != running.place
            running.place = place
            if is_due and (interrupted or time.monotonic() - saved >= config.stream.snapshot):
                running.save()
                saved, is_due = time.monotonic(), False
            if interrupted:
                break
        else:
            if running.rows:
                running.save()
    if interrupted:
        console.print(
            f"Interrupted. {running.rows:,} rows are learned and saved in {path}. "
            "The same command continues from there.",
            soft_wrap=True,
        )
        return False
    if running.predictions is not None:
        running.predictions.end()
    console.print(f"{running.model!r}\nModel: {path}")
    return True


def _feed(
    running: Run,
    source: str,
    console: Console,
    skip_learned: bool,
    is_followed: bool,
    format: str | None,  # noqa: A002
) -> Iterator[follow.Piece]:
    """The rows that were not learned yet, and a word on where they begin."""
    config, place = running.config, running.place
    skip = running.rows if skip_learned or source != tables.STDIN else 0
    columns, size = config.data.columns, config.stream.batch
    if is_followed:
        skip = 0 if place is not None else skip
        feed = follow.Feed(source, size, columns, place=place, skip=skip, format=format)
        if running.rows:
            told = follow.told(running.path, source, running.rows, skip, feed.is_lost)
            console.print(told, soft_wrap=True)
        return iter(feed)
    if place is not None and source != tables.STDIN:
        raise ConfigurationError(
            problem(
                f"`--follow`, with which {running.path} was made",
                "a file whose rows are to be counted from its begin",
                "Add `--follow`, or start a new model with `--restart`.",
            )
        )
    if running.rows:
        console.print(_continued(running.path, source, running.rows, skip), soft_wrap=True)
    frames = tables.pieces(source, size, columns, skip=skip, format=format)
    return (follow.Piece(frame, place) for frame in frames)


def _continued(path: Path, source: str, rows: int, skip: int) -> str:
    """Say what happens to the rows at the beginning of the table."""
    if skip:
        where = "standard input" if source == tables.STDIN else source
        return f"{path} has learned {rows:,} rows. The first {skip:,} rows of {where} are skipped."
    return f"{path} has learned {rows:,} rows. No row of standard input is skipped."


@contextmanager
def _interruptions() -> Iterator[list[int]]:
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
def _bar(console: Console, done: int) -> Iterator[Any]:
    columns = (
        TextColumn("rows"), BarColumn(bar_width=20), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("{task.fields[last]}"),
    )  # fmt: skip
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("rows", total=None, completed=done, last="")

        def show(more: int, report: UpdateReport) -> None:
            scores = ", ".join(f"{n} {s:.2f}" for n, s in report.log_predictive.items())
            progress.update(task, advance=more, last=f"{report.result} {scores}")

        yield show
