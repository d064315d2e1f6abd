"""What an experiment consists of: a problem, the methods that learn it, and the paper's numbers."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from streamgp.prediction.prediction import Prediction
from streamgp_lab.problem import Data, Problem


class Method(Protocol):
    """Anything that learns from batches and predicts: `ContinualGP` and every baseline."""

    @property
    def update(self) -> Callable[[Data], Any]: ...

    @property
    def predict(self) -> Callable[..., Prediction]: ...


@dataclass(frozen=True)
class Entry:
    """A method in an experiment: how to make it from a problem and a seed, or why it cannot run."""

    make: Callable[[Problem, int], Method] | None = None
    reason: str = ""
    streaming: bool = True  # if not, the method gets all batches at once


def cannot(reason: str) -> Entry:
    """A method that cannot run in an experiment, and why."""
    return Entry(None, reason)


class Printed(NamedTuple):
    """A table of the paper. By channel: rows of (new, old …, global), None for an empty cell.

    `old` has the batches of the middle columns, counted from one. `unit` is the unit of the
    paper's numbers.
    """

    caption: str
    old: tuple[int, ...]
    rows: dict[str, list[tuple[float | None, ...]]]
    unit: float = 1.0


class Options(NamedTuple):
    """How an experiment is run: its seed, the share of its data, and the user's own files."""

    seed: int = 0
    share: float = 1.0
    data: Path | None = None


@dataclass(frozen=True)
class Experiment:
    """One experiment. Our method is the first of `methods`."""

    name: str
    about: str
    problem: Callable[[Options], Problem]
    methods: dict[str, Entry]
    pictures: dict[str, Callable[[Any], Any]]  # by caption: from an outcome to a figure
    printed: Printed | None = None
    more: Callable[[Any], list[Any]] | None = None  # from outcomes to further tables
    long: bool = False  # started first, so that it does not run alone in the end
    drawn: bool = True  # its data depend on the seed; otherwise one seed tells everything

    def only(self, *names: str) -> "Experiment":
        """The experiment with some of its methods."""
        return replace(self, methods={name: self.methods[name] for name in names})
