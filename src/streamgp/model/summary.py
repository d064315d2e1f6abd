"""Summary: a model's hyperparameters as names and numbers."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import numpy as np
import paramax

from streamgp.data.axes import Axis, input_names
from streamgp.model.multitask import Generative


def describe(model: Generative, names: Sequence[str], axes: Sequence[Axis] = ()) -> dict[str, Any]:
    """Every hyperparameter by name, in the user's units; and the unit of each input."""
    plain = paramax.unwrap(model)
    return {
        "inputs": dict(zip(input_names(axes), map(str, axes), strict=True)),
        "latents": [_numbers_of(kernel) for kernel in plain.kernels],
        "channels": {
            name: {
                "weights": np.asarray(channel.scale[:, None] * channel.weights),
                **_numbers_of(channel.likelihood),
            }
            for name, channel in zip(names, plain.channels, strict=True)
        },
    }


def _numbers_of(module: eqx.Module) -> dict[str, Any]:
    """The numbers in a module, nested as the module is."""
    numbers: dict[str, Any] = {"kind": type(module).__name__}
    for field in dataclasses.fields(module):
        value = getattr(module, field.name)
        if isinstance(value, eqx.Module):
            numbers[field.name] = _numbers_of(value)
        elif eqx.is_array_like(value):
            numbers[field.name] = (
                np.asarray(value).item() if np.size(value) == 1 else np.asarray(value)
            )
    return numbers
