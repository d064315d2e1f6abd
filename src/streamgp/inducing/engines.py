"""Engines: the two ways to keep what is known, and which one a model has."""

import dataclasses
import functools
from typing import Any, NamedTuple, Protocol

import numpy as np
from jaxtyping import Bool

from streamgp.data.batch import Rows
from streamgp.errors import ConfigurationError, problem
from streamgp.inducing.adaptive import Adaptive
from streamgp.inducing.placement import Placer
from streamgp.inducing.row_placement import RowPlacer
from streamgp.inducing.strategy import AbstractStrategy
from streamgp.inference.engine import AnyLearner, AnyState, Points
from streamgp.inference.learner import Learner
from streamgp.inference.over_time.learner import RowLearner
from streamgp.inference.over_time.state import RowState
from streamgp.model.multitask import MultiTaskGP
from streamgp.parameters import unwrap

CHOICES = ("auto", "dense", "chain")
KEEP = 20_000  # rows of a chain: their file has about a megabyte, and the filter goes through
# them in some hundredths of a second


class AnyPlacer(Protocol):
    """How states come to have points for rows. See `Placer` for what each method does."""

    @property
    def foresees(self) -> bool:
        """Whether points may be placed before the rows that want them are learned."""

    @property
    def follows_kernels(self) -> bool:
        """Whether points depend on the kernels, so that they are placed again once these change."""

    def settled(self, state: Any, rows: Rows) -> Bool[np.ndarray, " N"]:
        """Which rows change no point."""

    def wanted(self, before: Any, rows: Rows, model: MultiTaskGP, update: int) -> Points:
        """The points that rows ask for."""

    def exceeds_budget(self, points: Points) -> bool:
        """Whether there would be more points than there may be."""

    def is_starved(self, state: Any) -> bool:
        """Whether the past is held too coarsely to learn hyperparameters from it."""

    def prepared(self, state: Any, rows: Rows, update: int) -> tuple[Any, bool]:
        """The state with points for the first of these rows, and whether others had to go."""

    def placed(self, before: Any, points: Points, rows: Rows, start: MultiTaskGP) -> Any:
        """The state at these points, ready to learn the rows."""

    def move(self, before: Any, points: Points) -> Any:
        """The state at these points."""

    def shifted(self, state: Any, rows: Rows) -> Any:
        """The state with its points where they serve past and rows best, if asked for."""

    def pruned(self, before: Any, state: Any, rows: Rows) -> Any:
        """The state without the points that it needs least."""


class Engine(NamedTuple):
    """A way to keep what is known."""

    name: str
    placer: AnyPlacer
    learner: AnyLearner


@dataclasses.dataclass(frozen=True)
class Engines:
    """Both engines under some settings.

    Attributes:
        choice: The one that was asked for: "dense", "chain", or "auto" for whichever suits.
        strategy: Where the dense engine puts points.
        settings: How the dense engine learns. The chain takes from it what it can.
        keep: How many rows a chain keeps; None for all.
    """

    choice: str
    strategy: AbstractStrategy
    settings: Learner
    keep: int | None

    def __post_init__(self) -> None:
        if self.keep is not None and (type(self.keep) is not int or self.keep < 0):
            raise ConfigurationError(
                problem(
                    "a number of rows for `keep`, zero or more, or None for all",
                    repr(self.keep),
                    "The default suits most streams.",
                )
            )
        if self.choice not in CHOICES:
            raise ConfigurationError(
                problem(f"an engine among {list(CHOICES)}", repr(self.choice), "Check the name.")
            )
        if self.choice == "chain" and not self.allow_chain:
            raise ConfigurationError(
                problem(
                    "an engine that suits the settings",
                    'engine="chain" with `inducing` or keep=0, which it does not have',
                    'Leave those out, or ask for engine="dense".',
                )
            )

    @functools.cached_property
    def dense(self) -> Engine:
        """Inducing values at points of any inputs."""
        return Engine("dense", Placer(self.strategy, self.settings), self.settings)

    @functools.cached_property
    def chain(self) -> Engine:
        """States at times."""
        own = self.settings
        rules = own.learning, own.e_rounds, own.e_tolerance
        learner = RowLearner(*rules, own.weight_uncertainty, self.keep)
        return Engine("chain", RowPlacer(), learner)

    def of(self, state: AnyState) -> Engine:
        """The engine that a state belongs to."""
        return self.chain if isinstance(state, RowState) else self.dense

    def chosen(self, wrapped: MultiTaskGP) -> Engine:
        """The engine of a model that begins."""
        model = unwrap(wrapped)
        kernels, columns = model.latent_kernels, len(model.origin)
        suits = columns == 1 and all(kernel.state_space() is not None for kernel in kernels)
        if self.choice == "chain" and not suits:
            raise ConfigurationError(
                problem(
                    'one input column and Markov kernels for engine="chain"',
                    f"{columns} columns, and kernels "
                    f"{', '.join(type(kernel).__name__ for kernel in kernels)}",
                    "Use Matérn, Periodic, SHO, CARMA, Linear and Constant kernels, or "
                    "`RBF(…).as_markov()`, their sums and products, over one input; or leave "
                    '`engine` at "auto".',
                )
            )
        if not suits or not self.allow_chain:
            return self.dense
        return self.chain

    @property
    def allow_chain(self) -> bool:
        """Whether the settings leave room for a chain."""
        if self.choice == "dense" or self.keep == 0:
            return False
        return self.strategy == Adaptive()
