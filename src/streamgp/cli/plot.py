"""`streamgp plot`: draw a saved model: its channels, their forecasts, or their components."""

from pathlib import Path

import streamgp as sgp
from streamgp.cli.forecast import length
from streamgp.errors import ConfigurationError, problem
from streamgp.plot import style


def run(
    path: Path,
    out: Path,
    *,
    channels: list[str] | None = None,
    forecast: str | None = None,
    calibrated: bool = False,
    components: bool = False,
) -> None:
    """Draw a saved model.

    Args:
        path: The model's file.
        out: The file of the picture; its name tells the format.
        channels: The names of the channels to draw; by default all of them.
        forecast: How far to look ahead of the latest input, as text such as "2D". Without
            components the picture is then a fan chart.
        calibrated: Whether the bands of a fan chart are calibrated by what the stream has shown.
        components: Whether to draw what a channel is the sum of.

    Raises:
        ImportError: If matplotlib is missing.
        DataError: If the model has no data or too many inputs, or a name is unknown.
        ConfigurationError: If there are components of several channels to draw.
    """
    plt = style.pyplot()
    plt.switch_backend("Agg")
    model, ahead = sgp.load(path), None if forecast is None else length(forecast)
    if components:
        axes = sgp.plot.components(model, _one(channels or list(model.channels)), ahead=ahead)
    elif ahead is not None:
        axes = sgp.plot.forecasts(model, ahead, names=channels, calibrated=calibrated)
    else:
        axes = sgp.plot.channels(model, channels)
    figure = axes.flat[0].figure
    figure.savefig(out, dpi=150)
    plt.close(figure)


def _one(names: list[str]) -> str:
    if len(names) > 1:
        raise ConfigurationError(
            problem("one channel whose components to draw", f"{names}", "Name it with --channel.")
        )
    return names[0]
