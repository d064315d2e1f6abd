"""`streamgp predict`: the predictions of a saved model at the inputs of a table."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

import streamgp as sgp
from streamgp.cli import tables
from streamgp.cli.bookkeeping import Bookkeeping
from streamgp.cli.cells import Reading, kinds_of
from streamgp.cli.left_out import LeftOut
from streamgp.configuration import Data
from streamgp.errors import DataError, problem

_ROWS = 4096


def run(
    path: Path,
    source: str,
    out: str,
    *,
    channels: list[str] | None = None,
    level: float = 0.95,
    format: str | None = None,  # noqa: A002
    on_error: str = "stop",
) -> None:
    """Write the inputs of a table and the predictions there.

    Args:
        path: The model's file.
        source: The table's file, or `-` for standard input.
        out: The file to write, or `-` for standard output.
        channels: The names of the channels to predict; by default all of them.
        level: The probability of the intervals.
        format: The format of the table, if the name of its file does not tell.
        on_error: Whether to "stop" at a row that cannot be used, or to "skip" it.

    Raises:
        DataError: If the table has no rows or lacks an input column, or a row cannot be used.
    """
    model = sgp.load(path)
    data = layout(model, Bookkeeping.of(model).config)
    frames = [
        predicted(model, rows[data.columns], channels or list(model.channels), level)
        for rows in inputs(source, data, kinds_of(model.axes), on_error=on_error, format=format)
    ]
    tables.write(pd.concat(frames, ignore_index=True), out, format if out == "-" else None)


def layout(model: sgp.ContinualGP, config: Mapping[str, Any] | None) -> Data:
    """The input columns of a model, with dates as the configuration of its run has them."""
    known = {} if config is None else config["data"]
    return Data(list(model.input_names), format=Data(**known).formats if known else None)


def inputs(
    source: str,
    data: Data,
    kinds: Mapping[str, str],
    *,
    on_error: str,
    required: Sequence[str] = (),
    format: str | None = None,  # noqa: A002
) -> Iterator[pd.DataFrame]:
    """The rows of a table of inputs.

    Args:
        source: The table's file, or `-` for standard input.
        data: Which columns the inputs are.
        kinds: What they hold.
        on_error: Whether to "stop" at a row that cannot be used, or to "skip" it.
        required: Further columns in which every row needs a value.
        format: The format of the table, if the name of its file does not tell.

    Raises:
        DataError: If there are no rows or a column is missing, or a row cannot be used.
    """
    console = Console(stderr=True)
    reading = Reading(data, {}, kinds, required=required)
    left_out = LeftOut(source, skips=on_error == "skip", how="`--on-error skip`", console=console)
    is_empty = True
    for piece in tables.pieces(source, _ROWS, format=format, text=[*data.formats]):
        rows, bad = reading.read(piece)
        left_out.take(bad)
        if len(rows):
            is_empty = False
            yield rows
    if left_out.count:
        console.print(left_out.summary, soft_wrap=True, markup=False)
    if is_empty:
        raise DataError(problem("at least one row", f"none in {source}", "Add rows of inputs."))


def predicted(
    model: sgp.ContinualGP, inputs: pd.DataFrame, channels: list[str], level: float
) -> pd.DataFrame:
    """Inputs with columns for each channel."""
    columns = {
        f"{name}_{what}": values
        for name in channels
        for what, values in model.predict(inputs, name).columns(level).items()
    }
    return inputs.assign(**columns)
