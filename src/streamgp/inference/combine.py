"""Combine: what batches say, computed apart from folding it in.

At fixed hyperparameters and points, what a batch says is a sum over its rows. So several batches
can be prepared apart, each against the same state, and be added to it in any order: map and reduce.
For channels with normal noise the result is that of one pass. Sites of other families depend on
what else is known; prepared apart, each batch is fitted to the state alone.
"""

import dataclasses
import functools
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Rows
from streamgp.errors import ConfigurationError, NumericalError, problem
from streamgp.inference.cells import Cells
from streamgp.inference.chain.segments import Segment, cut, joined
from streamgp.inference.chain.state import ChainState, Totals
from streamgp.inference.engine import AnyLearner, AnyState
from streamgp.inference.memory import Memory
from streamgp.inference.past import Past
from streamgp.inference.state import State
from streamgp.model.multitask import MultiTaskGP
from streamgp.parameters import free_vector, nodes_of


@dataclasses.dataclass(frozen=True, eq=False)
class Prepared:
    """What some data say, beside a state that it may be added to.

    Attributes:
        model: The hyperparameters under which it was computed.
        points: Those of the dense engine; the times of a chain.
        sums: What data said of the latent functions.
        totals: What they said beside that, on a chain.
        memory: How they depend on hyperparameters in ways that sums cannot tell.
        heard: The observations of each channel.
        cells: The rows as cells; None if they cannot be told from earlier ones.
    """

    model: MultiTaskGP
    points: tuple[np.ndarray, ...]
    sums: Past | Segment
    totals: Totals | None
    memory: Memory
    heard: Float[np.ndarray, " D"]
    cells: Cells | None = None


def prepare(learner: AnyLearner, state: AnyState, rows: Rows) -> Prepared:
    """What rows say at the state's hyperparameters and points, apart from folding it in.

    Args:
        learner: The functional core.
        state: What is known before. Its points, or times, suit the rows.
        rows: The new observations.

    Returns:
        What `combine` adds to the state.

    Raises:
        NumericalError: If that is not finite.
    """
    state = _closed(state)
    after, info = learner.step(state, rows, learn=False, remember=True)
    if not info.finite:
        raise NumericalError("what the rows say is not finite. Please report them.")
    return said_since(state, after)


def said_since(before: Any, after: Any) -> Prepared:
    """What data said that came between two states with the same hyperparameters.

    Raises:
        ConfigurationError: If hyperparameters or points differ, or rows were open before.
    """
    _check_same(before.model, after.model)
    _check_closed(before)
    after = _closed(after)
    memory = before.memory.scaled(-1.0) + after.memory
    heard = after.heard - before.heard
    if isinstance(after, ChainState) and isinstance(before, ChainState):
        sums, size = _joined(after), after.mixing.law.size
        if before.segments:
            sums = _added(sums, on_times(_joined(before), sums.times, size).scaled(-1.0))
        totals = _summed([before.totals.scaled(-1.0), after.totals])
        return Prepared(after.model, after.points[:1], sums, totals, memory, heard)
    if not (isinstance(after, State) and isinstance(before, State)):
        raise _different("states of one engine", "a dense state and a chain")
    _check_same_points(before.points, after.points)
    past = before.past.scaled(-1.0) + after.past
    cells = None
    if after.cells is not None and before.cells is not None:
        cells = after.cells.since(before.cells)
    return Prepared(after.model, after.points, past, None, memory, heard, cells)


def combine(prior: Any, prepared: Iterable[Prepared]) -> Any:
    """The state with what several batches said.

    Args:
        prior: What is known before.
        prepared: What batches said, each prepared with this state, or with one that has the same
            hyperparameters and points.

    Returns:
        The state that knows all of it.

    Raises:
        ConfigurationError: If hyperparameters or points differ, or a time of one chain lies where
            another has rows between two times.
    """
    parts = list(prepared)
    for part in parts:
        _check_same(prior.model, part.model)
    if not parts:
        return prior
    prior = _closed(prior)
    changes: dict[str, Any] = {
        "memory": functools.reduce(operator.add, [p.memory for p in parts], prior.memory),
        "heard": prior.heard + sum(part.heard for part in parts),
    }
    if isinstance(prior, ChainState):
        return prior.replace(**changes, **_on_chain(prior, parts))
    for part in parts:
        _check_same_points(prior.points, part.points)
    pasts = [part.sums for part in parts if isinstance(part.sums, Past)]
    cells = [prior.cells, *(part.cells for part in parts)]
    return prior.replace(
        past=functools.reduce(operator.add, pasts, prior.past),
        cells=None if None in cells else functools.reduce(operator.add, cells),
        **changes,
    )


