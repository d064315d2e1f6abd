"""`streamgp forecast`: what a saved model says of the time after its latest input."""

from pathlib import Path

import pandas as pd

import streamgp as sgp
from streamgp.cli import tables


def run(
    path: Path,
    ahead: str,
    every: str,
    out: str,
    *,
    channels: list[str] | None = None,
    level: float = 0.95,
    calibrated: bool = False,
    format: str | None = None,  # noqa: A002
) -> None:
    """Write the predictions of a saved model at equal steps after its latest input.

    Args:
        path: The model's file.
        ahead: How far to go, as text: a duration such as "2D", a number of steps such as "48", or a
            length such as "48.0" in the units of the inputs.
        every: The length of a step, as text.
        out: The file to write, or `-` for standard output.
        channels: The names of the channels to predict; by default all of them.
        level: The probability of the intervals.
        calibrated: Whether intervals are calibrated by what the stream has shown.
        format: The format of the output, if the name of its file does not tell.

    Raises:
        DataError: If the model has no data, or a name is unknown.
        ConfigurationError: If a length makes no sense for the model's inputs.
    """
    model = sgp.load(path)
    frames = []
    for name in channels or model.channels:
        prediction = model.forecast(length(ahead, steps=True), length(every), name)
        frame = prediction.to_frame(level, calibrated=calibrated)
        inputs, *found = frame.columns
        frames.append(frame.set_index(inputs).set_axis([f"{name}_{w}" for w in found], axis=1))
    whole = pd.concat(frames, axis=1).reset_index()
    tables.write(whole, out, format if out == "-" else None)


def length(text: str, *, steps: bool = False) -> str | int | float:
    """A length from the command line: a number, or a duration as it is.

    Args:
        text: What was written.
        steps: Whether a whole number is a number of steps.
    """
    try:
        return int(text) if steps and text.strip().isdigit() else float(text)
    except ValueError:
        return text
