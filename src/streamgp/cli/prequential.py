"""What `streamgp run` says of rows before it learns them, and the file that it writes this to."""

import os
from pathlib import Path

import numpy as np
import pandas as pd

import streamgp as sgp
from streamgp.cli import tables
from streamgp.configuration import Data
from streamgp.errors import DataError, problem
from streamgp.online.report import UpdateReport


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
            whole = [piece.frame for piece in tables.pieces(str(self.lines), 1 << 16)]
            tables.write(pd.concat(whole, ignore_index=True), self.path)


def as_observations(frame: pd.DataFrame, data: Data) -> pd.DataFrame:
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


def predicted(model: sgp.ContinualGP, long: pd.DataFrame, inputs: list[str]) -> pd.DataFrame:
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


def scored(made: pd.DataFrame, report: UpdateReport) -> pd.DataFrame:
    """The predictions with the density of what was observed under each."""
    scores = pd.Series(np.nan, index=made.index)
    for name, rows in report.log_predictive_rows.items():
        scores[made["channel"] == name] = rows
    return made.assign(log_predictive=scores)
