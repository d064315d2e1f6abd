"""Where inputs are in a chain, and what the states around them say there."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from streamgp.inference.chain.known import Known
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


def places(known: Known, x: Float[np.ndarray, " N"], law: Law | None = None) -> Places:
    """Where inputs are, inside the times of a chain or beyond them.

    Args:
        known: The chain.
        x: The inputs.
        law: Its law, if the states belong to something else than the latent functions.
    """
    number = known.holding(x)
    which, left, right = np.empty(len(x), int), np.empty(len(x)), np.empty(len(x))
    for index in np.unique(number):
        own, segment = number == index, known.links[index].segment
        inside = segment.place(x[own])
        which[own], left[own], right[own] = inside, segment.times[inside], segment.times[inside + 1]
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
    both, of_row = np.unique(np.stack([number, which], axis=1), axis=0, return_inverse=True)
    return Places(both[:, 0], both[:, 1], np.ravel(of_row), Between(design, open_))
