"""Placement over time: there is nothing to place, since rows are kept where they are."""

import numpy as np
from jaxtyping import Bool

from streamgp.data.batch import Rows
from streamgp.inference.engine import Points
from streamgp.inference.over_time.state import RowState
from streamgp.model.multitask import MultiTaskGP


class RowPlacer:
    """What a placer does for states that need no points."""

    foresees = True
    follows_kernels = False

    def wanted(self, before: RowState, rows: Rows, model: MultiTaskGP, update: int) -> Points:
        """No points."""
        return ()

    def settled(self, state: RowState, rows: Rows) -> Bool[np.ndarray, " N"]:
        """All rows: none of them changes a point."""
        return np.ones(rows.size, bool)

    def exceeds_budget(self, points: Points) -> bool:
        """Never: there is none."""
        return False

    def is_starved(self, state: RowState) -> bool:
        """Never: rows are held as they are."""
        return False

    def prepared(self, state: RowState, rows: Rows, update: int) -> tuple[RowState, bool]:
        """The state as it is."""
        return state, False

    def placed(self, before: RowState, points: Points, rows: Rows, start: MultiTaskGP) -> RowState:
        """The state as it is."""
        return before

    def move(self, before: RowState, points: Points) -> RowState:
        """The state as it is."""
        return before

    def shifted(self, state: RowState, rows: Rows) -> RowState:
        """The state as it is."""
        return state

    def pruned(self, before: RowState, state: RowState, rows: Rows) -> RowState:
        """The state after the rows as it is."""
        return state
