"""Where inputs are in a chain, and what the states around them say there."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from streamgp.inference.chain.known import Known, Window
from streamgp.inference.chain.law import Between, Law


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


def places(known: Known, x: Float[np.ndarray, " N"], law: Law | None = None) -> Places:
    """Where inputs are, inside the times of a chain or beyond them.

    Args:
        known: The chain.
        x: The inputs.
        law: Its law, if the states belong to something else than the latent functions.
    """
    number, which, left, right = _intervals(known, x)
    law, early, late = law or known.law, x < left, x > right
    design, open_ = np.zeros((len(x), 2 * law.size)), np.zeros((law.latents, len(x)))
    within = ~(early | late)
    for some, found in (
        (within, lambda: law.between(left[within], x[within], right[within])),
        (early, lambda: law.ahead((left - x)[early])),
        (late, lambda: law.beyond((x - right)[late])),
    ):
        if some.any():
            design[some], open_[:, some] = found()
    _, first, of_row = np.unique(
        number * (1 + int(which.max(initial=0))) + which, return_index=True, return_inverse=True
    )
    return Places(number[first], which[first], of_row, Between(design, open_))


def _intervals(
    known: Known, x: Float[np.ndarray, " N"]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The link of each input, its interval in the link, and where that begins and ends."""
    number = known.holding(x)
    links, of_row = np.unique(number, return_inverse=True)
    times = [known.links[index].segment.times for index in links]
    begin = np.cumsum([0, *map(len, times)])  # of each link in all times
    every = times[0] if len(times) == 1 else np.concatenate(times)
    low, high = begin[:-1][of_row], begin[1:][of_row] - 2
    place = np.clip(np.searchsorted(every, x, side="right") - 1, low, high)
    return number, place - low, every[place], every[place + 1]
