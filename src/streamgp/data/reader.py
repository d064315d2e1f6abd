"""Reader: from whatever a user hands over to rows of numbers.

Everything takes the same path. The data are split into pieces, one per channel (`data/pieces.py`).
The observations of each piece become numbers (`data/observations.py`). The pieces are put together
as `Rows`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from streamgp.data.axes import Axis
from streamgp.data.batch import Rows, join
from streamgp.data.columns import Label, check_finite
from streamgp.data.observations import check_support, numbered, observed, plain, present
from streamgp.data.pieces import (
    Layout,
    Piece,
    Split,
    as_frame,
    split_frame,
    split_pairs,
    split_samples,
)
from streamgp.data.quantities import label
from streamgp.data.schema import Schema
from streamgp.data.wording import counted
from streamgp.errors import DataError, problem
from streamgp.likelihoods import Likelihood


class Intake(NamedTuple):
    """A batch that has been read.

    Attributes:
        rows: The observations; None if every value was missing.
        schema: The form of the data from now on. If every value was missing, it is as before.
        dropped: What was left out of each channel, as text, by channel.
    """

    rows: Rows | None
    schema: Schema
    dropped: dict[str, str]


def gather(
    data: Any, y: Any, layout: Layout, channels: Mapping[str, Likelihood], schema: Schema
) -> Intake:
    """Read a batch: the rows of one channel after those of another.

    Args:
        data: A frame, a series with an index, a dictionary of (x, y) by channel, or inputs.
        y: The observations at the inputs, if there is a single channel and no frame.
        layout: What the columns of a frame are.
        channels: The likelihood of each of the model's channels, by name.
        schema: The form of the data so far.

    Returns:
        The rows, in the order of the channels.

    Raises:
        DataError: If the data cannot be used.
    """
    frame = None if y is not None else as_frame(data, list(channels))
    if frame is not None:
        split = split_frame(frame, layout, channels, schema.axes)
    else:
        _check_no_layout(data, layout)
        split = split_pairs(data, y, channels, schema.axes)
    return _read(split, channels, schema, in_order=False)


def gather_in_order(
    data: Any, y: Any, layout: Layout, channels: Mapping[str, Likelihood], schema: Schema
) -> Intake:
    """Read samples: the rows in the order in which they came.

    Args:
        data: A frame, a series with an index, or inputs.
        y: The observations at the inputs, if there is no frame.
        layout: What the columns of a frame are. Without a frame, `layout.channel` has the name of
            the channel of each sample.
        channels: The likelihood of each of the model's channels, by name.
        schema: The form of the data so far.

    Returns:
        The rows. Those from one row of a wide frame are in the order of the channels.

    Raises:
        DataError: If the data cannot be used.
    """
    frame = None if y is not None else as_frame(data, list(channels))
    if frame is not None:
        split = split_frame(frame, layout, channels, schema.axes)
    else:
        _check_no_layout(data, layout._replace(channel=None))
        split = split_samples(data, y, layout.channel, channels, schema.axes)
    return _read(split, channels, schema, in_order=True)


def gather_by_key(
    frame: Any,
    owner: Int[np.ndarray, " n"],
    layout: Layout,
    channels: Mapping[str, Likelihood],
    axes: tuple[Axis, ...],
) -> list[Intake] | None:
    """Read a table whose rows belong to several models, all at once.

    Args:
        frame: The table, without a column of keys.
        owner: The number of the model of each row, from 0 on.
        layout: What the columns are.
        channels: The likelihood of each channel, by name.
        axes: What the input columns hold; if there are none yet, this table defines them.

    Returns:
        The batch of each model, as `gather` would read its rows alone; None if classes have labels,
        which each model numbers in its own order.

    Raises:
        DataError: If the table cannot be used, be it for a single row.
    """
    split = split_frame(frame, layout, channels, axes)
    schema = Schema(split.axes)
    read = [
        _in_numbers(piece, channels[piece.channel], schema, with_gaps=True)
        for piece in split.pieces
    ]
    if any(part.labels for part in read):
        return None
    count = int(owner.max()) + 1 if len(owner) else 0
    dropped: list[dict[str, str]] = [{} for _ in range(count)]
    for piece, part in zip(split.pieces, read, strict=True):
        if part.missing:
            came = np.bincount(owner[piece.rows], minlength=count)
            gone = came - np.bincount(owner[part.rows], minlength=count)
            for number in np.flatnonzero(gone).tolist():
                dropped[number][part.channel] = counted(int(gone[number]), "missing value")
    present = [part for part in read if len(part.y)]
    if not present:
        return [Intake(None, schema, own) for own in dropped]
    rows = _joined(present, list(channels), in_order=False)
    of_row = owner[np.concatenate([part.rows for part in present])]
    order = np.argsort(of_row, kind="stable")
    rows, ends = rows.take(order), np.cumsum(np.bincount(of_row, minlength=count)).tolist()
    intakes = []
    for begin, end, left_out in zip([0, *ends], ends, dropped, strict=False):
        if begin == end:
            intakes.append(Intake(None, schema, left_out))
            continue
        own = rows.take(slice(begin, end))
        labels = {rows.names[d]: () for d in dict.fromkeys(own.channel.tolist())}
        intakes.append(Intake(own, Schema(split.axes, labels), left_out))
    return intakes


def _check_no_layout(data: Any, layout: Layout) -> None:
    given = [f"`{name}=`" for name, column in layout._asdict().items() if column is not None]
    if given:
        raise DataError(
            problem(
                f"a frame to go with {' and '.join(given)}",
                type(data).__name__,
                f"Leave out {' and '.join(given)}, or pass a pandas or polars frame.",
            )
        )


class _Part(NamedTuple):
    """The observations of one channel as numbers, and what was left out of them."""

    channel: str
    x: Float[np.ndarray, "N P"]
    y: Float[np.ndarray, "N C"]
    rows: Int[np.ndarray, " N"]
    labels: tuple[Label, ...]
    missing: int


def _read(
    split: Split, channels: Mapping[str, Likelihood], schema: Schema, *, in_order: bool
) -> Intake:
    """Turn every piece into numbers, and put them together."""
    read = [
        _in_numbers(piece, channels[piece.channel], schema, with_gaps=split.with_gaps)
        for piece in split.pieces
    ]
    dropped = {
        part.channel: counted(part.missing, "missing value") for part in read if part.missing
    }
    present = [part for part in read if len(part.y)]
    if not present:
        if dropped:
            return Intake(None, schema, dropped)
        raise DataError(
            problem("at least one observation", "an empty batch", "Skip empty batches.")
        )
    labels = {**schema.labels, **{part.channel: part.labels for part in present}}
    return Intake(_joined(present, list(channels), in_order), Schema(split.axes, labels), dropped)


def _in_numbers(piece: Piece, likelihood: Likelihood, schema: Schema, *, with_gaps: bool) -> _Part:
    """Turn one piece into numbers, without the observations that are missing."""
    name, what = piece.channel, f"observations of channel {piece.channel!r}"
    whats = [label(what, likelihood, column) for column in likelihood.columns]
    read = [observed(part, len(piece.x), own) for part, own in zip(piece.parts, whats, strict=True)]
    x, rows, kept = piece.x, piece.rows, np.zeros(0, bool)
    if with_gaps:
        kept = present(read, likelihood, what, rows)
    if not (kept.any() if with_gaps else len(x)):
        # The kind of values that are all missing does not matter.
        none = np.zeros((0, likelihood.observation_dim))
        return _Part(name, x[:0], none, rows[:0], (), len(x))
    first, labels = numbered(read[0], likelihood, schema.labels.get(name), whats[0])
    others = [plain(column, own) for column, own in zip(read[1:], whats[1:], strict=True)]
    y = np.stack([first, *others], axis=1) if others else first[:, None]
    if with_gaps:
        y, x, rows = y[kept], x[kept], rows[kept]
    for own, numbers in zip(whats, y.T, strict=True):
        check_finite(numbers, own, rows)
    check_support(y, likelihood, what, rows)
    return _Part(name, x, y, rows, labels, len(piece.x) - len(y))


def _joined(parts: Sequence[_Part], channels: list[str], in_order: bool) -> Rows:
    pieces = [
        Rows(part.x, part.y, np.full(len(part.y), index))
        for part in parts
        for index in [channels.index(part.channel)]
    ]
    rows = join(pieces, tuple(channels))
    if not in_order or len(parts) == 1:  # the rows of one channel are in order
        return rows
    order = np.concatenate([part.rows for part in parts])
    return rows.take(np.lexsort((rows.channel, order)))
