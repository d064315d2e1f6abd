"""Pictures: the lines and bands that a page draws of a model over one input."""

from typing import Any

import numpy as np

import streamgp as sgp
from streamgp.errors import DataError, problem
from streamgp.plot.bands import has_classes, is_binary
from streamgp.service.cache import Live
from streamgp.service.reports import Row
from streamgp.service.settings import Limits
from streamgp.service.sizes import check_answer, check_inputs
from streamgp.service.wire import plain, written

_AHEAD = 0.15  # of the shown past, that the picture looks ahead


def picture(
    live: Live,
    rows: tuple[Row, ...],
    *,
    points: int,
    last: float | None,
    level: float,
    limits: Limits,
    components: bool = False,
) -> bytes:
    """What to draw, as JSON.

    Args:
        live: The model.
        rows: Its latest observations.
        points: The number of inputs of each line.
        last: How far the picture reaches back from the latest input, in the model's units (days,
            for times); None for everything.
        level: The probability of the bands.
        limits: How much may be asked for.
        components: Whether to show what each channel is the sum of, too.

    Returns:
        The inputs, where the forecast begins, per channel the middle and the band or the
        probabilities of classes, the latest observations, and the inducing points.

    Raises:
        DataError: If the model has several inputs.
        RefusedError: If it is too much.
    """
    model = live.model
    if model.state is None:
        return written({"x": [], "latest": None, "channels": {}, "rows": [], "inducing": []})
    if len(model.axes) != 1:
        raise DataError(
            problem("a model of one input", f"one of {len(model.axes)}", "Use `predict`.")
        )
    (axis,) = model.axes
    newest = float(model._version.progress.latest)
    inducing = np.unique(np.concatenate([z[:, 0] for z in model.inducing_points]))
    oldest = float(inducing.min()) if last is None else max(newest - last, float(inducing.min()))
    span = max(newest - oldest, 1e-9 * max(abs(newest), 1.0))
    x = np.linspace(oldest, newest + _AHEAD * span, points)
    shown = inducing[(inducing >= oldest) & (inducing <= x[-1])]
    check_inputs(points, len(model.channels), limits)
    channels = {
        name: _channel(model.predict(axis.values(x), name), level, components)
        for name in model.channels
    }
    check_answer(channels, limits)
    return written(
        {
            "update": model._version.progress.updates,
            "x": axis.values(x),
            "latest": plain(axis.values(np.array([newest])))[0],
            "channels": channels,
            "rows": [row._asdict() for row in rows],
            "inducing": axis.values(shown),
            "is_time": axis.is_time,
        }
    )


def _channel(prediction: sgp.Prediction, level: float, components: bool) -> dict[str, Any]:
    drawn = _band(prediction, level)
    if not components or prediction.likelihood.latents > 1:
        return drawn
    parts = {name: part.mean for name, part in prediction.components().items()}
    return {**drawn, "components": parts}


def _band(prediction: sgp.Prediction, level: float) -> dict[str, Any]:
    if has_classes(prediction):
        names = [str(label) for label in prediction.classes]
        return {"classes": dict(zip(names, prediction.probabilities.T, strict=True))}
    if is_binary(prediction):
        return {"probability": prediction.probabilities[:, 1]}
    if prediction.likelihood.observation_dim > 1:
        return {"parts": dict(zip(prediction.likelihood.columns, prediction.mean.T, strict=False))}
    lower, upper = prediction.interval(level)
    return {"mean": prediction.mean, "lower": lower, "upper": upper}
