"""Another strategy's points, refined."""

import dataclasses
from typing import Any

from streamgp.errors import ConfigurationError, problem
from streamgp.inducing.base import Points, Strategy, View


@dataclasses.dataclass(frozen=True)
class Refined:
    """The points of `strategy`, the new ones then moved by gradient on the batch's bound.

    Points that carry knowledge of earlier batches stay where they are, so nothing is lost. Worth
    its cost where points are few: of `evaluations` of the bound and its gradient an update.
    """

    strategy: Strategy
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

    def __call__(self, view: View) -> Points:
        return self.strategy(view)

    def __getattr__(self, name: str) -> Any:
        """Whatever else the strategy can do."""
        if name.startswith("_") or name == "strategy":
            raise AttributeError(name)
        return getattr(self.strategy, name)
