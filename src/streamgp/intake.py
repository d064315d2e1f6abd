"""Intake: what the user handed to `update`, checked and sorted by channel."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from streamgp.data import arrays
from streamgp.errors import DataError, problem
from streamgp.likelihoods import Likelihood

Parts = dict[str, tuple[Float[np.ndarray, "_ P"], Float[np.ndarray, " _"]]]


def gather(data: Any, y: Any, channels: Mapping[str, Likelihood], width: int | None) -> Parts:
    """Inputs and observations by channel, in the channels' order; empty ones are left out."""
    named = _named(data, y, channels)
    parts: Parts = {}
    for name in [name for name in channels if name in named]:
        where = f"channel {name!r}"
        raw_x, raw_y = _pair(named[name], where)
        if _is_empty(raw_x) and _is_empty(raw_y):
            continue
        x = arrays.inputs(raw_x, width, where)
        values = arrays.observations(raw_y, len(x), where)
        _check_support(values, channels[name], where)
        parts[name], width = (x, values), x.shape[1]
    if not parts:
        raise DataError(
            problem("at least one observation", "an empty batch", "Skip empty batches.")
        )
    return parts


def _named(data: Any, y: Any, channels: Mapping[str, Likelihood]) -> Mapping[str, Any]:
    if isinstance(data, Mapping):
        unknown = [name for name in data if name not in channels]
        if unknown:
            raise DataError(
                problem(
                    f"channels among {list(channels)}",
                    f"{unknown[0]!r}",
                    "Add it first with `add_channel`, or check the name.",
                )
            )
        if y is not None:
            raise DataError(
                problem(
                    "a dictionary {name: (x, y)} alone",
                    "a dictionary and y",
                    "Put each channel's observations into its pair.",
                )
            )
        return data
    if len(channels) > 1:
        raise DataError(
            problem(
                "a dictionary {name: (x, y)}, as the model has several channels",
                type(data).__name__,
                f"Name the channels: {list(channels)}.",
            )
        )
    if y is None:
        raise DataError(problem("inputs and observations", "inputs only", "Call `update(x, y)`."))
    return {next(iter(channels)): (data, y)}


def _pair(value: Any, where: str) -> tuple[Any, Any]:
    if not (isinstance(value, tuple | list) and len(value) == 2):
        raise DataError(
            problem(f"a pair (x, y) for {where}", type(value).__name__, "Pass inputs and values.")
        )
    return value[0], value[1]


def _is_empty(values: Any) -> bool:
    return hasattr(values, "__len__") and len(values) == 0


def _check_support(y: Float[np.ndarray, " N"], likelihood: Likelihood, where: str) -> None:
    bad = np.flatnonzero(~likelihood.valid(y))
    if len(bad):
        raise DataError(
            problem(
                f"observations of {where} in the support of {type(likelihood).__name__}",
                f"{y[bad[0]]!r} in row {bad[0]} ({len(bad)} such)",
                "Check the channel's likelihood, or leave those rows out.",
            )
        )
