"""Asking: work that leaves it to others how objectives are evaluated.

An M step evaluates an objective at one point after the other. Written as a generator, it asks for
each evaluation and is sent the answer. A single model is answered at once (`answered`). A fleet
lets many updates run until each of them asks, and answers all of them together.
"""

import itertools
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float

Vector = Float[np.ndarray, " T"]
Answer = tuple[float, Vector]
Objective = Callable[[Vector], Answer]
T = TypeVar("T")
K = TypeVar("K")


class Ask(NamedTuple):
    """Value and gradient of an objective at a point are asked for."""

    objective: Objective
    point: Vector


Asking = Generator[Ask, Answer, T]


def answered(asking: Asking[T]) -> T:
    """What work comes to, each evaluation being made as it is asked for."""
    try:
        ask = next(asking)
        while True:
            ask = asking.send(ask.objective(ask.point))
    except StopIteration as end:
        return end.value


def answered_together(
    askings: Iterable[tuple[K, Asking[T]]],
    answers: Callable[[Sequence[Ask]], Mapping[int, Answer]],
    most: int,
) -> Iterator[tuple[K, T | Exception]]:
    """What several pieces of work come to, or how they fail, in the order in which they end.

    Args:
        askings: Pieces of work, each with a name. They are begun when there is room.
        answers: Answers some of the asks that come at one time. The others are answered alone.
        most: How many pieces go on at one time.
    """
    coming = iter(askings)
    turns: list[tuple[K, Asking[T], Ask | None, Answer | None]] = []
    while True:
        for name, asking in itertools.islice(coming, most - len(turns)):
            turns.append((name, asking, None, None))
        if not turns:
            return
        waiting: list[tuple[K, Asking[T], Ask]] = []
        for name, asking, asked, answer in turns:
            try:
                waiting.append((name, asking, _next(asking, asked, answer)))
            except StopIteration as end:
                yield name, end.value
            except Exception as error:  # of this piece of work alone
                yield name, error
        found = answers([ask for _, _, ask in waiting])
        turns = [(*each, found.get(i)) for i, each in enumerate(waiting)]


def _next(asking: Asking[Any], ask: Ask | None, answer: Answer | None) -> Ask:
    """What work asks next, once it has its answer; it is found now if that was left to do."""
    if ask is None:
        return next(asking)
    return asking.send(ask.objective(ask.point) if answer is None else answer)
