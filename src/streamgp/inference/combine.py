"""Combine: what batches say, computed apart from folding it in.

At fixed hyperparameters and points, what a batch says is a sum over its rows. So several batches
can be prepared apart, each against the same state, and be added to it in any order: map and reduce.
For channels with normal noise the result is that of one pass. Sites of other families depend on
what else is known; prepared apart, each batch is fitted to the state alone.
"""

import dataclasses
import functools
import operator
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Rows
from streamgp.errors import ConfigurationError, NumericalError, problem
from streamgp.inference.cells import Cells
from streamgp.inference.engine import AnyLearner, AnyState
from streamgp.inference.memory import Memory
from streamgp.inference.over_time.following import with_rows
from streamgp.inference.over_time.kept import Kept
from streamgp.inference.over_time.state import RowState
from streamgp.inference.past import Past
from streamgp.inference.state import State
from streamgp.model.multitask import MultiTaskGP
from streamgp.parameters import free_vector, nodes_of


@dataclasses.dataclass(frozen=True, eq=False)
class PreparedRows:
    """Rows over time, beside a state that they may be added to.

    Attributes:
        model: The hyperparameters under which their sites were found.
        rows: With their sites.
        heard: The observations of each channel.
    """

    model: MultiTaskGP
    rows: Kept
    heard: Float[np.ndarray, " D"]


@dataclasses.dataclass(frozen=True, eq=False)
class Prepared:
    """What some data say, beside a dense state that it may be added to.

    Attributes:
        model: The hyperparameters under which it was computed.
        points: The inducing points.
        sums: What data said of the latent functions.
        memory: How they depend on hyperparameters in ways that sums cannot tell.
        heard: The observations of each channel.
        cells: The rows as cells; None if they cannot be told from earlier ones.
    """

    model: MultiTaskGP
    points: tuple[np.ndarray, ...]
    sums: Past
    memory: Memory
    heard: Float[np.ndarray, " D"]
    cells: Cells | None = None


def prepare(learner: AnyLearner, state: AnyState, rows: Rows) -> Prepared | PreparedRows:
    """What rows say at the state's hyperparameters and points, apart from folding it in.

    Args:
        learner: The functional core.
        state: What is known before. Its points, if it has any, suit the rows.
        rows: The new observations.

    Returns:
        What `combine` adds to the state.

    Raises:
        NumericalError: If that is not finite.
    """
    after, info = learner.step(state, rows, learn=False, remember=True)
    if not info.finite:
        raise NumericalError("what the rows say is not finite. Please report them.")
    return said_since(state, after)


def said_since(before: Any, after: Any) -> Prepared | PreparedRows:
    """What data said that came between two states with the same hyperparameters.

    Raises:
        ConfigurationError: If hyperparameters or points differ.
    """
    _check_same(before.model, after.model)
    heard = after.heard - before.heard
    if isinstance(after, RowState) and isinstance(before, RowState):
        return PreparedRows(after.model, _new_rows(before, after), heard)
    if not (isinstance(after, State) and isinstance(before, State)):
        raise _different("states of one engine", "a dense state and one over time")
    memory = before.memory.scaled(-1.0) + after.memory
    _check_same_points(before.points, after.points)
    past = before.past.scaled(-1.0) + after.past
    cells = None
    if after.cells is not None and before.cells is not None:
        cells = after.cells.since(before.cells)
    return Prepared(after.model, after.points, past, memory, heard, cells)


def combine(prior: Any, prepared: Iterable[Prepared | PreparedRows]) -> Any:
    """The state with what several batches said.

    Args:
        prior: What is known before.
        prepared: What batches said, each prepared with this state, or with one that has the same
            hyperparameters and points.

    Returns:
        The state that knows all of it.

    Raises:
        ConfigurationError: If hyperparameters or points differ.
    """
    parts = list(prepared)
    for part in parts:
        _check_same(prior.model, part.model)
    if not parts:
        return prior
    heard = prior.heard + sum(part.heard for part in parts)
    if isinstance(prior, RowState):
        rows = [part.rows for part in parts if isinstance(part, PreparedRows)]
        if len(rows) < len(parts):
            raise _different("states of one engine", "a dense state and one over time")
        return with_rows(prior, rows, heard=heard)
    dense = [part for part in parts if isinstance(part, Prepared)]
    if len(dense) < len(parts):
        raise _different("states of one engine", "a dense state and one over time")
    for part in dense:
        _check_same_points(prior.points, part.points)
    cells = [prior.cells, *(part.cells for part in dense)]
    return prior.replace(
        past=functools.reduce(operator.add, [part.sums for part in dense], prior.past),
        cells=None if None in cells else functools.reduce(operator.add, cells),
        memory=functools.reduce(operator.add, [part.memory for part in dense], prior.memory),
        heard=heard,
    )


# -- rows over time --------------------------------------------------------------------------------


def _new_rows(before: RowState, after: RowState) -> Kept:
    """The rows of one state that another does not have."""
    known = Counter(_names(before.kept))
    is_new = []
    for name in _names(after.kept):
        is_new.append(not known[name])
        known[name] -= 1 if known[name] else 0
    rows = after.kept.take(np.array(is_new, bool))
    if rows.size != after.size - before.size:
        raise ConfigurationError(
            problem(
                "models that keep every row since they were copied",
                f"{rows.size} new rows among {after.size}, where there were {before.size}: rows of"
                " both were joined",
                "Make models that are to be merged with `keep=None`, or merge them sooner.",
            )
        )
    return rows


def _names(rows: Kept) -> list[bytes]:
    """What tells rows apart: all that was observed."""
    columns = rows.time, rows.channel, *rows.y.T, rows.count, rows.energy
    return [row.tobytes() for row in np.stack(columns, axis=1).astype(float)]


# -- checks ----------------------------------------------------------------------------------------


def _check_same(one: MultiTaskGP, other: MultiTaskGP) -> None:
    """Refuse hyperparameters that differ, offsets included."""
    if one is other:
        return
    same = np.array_equal(free_vector(one), free_vector(other))
    mine, yours = ([node.value for node in nodes_of(model)] for model in (one, other))
    if not (same and len(mine) == len(yours) and all(map(np.array_equal, mine, yours))):
        raise _different("the same hyperparameters everywhere", "different ones")


def _check_same_points(one: tuple[np.ndarray, ...], other: tuple[np.ndarray, ...]) -> None:
    if not (len(one) == len(other) and all(map(np.array_equal, one, other))):
        raise _different("the same inducing points everywhere", "different ones")


def _different(expected: str, got: str) -> ConfigurationError:
    return ConfigurationError(
        problem(
            expected,
            got,
            "Begin with copies of one model, and update them with `learn=False`. On the dense "
            "engine, points must be there before: `inducing=Fixed(points)` keeps them.",
        )
    )
