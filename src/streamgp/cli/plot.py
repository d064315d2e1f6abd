"""`streamgp plot`: draw the predictions of a saved model, with one panel per channel."""

from pathlib import Path

import streamgp as sgp
from streamgp.plot import style


def run(path: Path, out: Path, *, channels: list[str] | None = None) -> None:
    """Draw a saved model.

    Args:
        path: The model's file.
        out: The file of the picture; its name tells the format.
        channels: The names of the channels to draw; by default all of them.

    Raises:
        ImportError: If matplotlib is missing.
        DataError: If the model has no data or more than two inputs, or a name is unknown.
    """
    plt = style.pyplot()
    plt.switch_backend("Agg")
    figure = sgp.plot.channels(sgp.load(path), channels)[0].figure
    figure.savefig(out, dpi=150)
    plt.close(figure)
