"""Placement on rows: there is nothing to place, since they are kept where they are."""

from typing import Any

import numpy as np
from jaxtyping import Bool

from streamgp.data.batch import Rows
from streamgp.inference.engine import AnyState, Points
from streamgp.model.multitask import MultiTaskGP


class RowPlacer:
    """What a placer does for states that need no points."""

    foresees = True
    follows_kernels = False

    def wanted(self, before: AnyState, rows: Rows, model: MultiTaskGP, update: int) -> Points:
        """No points."""
        return ()

    def settled(self, state: AnyState, rows: Rows) -> Bool[np.ndarray, " N"]:
        """All rows: none of them changes a point."""
        return np.ones(rows.size, bool)

    def exceeds_budget(self, points: Points) -> bool:
        """Never: there is none."""
        return False

    def is_starved(self, state: AnyState) -> bool:
        """Never: rows are held as they are."""
        return False

    def prepared(self, state: AnyState, rows: Rows, update: int) -> tuple[Any, bool]:
        """The state as it is."""
        return state, False

    def placed(self, before: AnyState, points: Points, rows: Rows, start: MultiTaskGP) -> Any:
        """The state as it is."""
        return before

    def move(self, before: AnyState, points: Points) -> Any:
        """The state as it is."""
        return before

    def pruned(self, before: AnyState, state: AnyState, rows: Rows) -> Any:
        """The state after the rows as it is."""
        return state
