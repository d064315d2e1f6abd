"""`streamgp run`: stream a table into a model. A run may be stopped at any moment and continued.

A snapshot is one file. It holds the model, the number of rows that the model has learned and the
size that the file of predictions had at that time. A run that finds a snapshot continues from it.

- From a file, it leaves out the rows that were learned. Batches begin where they would have begun,
  so that the model ends as if the run had never been stopped.
- From standard input, it learns every row. Only a caller who sends the same rows again asks to
  leave out those that were learned.
- It cuts off the predictions that were written after the snapshot, and writes them again.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import streamgp as sgp
from streamgp.cli import tables
from streamgp.cli.bookkeeping import Bookkeeping
from streamgp.configuration import Config, Data
from streamgp.errors import ConfigurationError, DataError, problem
from streamgp.online.report import UpdateReport

_HISTORY = 256  # the largest number of scores that a snapshot keeps


class Predictions:
    """The file of predictions. Each row is predicted before its batch is learned.

    CSV and JSONL files grow line by line. A Parquet file cannot grow, so its rows are collected in
    a JSONL file beside it, and it is written when the run is complete.
    """

    def __init__(self, path: Path):
        self.path, self.kind = path, tables.format_of(path)
        self.lines = path.with_suffix(".partial.jsonl") if self.kind == "parquet" else path

    def begin(self, size: int) -> None:
        """Cut off what was written after the snapshot.

        Args:
            size: The size of the file at the snapshot, in bytes. A file that does not exist yet
                is started empty, whatever the size.

        Raises:
            DataError: If the file is shorter than it was, which means that it is another one.
        """
        with open(self.lines, "ab") as file:
            there = file.tell()
            if 0 < there < size:
                raise DataError(
                    problem(
                        f"the file of predictions of the last snapshot, of at least {size} bytes",
                        f"{self.lines} of {there} bytes",
                        "Name a new file with `--predictions`.",
                    )
                )
            file.truncate(min(there, size))

    def append(self, frame: pd.DataFrame) -> None:
        """Write rows at the end, and wait until they are on disk."""
        kind = "jsonl" if self.kind == "parquet" else self.kind
        with open(self.lines, "ab") as file:
            file.write(tables.text(frame, kind, header=file.tell() == 0).encode())
            file.flush()
            os.fsync(file.fileno())

    @property
    def size(self) -> int:
        """The size of the file that grows, in bytes."""
        return self.lines.stat().st_size

    def end(self) -> None:
        """Write the Parquet file, if that was asked for."""
        if self.kind == "parquet":
            whole = [*tables.pieces(str(self.lines), 1 << 16, [])]
            tables.write(pd.concat(whole, ignore_index=True), self.path)


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
            made = _predicted(self.model, _long(frame, data), data.columns)
        learn = self.model.update_many if self.config.stream.samples else self.model.update
        report = learn(frame, inputs=data.inputs, channel=data.channel, value=data.value)
        if self.predictions is not None and made is not None and len(made):
            self.predictions.append(_scored(made, report))
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
        format: The format of the table, if the name of its file does not tell.

    Returns:
        Whether the table was read to its end. If not, the run was interrupted.
    """
    console = Console(stderr=True)
    running = Run(config, path, out, resume=resume)
    skip = running.rows if skip_learned or source != tables.STDIN else 0
    if running.rows:
        console.print(_continued(path, source, running.rows, skip), soft_wrap=True)
    pieces = tables.pieces(
        source, config.stream.batch, config.data.columns, skip=skip, format=format
    )
    with _interruptions() as interrupted, _bar(console, running.rows) as show:
        saved = time.monotonic()
        for frame in pieces:
            show(len(frame), running.take(frame))
            if interrupted or time.monotonic() - saved >= config.stream.snapshot:
                running.save()
                saved = time.monotonic()
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


# -- predictions of rows ------------------------------------------------------------------------


def _long(frame: pd.DataFrame, data: Data) -> pd.DataFrame:
    """One observation per row: inputs, channel, observed. Missing values are left out."""
    named = [*data.columns, *(name for name in (data.channel, data.value) if name is not None)]
    missing = [name for name in named if name not in frame]
    if missing:
        raise DataError(
            problem(f"the columns {named}", f"a table without {missing}", "Check [data].")
        )
    if data.channel is not None:
        names = {data.channel: "channel", data.value: "observed"}
        long = frame.rename(columns=names)[[*data.columns, "channel", "observed"]]
    else:
        long = frame.melt(id_vars=data.columns, var_name="channel", value_name="observed")
    return long[long["observed"].notna()].reset_index(drop=True)


def _predicted(model: sgp.ContinualGP, long: pd.DataFrame, inputs: list[str]) -> pd.DataFrame:
    """Predict each observation, by channel. There are no predictions before the first data."""
    parts = []
    for name in [name for name in model.channels if (long["channel"] == name).any()]:
        part = long[long["channel"] == name].copy()
        part[["predicted", "lower", "upper"]] = np.nan
        if model.state is not None:
            part = _filled(part, model.predict(part[inputs], name))
        parts.append(part)
    return pd.concat(parts, ignore_index=True) if parts else long


def _filled(part: pd.DataFrame, prediction: sgp.Prediction) -> pd.DataFrame:
    if prediction.likelihood.classes:
        return part.assign(predicted=prediction.label)
    lower, upper = prediction.interval(0.95)
    return part.assign(predicted=prediction.mean, lower=lower, upper=upper)


def _scored(made: pd.DataFrame, report: UpdateReport) -> pd.DataFrame:
    scores = pd.Series(np.nan, index=made.index)
    for name, rows in report.log_predictive_rows.items():
        scores[made["channel"] == name] = rows
    return made.assign(log_predictive=scores)
