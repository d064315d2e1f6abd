"""Engines: the two ways to keep what is known, and which one a model has."""

import dataclasses
import functools
from typing import Any, NamedTuple, Protocol

import numpy as np
from jaxtyping import Bool

from streamgp.data.batch import Rows
from streamgp.errors import ConfigurationError, problem
from streamgp.inducing.adaptive import Adaptive
from streamgp.inducing.chain_placement import ChainPlacer
from streamgp.inducing.placement import Placer
from streamgp.inducing.strategy import AbstractStrategy
from streamgp.inference.chain.learner import ChainLearner
from streamgp.inference.chain.state import ChainState
from streamgp.inference.engine import AnyLearner, AnyState, Points
from streamgp.inference.learner import Learner
from streamgp.model.multitask import MultiTaskGP
from streamgp.parameters import unwrap

CHOICES = ("auto", "dense", "chain")


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
        open_rows: How many rows a chain keeps open.
    """

    choice: str
    strategy: AbstractStrategy
    settings: Learner
    open_rows: int

    def __post_init__(self) -> None:
        if not isinstance(self.open_rows, int) or self.open_rows < 0:
            raise ConfigurationError(
                problem(
                    "a number of rows for `open_rows`, zero or more",
                    repr(self.open_rows),
                    "The default, 20, suits most streams; 0 keeps no rows.",
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
                    'engine="chain" with `inducing`, which it does not have',
                    'Leave it out, or ask for engine="dense".',
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
        learner = ChainLearner(
            own.learning, own.e_rounds, own.e_tolerance, own.weight_uncertainty, self.open_rows
        )
        return Engine("chain", ChainPlacer(learner), learner)

    def of(self, state: AnyState) -> Engine:
        """The engine that a state belongs to."""
        return self.chain if isinstance(state, ChainState) else self.dense

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
        if self.choice == "dense":
            return False
        return self.strategy == Adaptive()