# -- chains ----------------------------------------------------------------------------------------


def _on_chain(prior: ChainState, parts: list[Prepared]) -> dict[str, Any]:
    """Segments and totals of a chain with the times of all parts."""
    segments = [part.sums for part in parts if isinstance(part.sums, Segment)]
    if len(segments) < len(parts):
        raise _different("states of one engine", "a dense state and a chain")
    if prior.segments:
        segments.append(_joined(prior))
    times = functools.reduce(np.union1d, [segment.times for segment in segments])
    size = prior.mixing.law.size
    whole = functools.reduce(_added, [on_times(segment, times, size) for segment in segments])
    totals = _summed([prior.totals, *(part.totals for part in parts if part.totals is not None)])
    return {"segments": tuple(cut(whole)), "totals": totals}


def on_times(segment: Segment, times: Float[np.ndarray, " n"], states: int) -> Segment:
    """The segment with all of these times, its own among them. Nothing is lost.

    Args:
        segment: Consecutive intervals.
        times: In order.
        states: How many numbers a state has.

    Raises:
        ConfigurationError: If one of them lies between two times that have data between them.
    """
    first, last = segment.times[[0, -1]]
    more = np.setdiff1d(times, segment.times)
    inside = more[(more > first) & (more < last)]
    missing = np.setdiff1d(segment.times, times)
    if len(missing) or not segment.can_split(states)[segment.place(inside)].all():
        raise ConfigurationError(
            problem(
                "chains with the same times where there are rows",
                f"{max(len(inside), len(missing))} times that one of them lacks among its rows",
                "Merge models that learned different stretches of time; or give the common "
                "ancestor times for all rows first.",
            )
        )
    parts = [segment.split(inside, states) if len(inside) else segment]
    _, outputs, features = segment.linear.shape
    pairs = segment.precision.shape[1]
    early, late = more[more < first], more[more > last]
    if len(early):
        parts.insert(0, Segment.blank(np.append(early, first), outputs, pairs, features))
    if len(late):
        parts.append(Segment.blank(np.concatenate([[last], late]), outputs, pairs, features))
    return joined(parts)


def _closed(state: Any) -> Any:
    """The state with no row open: sums that are added have to be all that was said."""
    return state.closed if isinstance(state, ChainState) else state


def _joined(state: ChainState) -> Segment:
    return joined(state.segments)


def _added(one: Segment, other: Segment) -> Segment:
    """What both say, at the same times."""
    return Segment(one.times, one.linear + other.linear, one.precision + other.precision)


def _summed(parts: list[Totals]) -> Totals:
    return Totals(
        *(np.sum(arrays, axis=0) for arrays in zip(*(p.arrays() for p in parts), strict=True))
    )


# -- checks ----------------------------------------------------------------------------------------


def _check_same(one: MultiTaskGP, other: MultiTaskGP) -> None:
    """Refuse hyperparameters that differ, offsets included."""
    if one is other:
        return
    same = np.array_equal(free_vector(one), free_vector(other))
    mine, yours = ([node.value for node in nodes_of(model)] for model in (one, other))
    if not (same and len(mine) == len(yours) and all(map(np.array_equal, mine, yours))):
        raise _different("the same hyperparameters everywhere", "different ones")


def _check_closed(before: Any) -> None:
    """Refuse rows whose sites each part would change by itself, so that changes add up wrongly."""
    if isinstance(before, ChainState) and before.open is not None:
        raise ConfigurationError(
            problem(
                "an ancestor without open rows",
                f"one with {before.open.size} of them",
                "Make models that are to be merged with `open_rows=0`.",
            )
        )


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
