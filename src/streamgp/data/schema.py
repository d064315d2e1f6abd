"""Schema: the form of a model's data, and inputs read by it."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.data import columns, frames
from streamgp.data.axes import Axis, first_axis, input_names, zoned
from streamgp.data.columns import Column, Label
from streamgp.errors import DataError, problem
from streamgp.registry import storable


@storable
@dataclasses.dataclass(frozen=True)
class Schema:
    """What a model remembers of its data's form: the axes of its inputs, the labels of channels.

    A channel that has been observed has an entry among the labels, an empty one if in numbers.
    """

    axes: tuple[Axis, ...] = ()
    labels: Mapping[str, tuple[Label, ...]] = dataclasses.field(default_factory=dict)


class Inputs(NamedTuple):
    """Inputs as they were given, with their names."""

    names: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def values(self) -> np.ndarray:
        """(N,) or (N, P): floats, datetime64, or datetimes with their zone."""
        each = [zoned(column) for column in self.columns]
        if len(each) == 1:
            return each[0]
        kinds = {values.dtype.kind for values in each}
        return np.stack([v if len(kinds) == 1 else v.astype(object) for v in each], axis=-1)


def read_inputs(
    x: Any, axes: tuple[Axis, ...], where: str
) -> tuple[Float[np.ndarray, "N P"], Inputs, tuple[Axis, ...]]:
    """Inputs as numbers, as they came, and their axes. Without axes, they define them."""
    if frames.is_frame(x):
        known = known_names(axes)
        names = frames.input_columns(x, None, known) if known else frames.names(x)
        return as_numbers([frames.pick(x, name) for name in names], names, axes, where)
    if columns.is_series(x):
        return as_numbers([x], [None], axes, where)
    array = columns.as_array(x, f"inputs of {where}")
    if array.ndim <= 1:
        return as_numbers([np.atleast_1d(array)], [None], axes, where)
    if array.ndim != 2 or array.shape[1] == 0:
        raise DataError(
            problem(
                f"inputs of {where} of shape (N,) or (N, P)",
                f"shape {array.shape}",
                "Put one observation into each row.",
            )
        )
    return as_numbers(list(array.T), [None] * array.shape[1], axes, where)


def as_numbers(
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


def known_names(axes: Sequence[Axis]) -> tuple[Any, ...]:
    known = tuple(axis.name for axis in axes)
    return () if None in known else known
