"""What an experiment is: data in an order, methods that learn it, and what the paper printed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from streamgp.prediction.prediction import Prediction
from streamgp_lab.baselines.core import Data


class Method(Protocol):
    """Anything that learns from batches and predicts: `ContinualGP`, and every baseline."""

    @property
    def update(self) -> Callable[[Data], Any]: ...

    @property
    def predict(self) -> Callable[..., Prediction]: ...


@dataclass(frozen=True)
class Problem:
    """Batches that arrive one after the other, and held-out data from where each came from."""

    train: Sequence[Data]
    test: Sequence[Data]
    gap: Data = field(default_factory=dict)  # held-out data of a stretch that a channel never shows
    single: int | None = None  # from this batch on, samples arrive one at a time
    note: str = ""  # on where the data are from

    @property
    def channels(self) -> list[str]:
        """In the order in which they first come."""
        return list(dict.fromkeys(name for batch in self.train for name in batch))

    def everything(self) -> Data:
        return merged(self.train)


@dataclass(frozen=True)
class Entry:
    """A method in an experiment: how it is made, from the problem and a seed, or why it cannot."""

    make: Callable[[Problem, int], Method] | None = None
    reason: str = ""
    streaming: bool = True  # otherwise it is given everything at once


def cannot(reason: str) -> Entry:
    """A method that cannot do an experiment, and why."""
    return Entry(None, reason)


class Printed(NamedTuple):
    """A table of the paper: by channel, rows of (new, old …, global); None where it has no number.

    `old` are the batches of the columns between, counted from one. The unit is what the paper's
    numbers are multiples of.
    """

    caption: str
    old: tuple[int, ...]
    rows: dict[str, list[tuple[float | None, ...]]]
    unit: float = 1.0


class Options(NamedTuple):
    """How an experiment is run: its seed, how much of its data, and where the user has files."""

    seed: int = 0
    share: float = 1.0
    data: Path | None = None


@dataclass(frozen=True)
class Experiment:
    """One experiment. `methods` begins with ours; `figures` draw from what its runs have kept."""

    name: str
    about: str
    problem: Callable[[Options], Problem]
    methods: dict[str, Entry]
    figures: dict[str, Callable[[Any], Any]]  # by caption
    printed: Printed | None = None
    long: bool = False  # begun before the others, lest they wait for it in the end

    def only(self, *names: str) -> "Experiment":
        """With some of its methods."""
        return replace(self, methods={name: self.methods[name] for name in names})


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
    """Training and held-out batches of one channel, from the rows of each part."""

    def chosen(which: np.ndarray) -> list[Data]:
        picked = [rows[which[rows]] for rows in parts]
        return [{name: (x[rows], y[rows])} for rows in picked]

    return chosen(~test), chosen(test)
