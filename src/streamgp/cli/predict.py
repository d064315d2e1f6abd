"""`streamgp predict`: the predictions of a saved model at the inputs of a table."""

from pathlib import Path

import pandas as pd

import streamgp as sgp
from streamgp.cli import tables
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
) -> None:
    """Write the inputs of a table and the predictions there.

    Args:
        path: The model's file.
        source: The table's file, or `-` for standard input.
        out: The file to write, or `-` for standard output.
        channels: The names of the channels to predict; by default all of them.
        level: The probability of the intervals.
        format: The format of the table, if the name of its file does not tell.

    Raises:
        DataError: If the table has no rows or lacks an input column.
    """
    model = sgp.load(path)
    inputs = list(model.input_names)
    frames = []
    for piece in tables.pieces(source, _ROWS, inputs, format=format):
        missing = [name for name in inputs if name not in piece]
        if missing:
            raise DataError(
                problem(f"the input columns {inputs}", f"a table without {missing}", "Add them.")
            )
        frames.append(predicted(model, piece[inputs], channels or list(model.channels), level))
    if not frames:
        raise DataError(problem("at least one row", f"none in {source}", "Add rows of inputs."))
    tables.write(pd.concat(frames, ignore_index=True), out, format if out == "-" else None)


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
