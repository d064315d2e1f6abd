"""Reader: whatever a user hands over, as rows of numbers.

Arrays, dictionaries, series and frames, wide or long, all end in `Rows`.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from streamgp.data import columns, frames
from streamgp.data.axes import Axis
from streamgp.data.batch import Rows, join
from streamgp.data.observations import check_support, numbered, observed
from streamgp.data.schema import Schema, as_numbers, known_names, read_inputs
from streamgp.errors import DataError, problem
from streamgp.likelihoods import Likelihood


class Layout(NamedTuple):
    """Which columns of a frame are the inputs; and, if it is long, the channel and the value."""

    inputs: Any = None
    channel: Any = None
    value: Any = None


class Intake(NamedTuple):
    """Rows, what is now known of the data's form, and what was left out, by channel.

    `rows` is None where every value was missing.
    """

    rows: Rows | None
    schema: Schema
    dropped: dict[str, str]


@dataclasses.dataclass
class Reader:
    """What has been read so far of one batch."""

    channels: Mapping[str, Likelihood]
    axes: tuple[Axis, ...]
    labels: dict[str, tuple]
    dropped: dict[str, str] = dataclasses.field(default_factory=dict)
    parts: list[tuple[Rows, Int[np.ndarray, " _"]]] = dataclasses.field(default_factory=list)

    def inputs(self, x: Any, where: str) -> Float[np.ndarray, "N P"]:
        numbers, _, self.axes = read_inputs(x, self.axes, where)
        return numbers

    def frame_inputs(self, frame: Any, asked: Any) -> tuple[Float[np.ndarray, "N P"], list[Any]]:
        """The inputs of a frame, and the names of their columns."""
        names = frames.input_columns(frame, asked, known_names(self.axes))
        raw = [frames.pick(frame, name) for name in names]
        numbers, _, self.axes = as_numbers(raw, names, self.axes, "the frame")
        return numbers, names

    def add(
        self,
        name: str,
        x: Float[np.ndarray, "N P"],
        values: Any,
        rows: Int[np.ndarray, " N"],
        *,
        sparse: bool = False,
    ) -> None:
        """Observations of a channel; `rows` are their numbers in the user's data.

        If `sparse`, missing ones are left out; else they are an error.
        """
        what = f"observations of channel {name!r}"
        column = observed(values, len(x), what)
        keep = ~column.missing
        if sparse and not keep.all():
            gone = int(np.sum(~keep))
            self.dropped[name] = f"{gone} missing value{'s' if gone > 1 else ''}"
            if not keep.any():
                return
        y, self.labels[name] = numbered(column, self.channels[name], self.labels.get(name), what)
        x, y, rows = (x[keep], y[keep], rows[keep]) if sparse else (x, y, rows)
        columns.check_finite(y, what, rows)
        check_support(y, self.channels[name], what, rows)
        index = list(self.channels).index(name)
        self.parts.append((Rows(x, y.reshape(len(y), -1), np.full(len(y), index)), rows))

    def intake(self, *, in_order: bool) -> Intake:
        """Everything that has been read; `in_order` as it came, else channel after channel."""
        schema = Schema(self.axes, self.labels)
        if not sum(rows.size for rows, _ in self.parts):
            if self.dropped:
                return Intake(None, schema, self.dropped)
            raise DataError(
                problem("at least one observation", "an empty batch", "Skip empty batches.")
            )
        rows = join([rows for rows, _ in self.parts], tuple(self.channels))
        if in_order:
            order = np.concatenate([order for _, order in self.parts])
            rows = rows.take(np.lexsort((rows.channel, order)))
        return Intake(rows, schema, self.dropped)


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
    """Samples whose channels `who` names: one name per sample, or one for all."""
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
                "Give one name per sample, or one for all.",
            )
        )
    if not columns.is_series(values):
        values = np.atleast_1d(columns.as_array(values, "observations of the samples"))
    if len(values) != rows:
        raise DataError(
            problem(
                f"{rows} observation(s), one per sample",
                f"{len(values)}",
                "Give one observation per input row.",
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
