"""Keys: which model each row of a table belongs to."""

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int

from streamgp.data import frames
from streamgp.data.columns import loaded
from streamgp.errors import DataError, problem


class Keyed(NamedTuple):
    """A table apart from its keys.

    Attributes:
        frame: The table without the column of keys.
        keys: Each key once, in the order in which they come.
        owner: The number of the key of each row.
    """

    frame: Any
    keys: list[Hashable]
    owner: Int[np.ndarray, " n"]

    def rows_of(self) -> list[Int[np.ndarray, " _"]]:
        """The rows of each key, in their order."""
        order = np.argsort(self.owner, kind="stable")
        ends = np.cumsum(np.bincount(self.owner, minlength=len(self.keys)))
        return np.split(order, ends[:-1]) if self.keys else []

    def part(self, rows: Int[np.ndarray, " m"]) -> Any:
        """Some rows of the table."""
        if isinstance(self.frame, loaded("pandas", "DataFrame")):
            return self.frame.iloc[rows]
        return self.frame[rows]


def as_table(data: Any) -> Any:
    """The frame that the data are; an Arrow table becomes one. None if they are neither."""
    if isinstance(data, loaded("pyarrow", "Table", "RecordBatch")):
        return data.to_pandas()
    return data if frames.is_frame(data) else None


def keyed(frame: Any, key: Any) -> Keyed:
    """Take the keys out of a table.

    Args:
        frame: A pandas or polars frame.
        key: The name of the column of keys, or of the index of a pandas frame.

    Returns:
        The rest of the table, and whose rows they are.

    Raises:
        DataError: If there is no such column, or a row has no key.
    """
    numbers: dict[Hashable, int] = {}
    column = frames.pick(frame, key)
    values = column.to_list()
    owner = np.array([numbers.setdefault(value, len(numbers)) for value in values], int)
    without = [number for value, number in numbers.items() if _is_missing(value)]
    if without:
        raise DataError(
            problem(
                f"a key in every row of {key!r}",
                f"none in row {int(np.argmax(owner == without[0]))}",
                "Leave out rows that belong to nobody.",
            )
        )
    return Keyed(_without(frame, key), list(numbers), owner)


def _is_missing(value: Any) -> bool:
    """Whether a key is None, NaN, or a missing time."""
    return value is None or (str(value) in ("nan", "NaT", "<NA>") and not isinstance(value, str))


def _without(frame: Any, key: Any) -> Any:
    """A frame without one of its columns, or with rows counted in place of an index of keys."""
    if key not in frames.names(frame):
        return frame.reset_index(drop=True)
    if isinstance(frame, loaded("pandas", "DataFrame")):
        return frame.drop(columns=[key])
    return frame.drop(key)
