"""`streamgp predict`: what a saved model expects at the inputs of a table."""

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
    """Write inputs and predictions of every channel, or of those named."""
    model = sgp.load(path)
    inputs = list(model.input_names)
    frames = []
    for piece in tables.pieces(source, _ROWS, inputs, format=format):
        missing = [name for name in inputs if name not in piece]
        if missing:
            raise DataError(
                problem(f"the input columns {inputs}", f"a table without {missing}", "Add them.")
            )
        frames.append(_predicted(model, piece[inputs], channels or list(model.channels), level))
    if not frames:
        raise DataError(problem("at least one row", f"none in {source}", "Give it inputs."))
    tables.write(pd.concat(frames, ignore_index=True), out, format if out == "-" else None)


def _predicted(
    model: sgp.ContinualGP, inputs: pd.DataFrame, channels: list[str], level: float
) -> pd.DataFrame:
    predicted = {
        f"{name}_{what}": values
        for name in channels
        for what, values in model.predict(inputs, name).columns(level).items()
    }
    return inputs.assign(**predicted)
