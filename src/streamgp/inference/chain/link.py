"""A link of a chain: a segment, with what is known at its states."""

import dataclasses

import numpy as np
from jaxtyping import Float

from streamgp.inference.chain.elements import Backward, Elements, Forward, silent, taken
from streamgp.inference.chain.mixing import Mixing, Moments
from streamgp.inference.chain.segments import Segment
from streamgp.inference.chain.stretch import Stretch, Weights


class Link:
    """A segment, and what is known at each of its states from data before them."""

    def __init__(self, segment: Segment, forward: Forward, whole: Elements | None = None):
        self.segment, self.forward, self._whole = segment, forward, whole
        self._smoothed: tuple[Backward, Backward] | None = None  # for which end, at all states
        self._stiffness: tuple[Backward, np.ndarray] | None = None

    def whole(self, mixing: Mixing) -> Elements:
        """All of it as one element."""
        if self._whole is None:
            self._whole = self.stretch(mixing).tree.whole
        return self._whole

    def smoothed(self, mixing: Mixing, after: Backward) -> Backward:
        """What later data say at each state, from what they say at the last."""
        if self._smoothed is None or self._smoothed[0] is not after:
            stretch = dataclasses.replace(self.stretch(mixing), after=after)
            self._smoothed = (after, stretch.backward)
        return self._smoothed[1]

    def stiffness(
        self, mixing: Mixing, after: Backward, weights: Weights
    ) -> Float[np.ndarray, "C Q Q"]:
        """Σ P E[u uᵀ] over its rows, of each pair of latent parameters, open variance apart."""
        if self._stiffness is None or self._stiffness[0] is not after:
            pairs = dataclasses.replace(self.stretch(mixing), after=after).pairs()
            inner = mixing.inner(self.segment.sums, Moments.of(pairs, weights))
            self._stiffness = (after, -2.0 * inner.states)
        return self._stiffness[1]

    def stretch(self, mixing: Mixing) -> Stretch:
        """Its intervals, with nothing after them."""
        return Stretch(
            mixing.law.moves(self.segment.times),
            mixing.sites(self.segment.sums),
            taken(self.forward, slice(1)),
            silent(mixing.law.size, mixing.columns),
        )

    @property
    def last(self) -> Forward:
        """What is known at its last state."""
        return taken(self.forward, slice(-1, None))
