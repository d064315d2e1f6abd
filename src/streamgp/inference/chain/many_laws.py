"""The laws of many chains at once: hyperparameters differ, the kinds of states do not."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from streamgp.inference.chain.elements import Moves
from streamgp.inference.chain.law import Bridge, Law, bridged
from streamgp.kernels.state_space import (
    ConstantState,
    HarmonicState,
    LineState,
    MaternState,
    StateSpace,
)

Gaps = Float[np.ndarray, " n"]
Which = Int[np.ndarray, " n"]
Kind = tuple[tuple[type, int, int], ...]


_STACKABLE = {MaternState, ConstantState, HarmonicState, LineState}


def kind_of(law: Law) -> Kind | None:
    """The kinds of a law's states, and whose they are; None if one cannot be stacked."""
    kinds = [type(part) for part in law.parts]
    if not _STACKABLE.issuperset(kinds):
        return None
    return tuple(zip(kinds, law.sizes, law.latent, strict=True))


class _Stack(NamedTuple):
    """One state of each chain.

    A Matérn state over a gap depends on rate·gap alone, up to units: the number i of a state is in
    units of rateⁱ. So all of them are computed as one state of unit rate and unit variance.

    Attributes:
        unit: The state, with unit rate if it is a Matérn state.
        size: How many numbers it has.
        rate: Of each chain: the rate of a Matérn state, the frequency of an oscillation, else one.
        variance: Of each chain.
    """

    unit: StateSpace
    size: int
    rate: Float[np.ndarray, " K"]
    variance: Float[np.ndarray, " K"]

    @classmethod
    def of(cls, parts: Sequence[StateSpace]) -> "_Stack":
        first, size = parts[0], len(parts[0].readout)
        numbers = np.array([part.numbers() for part in parts])
        variance = numbers[:, 0]
        if isinstance(first, MaternState):
            root = np.sqrt(2.0 * first.order + 1)
            return cls(
                MaternState(first.order, float(root), 1.0), size, root / numbers[:, 1], variance
            )
        rate = numbers[:, 1] if isinstance(first, HarmonicState) else np.ones(len(parts))
        return cls(first, size, rate, variance)

    def transition(self, which: Which, gaps: Gaps) -> tuple[np.ndarray, np.ndarray]:
        """A and Q over gaps, each of some chain, in natural units."""
        state, scaled, power = self._at(which, gaps)
        a, q = state.transition(scaled)
        if power is None:
            return a, q
        outer = power[:, :, None] * power[:, None, :]
        return a * (power[:, :, None] / power[:, None, :]), q * outer * self._variance(which)

    def bridge(self, which: Which, since: Gaps, until: Gaps) -> Bridge:
        """A state between two others, in natural units."""
        state, scaled, power = self._at(which, np.stack([since, until]))
        if power is None:
            return _without_noise(state, since, until)
        found = bridged(state, scaled[0], scaled[1])
        turn = power[:, :, None] / power[:, None, :]
        outer = power[:, :, None] * power[:, None, :] * self._variance(which)
        return Bridge(found.near * turn, found.far * turn, found.spread * outer)

    def _variance(self, which: Which) -> np.ndarray:
        return self.variance[which][:, None, None]

    def _at(
        self, which: Which, gaps: np.ndarray
    ) -> tuple[StateSpace, np.ndarray, np.ndarray | None]:
        """The state, gaps in its units, and the units of its numbers if they are not natural."""
        rate = self.rate[which]
        if isinstance(self.unit, MaternState):
            return self.unit, rate * gaps, rate[:, None] ** np.arange(self.size)
        if isinstance(self.unit, HarmonicState):
            return HarmonicState(rate, 1.0), gaps, None
        return self.unit, gaps, None


def _without_noise(state: StateSpace, since: Gaps, until: Gaps) -> Bridge:
    """Without noise the first state tells all; at the second state, that does."""
    near, nothing = state.transition(since)
    far, at_end = np.zeros_like(near), until <= 0.0
    near[at_end], far[at_end] = 0.0, np.eye(near.shape[1])
    return Bridge(near, far, nothing)


@dataclasses.dataclass(frozen=True, eq=False)
class Laws:
    """K laws of one kind.

    Attributes:
        stacks: Each independent state, of all laws.
        latent: The latent function that each belongs to.
        latents: Q.
        owner: The latent function that each number of a state belongs to.
        scale: The prior standard deviation of each number, by law.
    """

    stacks: tuple[_Stack, ...]
    latent: tuple[int, ...]
    latents: int
    owner: Int[np.ndarray, " d"]
    scale: Float[np.ndarray, "K d"]

    @classmethod
    def of(cls, laws: Sequence[Law]) -> "Laws":
        """From laws of one kind."""
        first = laws[0]
        stacks = tuple(map(_Stack.of, zip(*(law.parts for law in laws), strict=True)))
        scale = np.array([law.scale for law in laws])
        return cls(stacks, first.latent, first.latents, first.owner, scale)

    @property
    def size(self) -> int:
        """d."""
        return len(self.owner)

    def moves(self, which: Which, gaps: Gaps) -> Moves:
        """A and Q over gaps, each under some law, scaled."""
        a, q = np.zeros((2, len(gaps), self.size, self.size))
        begin = 0
        for stack in self.stacks:
            own = slice(begin, begin + stack.size)
            a[:, own, own], q[:, own, own] = stack.transition(which, gaps)
            begin = own.stop
        scale = self.scale[which]
        turn = scale[:, None, :] / scale[:, :, None]
        return Moves(a * turn, q / (scale[:, :, None] * scale[:, None, :]))

    def between(
        self, which: Which, since: Gaps, until: Gaps
    ) -> tuple[Float[np.ndarray, "n 2d"], Float[np.ndarray, "n Q"]]:
        """What the states at both ends of an interval say inside it, as `Law.between`."""
        design = np.zeros((len(since), 2 * self.size))
        left_open = np.zeros((len(since), self.latents))
        begin = 0
        for stack, q in zip(self.stacks, self.latent, strict=True):
            near, far, spread = stack.bridge(which, since, until)
            h, own = stack.unit.readout, slice(begin, begin + stack.size)
            design[:, own] = h @ near
            design[:, own.start + self.size : own.stop + self.size] = h @ far
            left_open[:, q] += h @ spread @ h
            begin = own.stop
        return design, np.maximum(left_open, 0.0)
