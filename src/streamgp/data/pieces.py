"""Pieces: a user's data, split by channel.

There are four forms: a wide frame, a long frame, pairs of arrays by channel, and samples in order.
Each ends as a list of pieces, in the order of the channels.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from streamgp.data import columns, frames, quantities
from streamgp.data.axes import Axis
from streamgp.data.schema import known_names, read_frame_inputs, read_inputs
from streamgp.data.wording import and_more, counted, place
from streamgp.errors import DataError, problem
from streamgp.likelihoods import Likelihood


class Layout(NamedTuple):
    """What the columns of a frame are.

    Attributes:
        inputs: The name of the input column, or a list of names.
        channel: The column with the channels' names, if the frame is long. For samples, the
            names themselves.
        value: The column with the values, if the frame is long. Where observations are several
            numbers, a list of columns, or a dictionary of them by the likelihood's names.
        columns: The columns of some channels, if the frame is wide and they have other names than
            usual: a list of names by channel.
    """

    inputs: Any = None
    channel: Any = None
    value: Any = None
    columns: Any = None


class Piece(NamedTuple):
    """The observations of one channel, as they were given, and their inputs as numbers.

    Attributes:
        channel: The name of the channel.
        x: The inputs.
        parts: The observations, one column for each of the likelihood's.
        rows: The number of each row in the user's data.
    """

    channel: str
    x: Float[np.ndarray, "N P"]
    parts: tuple[Any, ...]
    rows: Int[np.ndarray, " N"]


class Split(NamedTuple):
    """Data split by channel.

    Attributes:
        pieces: One piece for each channel that the data have, in the order of the channels.
        axes: What the input columns hold.
        with_gaps: Whether a missing value means that nothing was observed, as in frames. If not,
            a missing value is an error.
    """

    pieces: list[Piece]
    axes: tuple[Axis, ...]
    with_gaps: bool


# -- frames --------------------------------------------------------------------------------------


def as_frame(data: Any, channels: Sequence[str]) -> Any:
    """The frame that the data are, or None: a series with an index is a frame of one column."""
    if frames.is_frame(data):
        return data
    if not frames.is_indexed_series(data):
        return None
    if len(channels) > 1 and data.name not in channels:
        raise DataError(
            problem(
                f"a series with the name of a channel, among {list(channels)}",
                "one without a name" if data.name is None else repr(data.name),
                "Name it with `series.rename(…)`.",
            )
        )
    return data.to_frame(data.name if len(channels) > 1 else channels[0])


def split_frame(
    frame: Any, layout: Layout, channels: Mapping[str, Likelihood], axes: tuple[Axis, ...]
) -> Split:
    """Split a frame: a long one if the layout names a channel or a value, else a wide one."""
    inputs = frames.input_columns(frame, layout.inputs, known_names(axes))
    x, _, axes = read_frame_inputs(frame, inputs, axes, "the frame")
    if layout.channel is None and layout.value is None:
        pieces = _wide(frame, x, inputs, layout, channels)
    else:
        pieces = _long(frame, x, layout, channels)
    return Split(pieces, axes, with_gaps=True)


def _wide(
    frame: Any,
    x: Float[np.ndarray, "N P"],
    inputs: Sequence[Any],
    layout: Layout,
    channels: Mapping[str, Likelihood],
) -> list[Piece]:
    """One piece for each channel that has columns."""
    others = [name for name in frames.names(frame) if name not in inputs]
    if not others:
        raise DataError(
            problem(
                "at least one observation, in a column that is not an input",
                f"no other column than {list(inputs)}",
                f"Add a column for a channel among {list(channels)}.",
            )
        )
    found = quantities.in_wide_frame(channels, others, layout.columns)
    return [
        Piece(name, x, tuple(frames.pick(frame, c) for c in found[name]), np.arange(len(x)))
        for name in channels
        if name in found
    ]


def _long(
    frame: Any, x: Float[np.ndarray, "N P"], layout: Layout, channels: Mapping[str, Likelihood]
) -> list[Piece]:
    """One piece for each channel that the rows name."""
    if layout.value is None or (layout.channel is None and len(channels) > 1):
        raise DataError(
            problem(
                "both `channel=` and `value=`, for a long frame",
                f"{'`channel=`' if layout.value is None else '`value=`'} alone",
                "Name the column of the channels and the column of their values.",
            )
        )
    if layout.columns is not None:
        raise DataError(
            problem(
                "`columns=` for a wide frame only",
                "a long one",
                "Give `value=` a list of columns instead.",
            )
        )
    names = None if layout.channel is None else frames.pick(frame, layout.channel)
    value = layout.value
    given: quantities.Given
    if isinstance(value, Mapping):
        given = {part: frames.pick(frame, column) for part, column in value.items()}
    else:
        asked = value if isinstance(value, list | tuple) else [value]
        given = [frames.pick(frame, column) for column in asked]
    return _by_name(x, names, given, channels)


# -- samples -------------------------------------------------------------------------------------


def split_samples(
    x: Any, y: Any, names: Any, channels: Mapping[str, Likelihood], axes: tuple[Axis, ...]
) -> Split:
    """Split samples, each with the name of its channel."""
    if y is None:
        raise DataError(
            problem("inputs and observations", "inputs only", "Call `update_many(x, y)`.")
        )
    if names is None and len(channels) > 1:
        raise DataError(
            problem(
                "the channel of each sample, as the model has several",
                "none",
                f"Pass `channel=` names among {list(channels)}.",
            )
        )
    numbers, _, axes = read_inputs(x, axes, "the samples")
    what = "observations of the samples"
    given: quantities.Given
    if len(channels) == 1:
        (likelihood,) = channels.values()
        given = list(quantities.of_channel(y, likelihood, len(numbers), what))
    else:
        given = quantities.separated(y, what)
    return Split(_by_name(numbers, names, given, channels), axes, with_gaps=False)


def _by_name(
    x: Float[np.ndarray, "N P"],
    names: Any,
    given: quantities.Given,
    channels: Mapping[str, Likelihood],
) -> list[Piece]:
    """The rows of each channel, by the names that the rows have."""
    if names is None and len(channels) == 1:
        rows_of = dict.fromkeys(channels, np.arange(len(x)))
    else:
        named = _row_names(names, len(x), list(channels))
        rows_of = {name: np.flatnonzero(named == name) for name in channels}
    for values in given.values() if isinstance(given, Mapping) else given:
        if len(values) != len(x):
            raise DataError(
                problem(
                    f"{counted(len(x), 'observation')}, one per sample",
                    f"{len(values)}",
                    "Give one observation for each row of the inputs.",
                )
            )
    known = [column for likelihood in channels.values() for column in likelihood.columns]
    return [
        Piece(name, x[rows], quantities.of_rows(given, rows, channels[name], known, what), rows)
        for name, rows in rows_of.items()
        for what in [f"observations of channel {name!r}"]
        if len(rows)
    ]


def _row_names(names: Any, count: int, channels: Sequence[str]) -> np.ndarray:
    """The channel of each row: one name per row, one name for all, or the only channel."""
    if names is None or isinstance(names, str):
        named = np.full(count, channels[0] if names is None else names, object)
    else:
        named = _read_names(names)
    unknown = [name for name in named.tolist() if name not in channels]
    if unknown or named.shape != (count,):
        raise DataError(
            problem(
                f"{counted(count, 'channel name')} among {list(channels)}",
                repr(unknown[0]) if unknown else f"shape {named.shape}",
                "Give one name per sample, or one for all.",
            )
        )
    return named


def _read_names(names: Any) -> np.ndarray:
    """Channel names as text: a channel that a frame calls 1 is named "1"."""
    column = columns.read(names, "channel names")
    gone = int(column.missing.sum())
    if gone:
        raise DataError(
            problem(
                "a channel name in every row",
                f"{counted(gone, 'missing name')}, {place(gone, int(np.argmax(column.missing)))}",
                "Name the channels, or leave out those rows.",
            )
        )
    if column.kind == "number" and np.all(column.values == np.round(column.values)):
        return np.asarray([f"{name:.0f}" for name in column.values], object)
    return np.asarray([str(name) for name in column.values.tolist()], object)


# -- pairs of arrays -----------------------------------------------------------------------------


def split_pairs(
    data: Any, y: Any, channels: Mapping[str, Likelihood], axes: tuple[Axis, ...]
) -> Split:
    """Split a dictionary of (x, y) by channel; or take x and y of the only channel."""
    pairs = _pairs(data, y, list(channels))
    pieces = []
    for name in [name for name in channels if name in pairs]:
        x, values = _pair(pairs[name], name)
        if not (_is_empty(x) and _is_empty(values)):
            numbers, _, axes = read_inputs(x, axes, f"channel {name!r}")
            what, rows = f"observations of channel {name!r}", len(numbers)
            parts = quantities.of_channel(values, channels[name], rows, what)
            pieces.append(Piece(name, numbers, parts, np.arange(rows)))
    return Split(pieces, axes, with_gaps=False)


def _pairs(data: Any, y: Any, channels: Sequence[str]) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        return {channels[0]: _only_pair(data, y, channels)}
    unknown = [name for name in data if name not in channels]
    if unknown:
        raise DataError(
            problem(
                f"channels among {list(channels)}",
                and_more(repr(unknown[0]), len(unknown)),
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


def _only_pair(x: Any, y: Any, channels: Sequence[str]) -> tuple[Any, Any]:
    if len(channels) > 1:
        raise DataError(
            problem(
                "a dictionary {name: (x, y)}, as the model has several channels",
                type(x).__name__,
                f"Name the channels: {list(channels)}.",
            )
        )
    if y is None:
        raise DataError(problem("inputs and observations", "inputs only", "Call `update(x, y)`."))
    return x, y


def _pair(pair: Any, name: str) -> tuple[Any, Any]:
    if not (isinstance(pair, tuple | list) and len(pair) == 2):
        raise DataError(
            problem(
                f"a pair (x, y) for channel {name!r}",
                type(pair).__name__,
                "Pass inputs and observations.",
            )
        )
    return pair[0], pair[1]


def _is_empty(values: Any) -> bool:
    try:
        return len(values) == 0
    except TypeError:  # a number has no length
        return False
