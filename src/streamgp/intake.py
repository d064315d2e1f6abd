"""Intake: what the user handed to `update`, checked and sorted by channel."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from streamgp.data import Rows, arrays
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


def gather_rows(
    x: Any, y: Any, channel: Any, channels: Mapping[str, Likelihood], width: int | None
) -> Rows:
    """Samples in the order given, each of the channel that its name says."""
    names = list(channels)
    if channel is None and len(names) > 1:
        raise DataError(
            problem(
                "the channel of each sample, as the model has several",
                "none",
                f"Pass `channel=` names among {names}.",
            )
        )
    inputs = arrays.inputs(x, width, "the samples")
    values = arrays.observations(y, len(inputs), "the samples")
    if not len(values):
        raise DataError(problem("at least one sample", "none", "Skip empty streams."))
    index = np.zeros(len(values), int) if channel is None else _indices(channel, names, len(values))
    for i in np.unique(index):
        _check_support(values[index == i], channels[names[i]], f"channel {names[i]!r}")
    return Rows(inputs, values, index)


def _indices(channel: Any, names: list[str], rows: int) -> Int[np.ndarray, " N"]:
    given = np.asarray(channel, str)
    if given.ndim == 0:
        given = np.broadcast_to(given, rows)
    unknown = sorted(set(given.tolist()) - set(names))
    if unknown or given.shape != (rows,):
        raise DataError(
            problem(
                f"{rows} channel names among {names}",
                f"{unknown[0]!r}" if unknown else f"shape {given.shape}",
                "Give one name a sample, or one for all.",
            )
        )
    return np.asarray([names.index(name) for name in given.tolist()])


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
