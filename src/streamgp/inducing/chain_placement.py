"""Placement on chains: times come where rows are, and go where they are closer than need be."""

import dataclasses

import numpy as np
from jaxtyping import Bool

from streamgp.data.batch import Rows
from streamgp.inference.chain import grid
from streamgp.inference.chain.learner import ChainLearner
from streamgp.inference.chain.state import ChainState
from streamgp.inference.engine import Points
from streamgp.model.multitask import MultiTaskGP


@dataclasses.dataclass(frozen=True)
class ChainPlacer:
    """The times of chains. There is no budget: cost does not grow with their number."""

    learner: ChainLearner

    foresees = True
    follows_kernels = True

    def wanted(self, before: ChainState, rows: Rows, model: MultiTaskGP, update: int) -> Points:
        """The times that a chain lacks for these rows, under that model's kernels."""
        there = before if model is before.model else before.replace(model=model)
        return (grid.wanted(before, there.mixing, rows.x[:, 0])[:, None],)

    def settled(self, state: ChainState, rows: Rows) -> Bool[np.ndarray, " N"]:
        """Which rows ask for no further time."""
        return grid.settled(state, rows.x[:, 0])

    def exceeds_budget(self, points: Points) -> bool:
        """Never: there is none."""
        return False

    def is_starved(self, state: ChainState) -> bool:
        """Never: there are as many times as are needed."""
        return False

    def prepared(self, state: ChainState, rows: Rows, update: int) -> tuple[ChainState, bool]:
        """The state with times for all of these rows. Nothing is lost."""
        return self.move(state, self.wanted(state, rows, state.model, update)), False

    def placed(
        self, before: ChainState, points: Points, rows: Rows, start: MultiTaskGP
    ) -> ChainState:
        """The state with these times as well, ready to learn the rows."""
        return self.move(before, points)

    def move(self, before: ChainState, points: Points) -> ChainState:
        """The state with these times as well. Nothing is lost."""
        return grid.with_times(before, points[0][:, 0])

    def shifted(self, state: ChainState, rows: Rows) -> ChainState:
        """The state as it is: times do not move."""
        return state

    def pruned(self, before: ChainState, state: ChainState, rows: Rows) -> ChainState:
        """The state with fewer times where they are closer than the kernels need.

        Only segments that have been completed since are looked at.
        """
        since = max(len(before.segments) - 1, 0)
        if len(state.segments) - 1 <= since:
            return state
        return grid.thinner(state, since)
