"""Another strategy's points, refined."""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Bool, Float

from streamgp.errors import ConfigurationError, problem
from streamgp.inducing.strategy import AbstractStrategy, Points, View, as_strategy
from streamgp.inference.sparse.state import State
from streamgp.registry import storable


@storable
@dataclasses.dataclass(frozen=True)
class Refined(AbstractStrategy):
    """The points of another strategy, the new ones then moved by gradient on the batch's bound.

    Points that carry knowledge of earlier batches stay where they are, so nothing is lost. It is
    worth its cost where points are few.

    Args:
        strategy: The strategy whose points are refined.
        evaluations: How often an update may evaluate the bound and its gradient for it.
    """

    strategy: AbstractStrategy | Callable[[View], Points]
    evaluations: int = 20

    def __post_init__(self) -> None:
        if not (callable(self.strategy) and self.evaluations >= 1):
            raise ConfigurationError(
                problem(
                    "a strategy and at least one evaluation",
                    f"{self.strategy!r} and {self.evaluations}",
                    "Write `Refined(Adaptive())`.",
                )
            )

    @property
    def _base(self) -> AbstractStrategy:
        return as_strategy(self.strategy)

    def __call__(self, view: View) -> Points:
        return self._base(view)

    @property
    def budget(self) -> int | None:
        return self._base.budget

    @property
    def follows_kernels(self) -> bool:
        return self._base.follows_kernels

    @property
    def refinement(self) -> int:
        return self.evaluations

    # `can_settle` stays false: a new point is refined with the rows that want it, never ahead.

    def settled(self, view: View) -> Bool[np.ndarray, " N"]:
        return self._base.settled(view)

    def spare(self, view: View) -> Float[np.ndarray, " Q"] | float:
        return self._base.spare(view)

    def kept(self, state: State, budget: int) -> Sequence[Bool[np.ndarray, " _"]] | None:
        return self._base.kept(state, budget)
