"""Combine: what batches say, computed apart from folding it in.

At fixed hyperparameters, what a batch says is its rows or, at inducing points, a sum of sites. So
several batches can be prepared apart, each against the same state, and be added to it in any order:
map and reduce. For channels with normal noise the result is that of one pass. Sites of other
families depend on what else is known; prepared apart, each batch is fitted to the state alone.
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
from streamgp.inference.dense.state import DenseState
from streamgp.inference.engine import AnyLearner, AnyState
from streamgp.inference.kept import Kept
from streamgp.inference.over_time.following import with_rows
from streamgp.inference.over_time.state import RowState
from streamgp.inference.sparse.absorbed import Absorbed
from streamgp.inference.sparse.state import State
from streamgp.model.multitask import MultiTaskGP
from streamgp.parameters import free_vector, nodes_of


@dataclasses.dataclass(frozen=True, eq=False)
class Prepared:
    """What some data say, beside a state that they may be added to.

    Attributes:
        model: The hyperparameters under which it was computed.
        points: The inducing points; none of a state that keeps rows.
        said: Rows with their sites, or sites at the points.
        heard: The observations of each channel.
    """

    model: MultiTaskGP
    points: tuple[np.ndarray, ...]
    said: Kept | Absorbed
    heard: Float[np.ndarray, " D"]


def prepare(learner: AnyLearner, state: AnyState, rows: Rows) -> Prepared:
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
    after, info = learner.step(state, rows, learn=False)
    if not info.finite:
        raise NumericalError("what the rows say is not finite. Please report them.")
    return said_since(state, after)


def said_since(before: Any, after: Any) -> Prepared:
    """What data said that came between two states with the same hyperparameters.

    Raises:
        ConfigurationError: If hyperparameters or points differ.
    """
    _check_same(before.model, after.model)
    heard = after.heard - before.heard
    if type(before) is not type(after):
        raise _different("states of one engine", "states of two")
    if not isinstance(after, State):
        return Prepared(after.model, (), _new_rows(before, after), heard)
    _check_same_points(before.points, after.points)
    said = before.absorbed.each(operator.neg) + after.absorbed
    return Prepared(after.model, after.points, said, heard)


def combine(prior: Any, prepared: Iterable[Prepared]) -> Any:
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
        if isinstance(prior, State) != isinstance(part.said, Absorbed):
            raise _different("states of one engine", "states of two")
    if not parts:
        return prior
    heard = prior.heard + sum(part.heard for part in parts)
    said: list[Any] = [part.said for part in parts]
    if isinstance(prior, RowState):
        return with_rows(prior, said, heard=heard)
    if isinstance(prior, DenseState):
        return prior.with_rows(said, heard=heard)
    for part in parts:
        _check_same_points(prior.points, part.points)
    return prior.replace(absorbed=functools.reduce(operator.add, said, prior.absorbed), heard=heard)


def _new_rows(before: Any, after: Any) -> Kept:
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
    columns = *rows.x.T, rows.channel, *rows.y.T, rows.count, rows.energy
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
            "Begin with copies of one model, and update them with `learn=False`. Inducing points, "
            "if there are any, must be there before: `inducing=Fixed(points)` keeps them.",
        )
    )
