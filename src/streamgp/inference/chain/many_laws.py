"""The laws of many chains at once: hyperparameters differ, the kinds of states do not."""

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from streamgp.inference.chain.elements import Moves
from streamgp.inference.chain.law import Bridge, Law, bridged, owned, scale_of
from streamgp.inference.chain.numbers import DIFFERENCE
from streamgp.kernels.state_space import (
    ConstantState,
    HarmonicState,
    LineState,
    MaternState,
    Slope,
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
    def of(cls, first: StateSpace, numbers: Float[np.ndarray, "K _"]) -> "_Stack":
        """States as the first one, each with its own numbers."""
        size, variance = len(first.readout), numbers[:, 0]
        if isinstance(first, MaternState):
            root = np.sqrt(2.0 * first.order + 1)
            return cls(
                MaternState(first.order, float(root), 1.0), size, root / numbers[:, 1], variance
            )
        rate = numbers[:, 1] if isinstance(first, HarmonicState) else np.ones(len(numbers))
        return cls(first.scaled(1.0 / first.numbers()[0]), size, rate, variance)

    def variants(self, step: float) -> "Iterator[tuple[_Stack, _Stack]]":
        """For each number but the variance, states with it so much larger, and so much smaller."""
        if self.unit.other:
            sign = -1.0 if isinstance(self.unit, MaternState) else 1.0  # a lengthscale is 1 / rate
            larger, smaller = (self.rate * np.exp(sign * by) for by in (step, -step))
            yield self._replace(rate=larger), self._replace(rate=smaller)

    def slopes(self, which: Which, gaps: Gaps) -> Iterator[Slope]:
        """By the logarithm of each number but the variance: of A and Q, and of the covariance."""
        if not isinstance(self.unit, MaternState):
            for larger, smaller in self.variants(DIFFERENCE):
                (a, q), (b, r) = larger.transition(which, gaps), smaller.transition(which, gaps)
                change = larger.covariance - smaller.covariance
                yield Slope(*(part / (2 * DIFFERENCE) for part in (a - b, q - r, change)))
            return
        scaled = self.rate[which] * gaps
        for by in self.unit.slopes(scaled, self.unit.transition(scaled), 0.0):
            yield Slope(*self._natural(which, by.transition, by.noise), self._spread(by.covariance))

    @property
    def covariance(self) -> Float[np.ndarray, "K s s"]:
        """Of each state before any data, about the origin of time, in natural units."""
        return self._spread(self.unit.covariance(0.0))

    def _spread(self, unit: Float[np.ndarray, "s s"]) -> Float[np.ndarray, "K s s"]:
        """What is a covariance of the unit state, of each chain in natural units."""
        found = unit * self.variance[:, None, None]
        if not isinstance(self.unit, MaternState):
            return found
        power = self.rate[:, None] ** np.arange(self.size)
        return found * power[:, :, None] * power[:, None, :]

    def transition(self, which: Which, gaps: Gaps) -> tuple[np.ndarray, np.ndarray]:
        """A and Q over gaps, each of some chain, in natural units."""
        state, scaled, power = self._at(which, gaps)
        a, q = state.transition(scaled)
        return (a, q) if power is None else self._natural(which, a, q)

    def _natural(self, which: Which, a: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What is A and Q of the unit Matérn state, in natural units."""
        power = self.rate[which][:, None] ** np.arange(self.size)
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
        return cls.at(laws[0], np.array([law.numbers for law in laws]))

    @classmethod
    def at(cls, first: Law, numbers: Float[np.ndarray, "K n"]) -> "Laws":
        """Laws as the first one, each with its own numbers."""
        ends = np.cumsum([len(part.numbers()) for part in first.parts])[:-1]
        stacks = tuple(map(_Stack.of, first.parts, np.split(numbers, ends, axis=1)))
        spread = [np.diagonal(stack.covariance, axis1=1, axis2=2) for stack in stacks]
        scale = scale_of(np.concatenate(spread, axis=1))
        return cls(stacks, first.latent, first.latents, first.owner, scale)

    @functools.cached_property
    def owns(self) -> Float[np.ndarray, "Q dd"]:
        """One where a latent function owns a number of two states (a, c), else zero."""
        return owned(self.owner, self.latents)

    @functools.cached_property
    def scale_of_two(self) -> Float[np.ndarray, "K dd"]:
        """The scale of two states (a, c)."""
        return np.tile(self.scale, 2)

    def slices(self) -> Iterator[tuple[_Stack, slice]]:
        """Each state, and where its numbers are."""
        begin = 0
        for stack in self.stacks:
            yield stack, slice(begin, begin + stack.size)
            begin += stack.size

    @property
    def covariance(self) -> Float[np.ndarray, "K d d"]:
        """Of all states before any data, about the origin of time, scaled."""
        found = np.zeros((*self.scale.shape, self.size))
        for stack, own in self.slices():
            found[:, own, own] = stack.covariance
        return found / (self.scale[:, :, None] * self.scale[:, None, :])

    @property
    def size(self) -> int:
        """d."""
        return len(self.owner)

    def moves(self, which: Which, gaps: Gaps) -> Moves:
        """A and Q over gaps, each under some law, scaled."""
        a, q = np.zeros((2, len(gaps), self.size, self.size))
        for stack, own in self.slices():
            a[:, own, own], q[:, own, own] = stack.transition(which, gaps)
        scale = self.scale[which]
        turn = scale[:, None, :] / scale[:, :, None]
        return Moves(a * turn, q / (scale[:, :, None] * scale[:, None, :]))

    def between(
        self, which: Which, since: Gaps, until: Gaps
    ) -> tuple[Float[np.ndarray, "n dd"], Float[np.ndarray, "n Q"]]:
        """What the states at both ends of an interval say inside it, as `Law.between`."""
        design = np.zeros((len(since), 2 * self.size))
        left_open = np.zeros((len(since), self.latents))
        for (stack, own), q in zip(self.slices(), self.latent, strict=True):
            near, far, spread = stack.bridge(which, since, until)
            h = stack.unit.readout
            design[:, own] = h @ near
            design[:, own.start + self.size : own.stop + self.size] = h @ far
            left_open[:, q] += h @ spread @ h
        return design, np.maximum(left_open, 0.0)
