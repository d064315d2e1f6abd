"""Schema: the form of a model's data, and inputs read by it."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.data import columns, frames
from streamgp.data.axes import Axis, first_axis, input_names
from streamgp.data.columns import Column, Label
from streamgp.data.wording import counted
from streamgp.errors import DataError, problem
from streamgp.registry import storable


@storable
@dataclasses.dataclass(frozen=True)
class Schema:
    """What a model remembers of the form of its data.

    Attributes:
        axes: What each input column holds; none before the first batch.
        labels: The labels of the classes of each channel that has been observed, by channel.
            There are none if it was observed in numbers.
    """

    axes: tuple[Axis, ...] = ()
    labels: Mapping[str, tuple[Label, ...]] = dataclasses.field(default_factory=dict)


class Inputs(NamedTuple):
    """Inputs as they were given, with their names."""

    names: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def values(self) -> np.ndarray:
        """The inputs, of shape (N,) or (N, P): floats, datetime64, or datetimes with a zone."""
        each = [column.zoned for column in self.columns]
        if len(each) == 1:
            return each[0]
        kinds = {values.dtype.kind for values in each}
        return np.stack([v if len(kinds) == 1 else v.astype(object) for v in each], axis=-1)


def read_inputs(
    x: Any, axes: tuple[Axis, ...], where: str
) -> tuple[Float[np.ndarray, "N P"], Inputs, tuple[Axis, ...]]:
    """Read inputs from an array, a list, a series or a frame.

    Args:
        x: The inputs.
        axes: What the input columns hold; if there are none yet, these inputs define them.
        where: What the inputs belong to, for a message.

    Returns:
        The inputs as numbers, the inputs as they were given, and the axes.

    Raises:
        DataError: If the inputs cannot be used, or are not of the kind that the axes say.
    """
    if frames.is_frame(x):
        known = known_names(axes)
        names = frames.input_columns(x, None, known) if known else frames.names(x)
        return read_frame_inputs(x, names, axes, where)
    if columns.is_series(x):
        return _read_columns([x], [None], axes, where)
    array = columns.as_array(x, f"inputs of {where}")
    if array.ndim <= 1:
        return _read_columns([np.atleast_1d(array)], [None], axes, where)
    if array.ndim != 2 or array.shape[1] == 0:
        raise DataError(
            problem(
                f"inputs of {where} of shape (N,) or (N, P)",
                f"shape {array.shape}",
                "Put one observation into each row.",
            )
        )
    return _read_columns(list(array.T), [None] * array.shape[1], axes, where)


def read_frame_inputs(
    frame: Any, names: Sequence[Any], axes: tuple[Axis, ...], where: str
) -> tuple[Float[np.ndarray, "N P"], Inputs, tuple[Axis, ...]]:
    """As `read_inputs`, from the named columns of a frame."""
    return _read_columns([frames.pick(frame, name) for name in names], names, axes, where)


def _read_columns(
    raw: Sequence[Any], names: Sequence[Any], axes: tuple[Axis, ...], where: str
) -> tuple[Float[np.ndarray, "N P"], Inputs, tuple[Axis, ...]]:
    if axes and len(axes) != len(raw):
        raise DataError(
            problem(
                f"inputs of {where} with {counted(len(axes), 'column')}, as in the first batch",
                f"{len(raw)}",
                "Give every batch and every prediction the same input columns.",
            )
        )
    what = f"inputs of {where}"
    whats = [what if name is None else f"{what} in {name!r}" for name in names]
    read = tuple(columns.read_input(values, what) for values, what in zip(raw, whats, strict=True))
    axes = axes or tuple(first_axis(*pair) for pair in zip(read, names, strict=True))
    numbers = [a.numbers(column, what) for a, column, what in zip(axes, read, whats, strict=True)]
    table = numbers[0][:, None] if len(numbers) == 1 else np.stack(numbers, axis=-1)
    return table, Inputs(input_names(axes), read), axes


def known_names(axes: Sequence[Axis]) -> tuple[Any, ...]:
    """The names of the input columns if all of them have one, else none."""
    known = tuple(axis.name for axis in axes)
    return () if None in known else known
