"""A problem: batches of data in the order of their arrival, and held-out data to score on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Rows, join

Data = Mapping[str, tuple[np.ndarray, np.ndarray]]  # inputs and observations of each channel


@dataclass(frozen=True)
class Problem:
    """A stream of batches, with held-out data from the same place as each batch."""

    train: Sequence[Data]
    test: Sequence[Data]
    gap: Data = field(default_factory=dict)  # held-out data from a stretch that is never learned
    single: int | None = None  # from this batch on, samples arrive one at a time
    note: str = ""  # where the data come from

    @property
    def channels(self) -> list[str]:
        """The names of all channels, in the order of their first arrival."""
        return list(dict.fromkeys(name for batch in self.train for name in batch))

    def everything(self) -> Data:
        """All training data as one batch."""
        return merged(self.train)

    @property
    def kind(self) -> Literal["real", "binary"]:
        """Whether the observations are classes (0 or 1) or numbers."""
        values = np.unique(rows(self.channels, *self.train).y)
        return "binary" if set(values) <= {0.0, 1.0} else "real"

    @property
    def span(self) -> list[list[float]]:
        """The lowest and the highest value of each input."""
        x = rows(self.channels, *self.train).x
        return np.stack([x.min(axis=0), x.max(axis=0)], axis=1).tolist()


def merged(batches: Sequence[Data]) -> Data:
    """Several batches as one."""
    names = list(dict.fromkeys(name for batch in batches for name in batch))
    return {
        name: tuple(
            np.concatenate([np.asarray(batch[name][part]) for batch in batches if name in batch])
            for part in (0, 1)
        )
        for name in names
    }


def split(
    x: np.ndarray, y: np.ndarray, test: np.ndarray, parts: list[np.ndarray], name: str = "y"
) -> tuple[list[Data], list[Data]]:
    """Training and held-out batches of one channel. `parts` has the row numbers of each batch."""

    def chosen(which: np.ndarray) -> list[Data]:
        picked = [rows[which[rows]] for rows in parts]
        return [{name: (x[rows], y[rows])} for rows in picked]

    return chosen(~test), chosen(test)


def rows(channels: Sequence[str], *batches: Data) -> Rows:
    """All observations of some batches, each with the index of its channel."""
    parts = [
        Rows(matrix(x), matrix(y), np.full(len(y), channels.index(name)))
        for batch in batches
        for name, (x, y) in batch.items()
    ]
    return join(parts, tuple(channels))


def matrix(x: np.ndarray) -> Float[np.ndarray, "N P"]:
    """Numbers as a matrix with one row per observation."""
    x = np.asarray(x, float)
    return x[:, None] if x.ndim == 1 else x
