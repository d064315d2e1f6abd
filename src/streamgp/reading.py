"""Reading: inputs and observations, whatever they came in, as numbers that the model can take."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from streamgp.data import Rows, columns, frames
from streamgp.data.axes import Axis, Inputs, Schema, first_axis, input_names
from streamgp.data.columns import Column
from streamgp.data.labels import encode
from streamgp.errors import DataError, problem
from streamgp.likelihoods import Likelihood, Ordinal, class_count


class Intake(NamedTuple):
    """Rows, what is now known of the data's form, and what was left out, by channel."""

    rows: Rows
    schema: Schema
    dropped: dict[str, str]


def read_inputs(
    x: Any, axes: tuple[Axis, ...], where: str
) -> tuple[Float[np.ndarray, "N P"], Inputs, tuple[Axis, ...]]:
    """Inputs as numbers, as they came, and their axes. Without axes, they define them."""
    if frames.is_frame(x):
        known = _known_names(axes)
        names = frames.input_columns(x, None, known) if known else frames.names(x)
        return _as_numbers([frames.pick(x, name) for name in names], names, axes, where)
    if columns.is_series(x):
        return _as_numbers([x], [None], axes, where)
    array = columns.as_array(x, f"inputs of {where}")
    if array.ndim <= 1:
        return _as_numbers([np.atleast_1d(array)], [None], axes, where)
    if array.ndim != 2 or array.shape[1] == 0:
        raise DataError(
            problem(
                f"inputs of {where} of shape (N,) or (N, P)",
                f"shape {array.shape}",
                "Put one observation a row.",
            )
        )
    return _as_numbers(list(array.T), [None] * array.shape[1], axes, where)


def _as_numbers(
    raw: Sequence[Any], names: Sequence[Any], axes: tuple[Axis, ...], where: str
) -> tuple[Float[np.ndarray, "N P"], Inputs, tuple[Axis, ...]]:
    if axes and len(axes) != len(raw):
        raise DataError(
            problem(
                f"inputs of {where} with {len(axes)} column(s), as in the first batch",
                f"{len(raw)}",
                "Give every batch and every prediction the same input columns.",
            )
        )
    what = f"inputs of {where}"
    whats = [what if name is None else f"{what} in {name!r}" for name in names]
    read = tuple(columns.read(values, what) for values, what in zip(raw, whats, strict=True))
    axes = axes or tuple(first_axis(*pair) for pair in zip(read, names, strict=True))
    numbers = [a.numbers(column, what) for a, column, what in zip(axes, read, whats, strict=True)]
    return np.stack(numbers, axis=-1), Inputs(input_names(axes), read), axes


def _known_names(axes: Sequence[Axis]) -> tuple[Any, ...]:
    known = tuple(axis.name for axis in axes)
    return () if None in known else known


# -- by channel ----------------------------------------------------------------------------------


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
        names = frames.input_columns(frame, asked, _known_names(self.axes))
        raw = [frames.pick(frame, name) for name in names]
        numbers, _, self.axes = _as_numbers(raw, names, self.axes, "the frame")
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
        _check_support(y, self.channels[name], what, rows)
        index = list(self.channels).index(name)
        self.parts.append((Rows(x, y, np.full(len(y), index)), rows))

    def intake(self, *, in_order: bool) -> Intake:
        if not sum(rows.size for rows, _ in self.parts):
            raise DataError(
                problem("at least one observation", "an empty batch", "Skip empty batches.")
            )
        all_rows = Rows(*map(np.concatenate, zip(*[rows for rows, _ in self.parts], strict=True)))
        if in_order:
            order = np.concatenate([order for _, order in self.parts])
            all_rows = all_rows.take(np.lexsort((all_rows.channel, order)))
        return Intake(all_rows, Schema(self.axes, self.labels), self.dropped)


def observed(values: Any, rows: int, what: str) -> Column:
    """One observation a row, of any kind."""
    if frames.is_frame(values) and len(frames.names(values)) == 1:
        values = frames.pick(values, frames.names(values)[0])
    if not columns.is_series(values):
        values = np.atleast_1d(columns.as_array(values, what))
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
    shape = (len(values),) if columns.is_series(values) else values.shape
    if shape != (rows,):
        raise DataError(
            problem(
                f"{rows} observation(s), one a row of the inputs, as {what}",
                f"shape {shape}",
                "Give one for each input row.",
            )
        )
    return columns.read(values, what)


def numbered(
    column: Column, likelihood: Likelihood, known: tuple | None, what: str
) -> tuple[Float[np.ndarray, " N"], tuple]:
    """Observations as numbers, NaN where missing; and the channel's labels, if it has classes."""
    classes = class_count(likelihood)
    if classes:
        ordered = isinstance(likelihood, Ordinal)
        return encode(column, known, classes, what, ordered=ordered)
    if column.kind != "number":
        raise DataError(problem(f"{what} as numbers", column.describe(), "Convert them first."))
    return column.values, ()


def _check_support(
    y: Float[np.ndarray, " N"], likelihood: Likelihood, what: str, rows: Int[np.ndarray, " N"]
) -> None:
    bad = np.flatnonzero(~likelihood.valid(y))
    if len(bad):
        raise DataError(
            problem(
                f"{what} in the support of {type(likelihood).__name__}",
                f"{y[bad[0]]!r} in row {rows[bad[0]]} ({len(bad)} such)",
                "Check the channel's likelihood, or leave those rows out.",
            )
        )
