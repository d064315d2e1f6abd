"""What follows a state: other rows in it, and the filter at its end."""

from typing import Any, NamedTuple

import numpy as np

from streamgp.inference.kept import Kept, cut_in_time, joined
from streamgp.inference.over_time.state import Place, RowState
from streamgp.inference.over_time.states import Numbers
from streamgp.inference.over_time.window import World, scalars
from streamgp.model.multitask import MultiTaskGP


class Whole(NamedTuple):
    """Rows from a place on, and where the filter ends among them.

    Attributes:
        closed: How many rows of the state lie before the end.
        end: The filter there.
    """

    closed: int
    end: Numbers | None


def ended(world: World, place: Place, rows: Kept, most_open: int) -> Whole:
    """The end of the filter, where only the last rows may still change.

    Args:
        world: Of the states.
        place: Where the rows begin.
        rows: All rows from there on.
        most_open: How many rows of channels that are not conjugate may change as others come.
    """
    left = rows.size - _open(world.model, rows, most_open)
    if not left:
        return Whole(place.row, place.filter)
    told = scalars(world, rows.take(slice(left)) if left < rows.size else rows)
    return Whole(place.row + left, world.states.filtered(told, place.filter)[0])


def following(state: RowState, row: int, rows: Kept, end: Whole, **changes: Any) -> RowState:
    """The state with other rows from one on.

    Args:
        state: Before.
        row: The number of the first row that differs.
        rows: These rows.
        end: Of the filter among them.
        changes: Of other fields.
    """
    number = state.block_of(row)
    if number == len(state.blocks) and number:  # the last block is filled up
        number -= 1
    first = state.begins[number]
    held = [state.blocks[number].take(slice(row - first))] if row > first else []
    blocks = (*state.blocks[:number], *cut_in_time(joined([*held, rows])))
    after = state.replace(blocks=blocks, closed=end.closed, end=end.end, **changes)
    if after.model is state.model:
        known = vars(state).get("filters", vars(state).get("_known_filters", (None,)))
        vars(after).update(plain=state.plain, world=state.world, _known_filters=known[: number + 1])
    return after


def with_rows(state: RowState, rows: list[Kept], **changes: Any) -> RowState:
    """The state with further rows, with sites as they are."""
    whole = joined([state.kept, *rows])
    whole = whole.take(np.argsort(whole.time, kind="stable"))
    end = ended(state.world, Place(0, None), whole, 0)
    return following(state, 0, whole, end, **changes)


def _open(model: MultiTaskGP, rows: Kept, most: int) -> int:
    """How many of the last rows stay open: from the first of the latest that are not conjugate."""
    may = ~np.array([channel.likelihood.conjugate for channel in model.channels])
    candidates = np.flatnonzero(may[rows.channel] & ~np.isnan(rows.y[:, 0]))
    if not most or not len(candidates):
        return 0
    return rows.size - int(candidates[-most:][0])
