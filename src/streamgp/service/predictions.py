"""Predictions as answers: from what a client asks to columns of numbers."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import streamgp as sgp
from streamgp.data.horizons import inputs_ahead
from streamgp.errors import DataError, problem
from streamgp.likelihoods import class_count
from streamgp.service.cache import Live
from streamgp.service.readers import Rest
from streamgp.service.settings import Limits
from streamgp.service.shapes import PredictRequest
from streamgp.service.sizes import BRIEF, check_answer, check_inputs
from streamgp.service.wire import written


def predicted(name: str, live: Live, asked: PredictRequest, limits: Limits) -> bytes | Rest:
    """What a model says, as JSON.

    Args:
        name: Of the model, in the answer.
        live: The model.
        asked: Where, and of what.
        limits: How much may be asked for.

    Returns:
        The inputs and the columns of every channel; or what makes them, if that takes long.

    Raises:
        DataError: If the request does not fit the model.
        RefusedError: If it asks for too much.
    """
    model = live.model
    channels = _channels(model, asked.channels)
    x = _inputs(model, asked)
    check_inputs(len(x), len(channels), limits)
    make = partial(_answer, name, model, x, channels, asked, limits)
    if len(x) * len(channels) <= BRIEF:
        return make()
    check_answer(_told(model, x[:1], channels, asked), limits, len(x))
    return make


def _answer(
    name: str,
    model: sgp.ContinualGP,
    x: Any,
    channels: list[str],
    asked: PredictRequest,
    limits: Limits,
) -> bytes:
    told = _told(model, x, channels, asked)
    check_answer(told, limits)
    return written({"model": name, "update": model._version.progress.updates, **told})


def _told(
    model: sgp.ContinualGP, x: Any, channels: list[str], asked: PredictRequest
) -> dict[str, Any]:
    """The inputs, and what is predicted there."""
    answers, inputs = {}, {}
    for name in channels:
        prediction = model.predict(x, name)
        inputs = {key: column.zoned for key, column in prediction.input_columns().items()}
        answers[name] = _columns(prediction, asked)
    return {"inputs": inputs, "channels": answers}


def _channels(model: sgp.ContinualGP, asked: list[str] | None) -> list[str]:
    unknown = [name for name in asked or () if name not in model.channels]
    if unknown or asked == []:
        raise DataError(
            problem(
                f"channels among {list(model.channels)}",
                repr(unknown[0]) if unknown else "none",
                "Check the name.",
            )
        )
    return list(dict.fromkeys(asked or model.channels))


def _inputs(model: sgp.ContinualGP, asked: PredictRequest) -> Any:
    """Inputs as `predict` takes them."""
    given = asked.inputs
    if model.state is None:
        raise DataError(problem("a model with data", "one without", "Send observations first."))
    if (given is None) == (asked.ahead is None):
        raise DataError(
            problem("either `inputs` or `ahead`", "both or none of them", "Choose one.")
        )
    if given is None:
        if asked.every is None:
            raise DataError(problem("`every` with `ahead`", "none", "Give the length of a step."))
        return _ahead(model, asked.ahead, asked.every)
    if isinstance(given, dict):
        sizes = {len(column) for column in given.values()}
        if set(given) != set(model.input_names) or len(sizes) != 1:
            raise DataError(
                problem(
                    f"columns {list(model.input_names)} of one length",
                    f"{list(given)} of lengths {sorted(sizes)}",
                    "Give every input column.",
                )
            )
        return pd.DataFrame({name: given[name] for name in model.input_names})
    if given and isinstance(given[0], list):
        width = len(model.axes)
        if any(len(row) != width for row in given):
            raise DataError(problem(f"{width} inputs per row", "others", "Give all of them."))
        if width == 1:
            return [row[0] for row in given]
        columns = zip(*given, strict=True)
        return pd.DataFrame(dict(zip(model.input_names, map(list, columns), strict=True)))
    return given


def _ahead(model: sgp.ContinualGP, ahead: Any, every: Any) -> Any:
    if len(model.axes) != 1:
        raise DataError(
            problem("one input column, with `ahead`", f"{len(model.axes)}", "Give `inputs`.")
        )
    (axis,) = model.axes
    numbers = inputs_ahead(axis, model._version.progress.latest, ahead, every)
    return axis.values(numbers[:, 0])


def _columns(prediction: sgp.Prediction, asked: PredictRequest) -> dict[str, Any]:
    found: dict[str, Any] = dict(prediction.columns(asked.level))
    ordered = prediction.likelihood.ordered and prediction.likelihood.observation_dim == 1
    if ordered and not class_count(prediction.likelihood):
        if asked.calibrated:
            found["lower"], found["upper"] = prediction.interval(asked.level, calibrated=True)
        if asked.quantiles:
            found["quantiles"] = {
                f"{level:g}": np.asarray(prediction.quantile(level)) for level in asked.quantiles
            }
    if asked.components:
        found["components"] = {
            name: {"mean": part.mean, "std": part.std}
            for name, part in prediction.components().items()
        }
    return found
