"""`streamgp run`: a table streams into a model, and may be broken off at any moment.

A snapshot is one file that holds the model, how many rows it has learned and how long the file of
predictions was then. A run that finds one goes on from it: rows that were learned are skipped,
predictions written since are cut off, batches begin where they would have begun. The model so ends
as if nothing had happened.
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
from streamgp.cli.config import Config, Data
from streamgp.errors import ConfigurationError, DataError, problem
from streamgp.online.report import UpdateReport

_HISTORY = 256  # scores that a snapshot keeps


class Predictions:
    """The file of predictions, made for each row before its batch was learned.

    Lines are appended; Parquet, which cannot be, is made of them when all is done.
    """

    def __init__(self, path: Path):
        self.path, self.kind = path, tables.format_of(path)
        self.lines = path.with_suffix(".partial.jsonl") if self.kind == "parquet" else path

    def begin(self, size: int) -> None:
        """Cut off what was written after the snapshot."""
        with open(self.lines, "ab") as file:
            file.truncate(size)

    def append(self, frame: pd.DataFrame) -> None:
        kind = "jsonl" if self.kind == "parquet" else self.kind
        with open(self.lines, "ab") as file:
            file.write(tables.text(frame, kind, header=file.tell() == 0).encode())
            file.flush()
            os.fsync(file.fileno())

    @property
    def size(self) -> int:
        return self.lines.stat().st_size

    def end(self) -> None:
        if self.kind == "parquet":
            whole = [*tables.pieces(str(self.lines), 1 << 16, [])]
            tables.write(pd.concat(whole, ignore_index=True), self.path)


class Run:
    """A model, the rows it has learned, and where it keeps both."""

    def __init__(self, config: Config, path: Path, out: Path | None, *, resume: bool):
        self.config, self.path = config, path
        self.model = self._loaded() if resume and path.exists() else config.build()
        notes = self.model.notes
        self.rows: int = notes.get("rows", 0)
        self.history: list[dict[str, Any]] = notes.get("history", [])
        self.predictions = None if out is None else Predictions(out)
        if self.predictions is not None:
            self.predictions.begin(notes.get("predictions", 0))

    def _loaded(self) -> sgp.ContinualGP:
        model = sgp.load(self.path)
        if model.notes.get("config") != self.config.meaning:
            raise ConfigurationError(
                problem(
                    f"the configuration that {self.path} was made with",
                    "another one",
                    "Give it back, or start anew with `--restart`, or name another `--model`.",
                )
            )
        return model

    def take(self, frame: pd.DataFrame) -> UpdateReport:
        """Predict the rows, then learn them."""
        data = self.config.data
        made = None
        if self.predictions is not None:
            made = _predicted(self.model, _long(frame, data), data.columns)
        learn = self.model.update_many if self.config.stream.samples else self.model.update
        report = learn(frame, inputs=data.inputs, channel=data.channel, value=data.value)
        if self.predictions is not None and made is not None:
            self.predictions.append(_scored(made, report))
        self.rows += len(frame)
        self._remember(report)
        return report

    def _remember(self, report: UpdateReport) -> None:
        scores = {name: float(score) for name, score in report.log_predictive.items()}
        self.history.append({"rows": self.rows, "log_predictive": scores})
        if len(self.history) > _HISTORY:
            self.history = self.history[1::2]

    def save(self) -> None:
        """A snapshot, in one file, in one stroke."""
        self.model.notes.update(
            rows=self.rows,
            history=self.history,
            config=self.config.meaning,
            predictions=0 if self.predictions is None else self.predictions.size,
        )
        self.model.save(self.path)


def run(
    config: Config,
    source: str,
    path: Path,
    *,
    out: Path | None = None,
    resume: bool = True,
    format: str | None = None,  # noqa: A002
) -> bool:
    """Stream a table into a model; whether it came to its end."""
    console = Console(stderr=True)
    running = Run(config, path, out, resume=resume)
    if running.rows:
        console.print(f"{path}: {running.rows:,} rows learned before; going on from there.")
    pieces = tables.pieces(
        source, config.stream.batch, config.data.columns, skip=running.rows, format=format
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
        console.print(f"Interrupted after {running.rows:,} rows. The same command goes on.")
        return False
    if running.predictions is not None:
        running.predictions.end()
    console.print(f"{running.model!r}\nModel: {path}")
    return True


@contextmanager
def _interruptions() -> Iterator[list[int]]:
    """Signals to stop, gathered, so that a batch is finished and saved first."""
    received: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if received:  # asked twice: now
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
        task = progress.add_task("rows", total=None, completed=done, last="compiling …")

        def show(more: int, report: UpdateReport) -> None:
            scores = ", ".join(f"{n} {s:.2f}" for n, s in report.log_predictive.items())
            progress.update(task, advance=more, last=f"{report.result}; {scores}")

        yield show


# -- predictions of rows ------------------------------------------------------------------------


def _long(frame: pd.DataFrame, data: Data) -> pd.DataFrame:
    """One observation a row: inputs, channel, observed; missing ones left out."""
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
    """What the model expects of each observation, by channel; nothing before its first data."""
    parts = []
    for name in [name for name in model.channels if (long["channel"] == name).any()]:
        part = long[long["channel"] == name].copy()
        part[["predicted", "lower", "upper"]] = np.nan
        if model.state is not None:
            part = _filled(part, model.predict(part[inputs], name))
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


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
