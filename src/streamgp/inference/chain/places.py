"""Where inputs are in a chain, and what the states around them say there."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from streamgp.inference.chain.known import Known, Window
from streamgp.inference.chain.law import Between


class Places(NamedTuple):
    """Where inputs are in a chain.

    Attributes:
        number: The link of each distinct interval.
        which: The interval in its link.
        of_row: The number of each input's interval among these.
        between: What the states at both ends of it say at the input.
    """

    number: Int[np.ndarray, " m"]
    which: Int[np.ndarray, " m"]
    of_row: Int[np.ndarray, " N"]
    between: Between


def places_of(
    known: Known, window: Window, place: Int[np.ndarray, " N"], between: Between
) -> Places:
    """The same of rows whose intervals in a window are known already.

    Args:
        known: The chain.
        window: Some links of it.
        place: The interval of each row in the window.
        between: What the rows see of the states around them.
    """
    counts = [link.segment.count for link in known.links[window.first : window.stop]]
    ends = np.cumsum(counts)
    distinct, of_row = np.unique(place, return_inverse=True)
    link = np.searchsorted(ends, distinct, side="right")
    return Places(window.first + link, distinct - (ends - counts)[link], of_row, between)


def places(known: Known, x: Float[np.ndarray, " N"]) -> Places:
    """Where inputs are, inside the times of a chain or beyond them."""
    number = known.holding(x)
    which, left, right = np.empty(len(x), int), np.empty(len(x)), np.empty(len(x))
    for index in np.unique(number):
        own, segment = number == index, known.links[index].segment
        inside = segment.place(x[own])
        which[own], left[own], right[own] = inside, segment.times[inside], segment.times[inside + 1]
    law, early, late = known.law, x < left, x > right
    design, open_ = np.zeros((len(x), 2 * law.size)), np.zeros((law.latents, len(x)))
    within = ~(early | late)
    for some, found in (
        (within, lambda: law.between(left[within], x[within], right[within])),
        (early, lambda: law.ahead((left - x)[early])),
        (late, lambda: law.beyond((x - right)[late])),
    ):
        if some.any():
            design[some], open_[:, some] = found()
    both, of_row = np.unique(np.stack([number, which], axis=1), axis=0, return_inverse=True)
    return Places(both[:, 0], both[:, 1], np.ravel(of_row), Between(design, open_))
