"""Summary: a model's hyperparameters as names and numbers."""

import html
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from streamgp.data.axes import Axis, input_names
from streamgp.likelihoods import Likelihood
from streamgp.model.multitask import MultiTaskGP
from streamgp.parameters import Module, fields_of, unwrap


def describe(model: MultiTaskGP, names: Sequence[str], axes: Sequence[Axis] = ()) -> dict[str, Any]:
    """Every hyperparameter by name, in the user's units; and the unit of each input."""
    plain = unwrap(model)
    return {
        "inputs": dict(zip(input_names(axes), map(str, axes), strict=True)),
        "latents": [_numbers_of(kernel) for kernel in plain.kernels],
        "channels": {
            name: {"weights": channel.loadings, **_numbers_of(channel.likelihood)}
            for name, channel in zip(names, plain.channels, strict=True)
        },
    }


def mean_weights(
    plain: MultiTaskGP, names: Sequence[str], weights: Float[np.ndarray, "O B"]
) -> dict[str, dict[str, Float[np.ndarray, "..."]]]:
    """Where the mean of each channel started, and the expected weights of its functions, by name.

    Args:
        plain: The model.
        names: Of its channels.
        weights: Of the mean functions of all latent parameters.
    """
    found = {}
    for channel, first, name in zip(plain.channels, plain.outputs.first, names, strict=True):
        own = weights[first : first + len(channel.offset), : channel.mean.size]
        found[name] = {"offset": channel.offset.copy(), "weights": own}
    return found


def table(about: str, likelihoods: Mapping[str, Likelihood], seen: Mapping[str, int]) -> str:
    """Channels, families and numbers of observations in HTML."""
    rows = "".join(
        f"<tr><td>{html.escape(name)}</td><td>{type(likelihood).__name__}</td>"
        f"<td style='text-align:right'>{seen[name]:,}</td></tr>"
        for name, likelihood in likelihoods.items()
    )
    return (
        f"<table><caption>{about}</caption>"
        "<thead><tr><th>channel</th><th>likelihood</th><th>observations</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )


def _numbers_of(module: Module) -> dict[str, Any]:
    """The numbers in a module, nested as the module is."""
    numbers: dict[str, Any] = {"kind": type(module).__name__}
    for name, value in fields_of(module):
        if isinstance(value, Module):
            numbers[name] = _numbers_of(value)
        elif isinstance(value, tuple) and any(isinstance(part, Module) for part in value):
            numbers[name] = [_numbers_of(part) for part in value]
        elif isinstance(value, tuple) and value and all(map(_is_number, value)):
            numbers[name] = [_plain(part) for part in value]
        elif _is_number(value):
            numbers[name] = _plain(value)
    return numbers


def _is_number(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.number | int | float)


def _plain(value: Any) -> Any:
    return np.asarray(value).item() if np.size(value) == 1 else np.asarray(value)
