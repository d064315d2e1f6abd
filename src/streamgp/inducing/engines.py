"""Engines: the ways to keep what is known, and which one a model has."""

import dataclasses
import functools
from typing import Any, NamedTuple, Protocol

import numpy as np
from jaxtyping import Bool

from streamgp.data.batch import Rows
from streamgp.errors import ConfigurationError, problem
from streamgp.inducing.adaptive import Adaptive
from streamgp.inducing.compacting import compacted
from streamgp.inducing.placement import Placer
from streamgp.inducing.row_placement import RowPlacer
from streamgp.inducing.strategy import AbstractStrategy
from streamgp.inference.dense.learner import DenseLearner
from streamgp.inference.dense.state import DenseState
from streamgp.inference.engine import AnyLearner, AnyState, Points
from streamgp.inference.over_time.learner import RowLearner
from streamgp.inference.over_time.state import RowState
from streamgp.inference.sparse.learner import Learner
from streamgp.inference.sparse.state import State
from streamgp.model.multitask import MultiTaskGP
from streamgp.parameters import unwrap

CHOICES = ("auto", "chain", "dense", "sparse")
AUTO = "auto"


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

    def pruned(self, before: Any, state: Any, rows: Rows) -> Any:
        """The state without the points that it needs least."""


class Engine(NamedTuple):
    """A way to keep what is known."""

    name: str
    placer: AnyPlacer
    learner: AnyLearner


@dataclasses.dataclass(frozen=True)
class Engines:
    """All engines under some settings.

    Attributes:
        choice: The one that was asked for: "chain", "dense", "sparse", or "auto" for whichever
            suits.
        strategy: Where inducing points go; None if nobody asked for any.
        settings: How the sparse engine learns. The others take from it what they can.
        keep: How many rows are kept: a number, None for all, or "auto" for what suits.
    """

    choice: str
    strategy: AbstractStrategy | None
    settings: Learner
    keep: int | str | None = AUTO

    def __post_init__(self) -> None:
        keep = self.keep
        if keep not in (AUTO, None) and (type(keep) is not int or keep < 0):
            raise ConfigurationError(
                problem(
                    'a number of rows for `keep`, zero or more, None for all, or "auto"',
                    repr(keep),
                    "The default suits most streams.",
                )
            )
        if self.choice not in CHOICES:
            raise ConfigurationError(
                problem(f"an engine among {list(CHOICES)}", repr(self.choice), "Check the name.")
            )
        if self.strategy is not None and keep not in (AUTO, 0):
            raise ConfigurationError(
                problem(
                    "rows that are kept, or inducing points, which keep none",
                    f"keep={keep!r} with `inducing`",
                    "Leave one of them out.",
                )
            )
        if self.choice in ("chain", "dense") and not self.allows_rows:
            raise ConfigurationError(
                problem(
                    "an engine that suits the settings",
                    f"engine={self.choice!r}, which keeps rows, with `inducing` or keep=0",
                    'Leave those out, or ask for engine="sparse".',
                )
            )

    @property
    def allows_rows(self) -> bool:
        """Whether the settings leave room for an engine that keeps rows."""
        return self.choice != "sparse" and self.keep != 0 and self.strategy is None

    @property
    def allows_chain(self) -> bool:
        """Whether a single input may be time."""
        return self.allows_rows and self.choice != "dense"

    @property
    def budget(self) -> int | None:
        """How many inducing points a latent function may have; None where there is no limit."""
        return None if self.allows_rows else self._placer.strategy.budget

    @functools.cached_property
    def sparse(self) -> Engine:
        """Sites at inducing points of any inputs."""
        return Engine("sparse", self._placer, self.settings)

    @functools.cached_property
    def _placer(self) -> Placer:
        strategy = Adaptive() if self.strategy is None else self.strategy
        return Placer(strategy, self.settings)

    @functools.cached_property
    def dense(self) -> Engine:
        """Rows over any inputs."""
        own = self.settings
        rules = own.learning, own.e_rounds, own.e_tolerance
        learner = DenseLearner(*rules, own.weight_uncertainty, self.keep)
        return Engine("dense", RowPlacer(), learner)

    @functools.cached_property
    def chain(self) -> Engine:
        """Rows over time, and a filter."""
        own = self.settings
        rules = own.learning, own.e_rounds, own.e_tolerance
        return Engine("chain", RowPlacer(), RowLearner(*rules, own.weight_uncertainty, self.keep))

    def of(self, state: AnyState) -> Engine:
        """The engine that a state belongs to."""
        if isinstance(state, RowState):
            return self.chain
        return self.dense if isinstance(state, DenseState) else self.sparse

    def chosen(self, wrapped: MultiTaskGP) -> Engine:
        """The engine of a model that begins."""
        if not self.allows_rows:
            return self.sparse
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
        return self.chain if suits and self.allows_chain else self.dense

    def without_rows(self, state: Any) -> tuple["Engines", State]:
        """The settings of a model that keeps no rows, and a state with what its rows have said."""
        choice = self.choice if self.choice == AUTO else "sparse"
        left = dataclasses.replace(self, choice=choice, keep=0)
        return left, state if isinstance(state, State) else compacted(left._placer, state)
