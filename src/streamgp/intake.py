"""Intake: what the user handed to `update`, sorted by channel."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.data import columns, frames
from streamgp.data.axes import Schema
from streamgp.errors import DataError, problem
from streamgp.likelihoods import Likelihood
from streamgp.reading import Intake, Reader


class Layout(NamedTuple):
    """Which columns of a frame are the inputs; and, if it is long, the channel and the value."""

    inputs: Any = None
    channel: Any = None
    value: Any = None


def gather(
    data: Any, y: Any, layout: Layout, channels: Mapping[str, Likelihood], schema: Schema
) -> Intake:
    """A batch: one channel after the other, in the channels' order."""
    reader = Reader(channels, schema.axes, dict(schema.labels))
    if _read_frame(reader, data, y, layout):
        return reader.intake(in_order=False)
    if layout != Layout():
        raise DataError(
            problem(
                "a frame to go with `inputs=`, `channel=` or `value=`",
                type(data).__name__,
                "Leave these out, or pass a pandas or polars frame.",
            )
        )
    named = _named(data, y, channels)
    for name in [name for name in channels if name in named]:
        raw_x, raw_y = _pair(named[name], f"channel {name!r}")
        if not (_is_empty(raw_x) and _is_empty(raw_y)):
            x = reader.inputs(raw_x, f"channel {name!r}")
            reader.add(name, x, raw_y, np.arange(len(x)))
    return reader.intake(in_order=False)


def gather_in_order(
    data: Any, y: Any, layout: Layout, channels: Mapping[str, Likelihood], schema: Schema
) -> Intake:
    """Samples in the order given; those of one row of a wide frame in the channels' order."""
    reader = Reader(channels, schema.axes, dict(schema.labels))
    if _read_frame(reader, data, y, layout):
        return reader.intake(in_order=True)
    if y is None:
        raise DataError(
            problem("inputs and observations", "inputs only", "Call `update_many(x, y)`.")
        )
    if layout.channel is None and len(channels) > 1:
        raise DataError(
            problem(
                "the channel of each sample, as the model has several",
                "none",
                f"Pass `channel=` names among {list(channels)}.",
            )
        )
    x = reader.inputs(data, "the samples")
    _by_name(reader, x, layout.channel, y, sparse=False)
    return reader.intake(in_order=True)


# -- frames --------------------------------------------------------------------------------------


def _read_frame(reader: Reader, data: Any, y: Any, layout: Layout) -> bool:
    """Read a frame, or a series with an index; false if it is neither."""
    if y is None and frames.is_indexed_series(data):
        names = list(reader.channels)
        name = data.name if data.name in names or len(names) > 1 else names[0]
        data = data.to_frame(name)
    if y is not None or not frames.is_frame(data):
        return False
    x, names = reader.frame_inputs(data, layout.inputs)
    if layout.channel is None and layout.value is None:
        _read_wide(reader, data, x, names)
        return True
    if layout.value is None or (layout.channel is None and len(reader.channels) > 1):
        raise DataError(
            problem(
                "both `channel=` and `value=`, for a long frame",
                f"{'`channel=`' if layout.value is None else '`value=`'} alone",
                "Name the column of the channels and the column of their values.",
            )
        )
    who = None if layout.channel is None else frames.pick(data, layout.channel)
    _by_name(reader, x, who, frames.pick(data, layout.value), sparse=True)
    return True


def _read_wide(reader: Reader, frame: Any, x: Float[np.ndarray, "N P"], inputs: list[Any]) -> None:
    """Every column that is no input is a channel."""
    channels = list(reader.channels)
    others = [name for name in frames.names(frame) if name not in inputs]
    if len(channels) == len(others) == 1:
        reader.add(channels[0], x, frames.pick(frame, others[0]), np.arange(len(x)), sparse=True)
        return
    unknown = [name for name in others if name not in channels]
    if unknown:
        raise DataError(
            problem(
                f"columns among the channels {channels}",
                repr(unknown[0]),
                "Drop it, or add it first with `add_channel`.",
            )
        )
    for name in [name for name in channels if name in others]:
        reader.add(name, x, frames.pick(frame, name), np.arange(len(x)), sparse=True)


def _by_name(
    reader: Reader, x: Float[np.ndarray, "N P"], who: Any, values: Any, *, sparse: bool
) -> None:
    """Samples whose channel is said by `who`: a name each, or one for all."""
    names, rows = list(reader.channels), len(x)
    if who is None or isinstance(who, str):
        given = np.full(rows, names[0] if who is None else who, object)
    else:
        column = columns.read(who, "channel names")
        given = np.asarray([str(name) for name in column.values.tolist()], object)
    unknown = sorted(set(given.tolist()) - set(names))
    if unknown or given.shape != (rows,):
        raise DataError(
            problem(
                f"{rows} channel names among {names}",
                f"{unknown[0]!r}" if unknown else f"shape {given.shape}",
                "Give one name a sample, or one for all.",
            )
        )
    if not columns.is_series(values):
        values = np.atleast_1d(columns.as_array(values, "observations of the samples"))
    if len(values) != rows:
        raise DataError(
            problem(
                f"{rows} observation(s), one a sample", f"{len(values)}", "Give one an input row."
            )
        )
    for name in names:
        own = np.flatnonzero(given == name)
        if len(own):
            reader.add(name, x[own], columns.take(values, own), own, sparse=sparse)


# -- arrays --------------------------------------------------------------------------------------


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
