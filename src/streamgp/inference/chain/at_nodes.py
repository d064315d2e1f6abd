"""The evidence of rows that lie at the times of a chain, by the compiled core.

Where all that an interval says is about the states at its ends, its sums are those of scalar rows:
of each latent parameter one at each time, with the mean of what was observed there and its
precision.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from streamgp.inference.chain.law import Law
from streamgp.inference.chain.segments import Segment, triangle
from streamgp.inference.reading import ByReading, Reading, Totals
from streamgp.inference.state_space import Rows, States

_SAME = 1e-9  # relative: what sums may differ by from those of rows
_LEAST = 1e-10  # of the largest precision: below it, means are rounding
_STEP = 1e-3  # in log units: where readouts are looked at once more


class AtNodes(NamedTuple):
    """Rows in the order of time, at unit noise where noise scales sites.

    Attributes:
        time: When.
        value: The mean of what was observed, less the offset.
        mass: Its precision.
        output: The latent parameter.
        basis: The mean functions there.
    """

    time: Float[np.ndarray, " n"]
    value: Float[np.ndarray, " n"]
    mass: Float[np.ndarray, " n"]
    output: Int[np.ndarray, " n"]
    basis: Float[np.ndarray, "n B"]

    @classmethod
    def of(cls, segment: Segment, totals: Totals, law: Law, outputs: int) -> "AtNodes | None":
        """The rows that the sums of a chain are those of; None if they are not."""
        if segment.precision.shape[1] != outputs or totals.slack.any():
            return None  # latent parameters in pairs, or rows inside intervals
        if not segment.has_data or not has_fixed_readouts(law):
            return None
        place, size = triangle(segment.features)[2], law.size
        if segment.precision[:, :, place[:size, size : 2 * size]].any():
            return None
        readout = np.concatenate([part.readout for part in law.parts])
        ends = [_End.of(segment, readout, place, at, size) for at in (0, size)]
        if any(end is None for end in ends):
            return None
        found = [end.rows(times) for end, times in zip(ends, _ends(segment), strict=True) if end]
        time, value, mass, output, basis = (np.concatenate(own) for own in zip(*found, strict=True))
        if not len(mass) or mass.min() < _LEAST * mass.max():
            return None
        order = np.argsort(time, kind="stable")
        return cls(time[order], value[order], mass[order], output[order], basis[order])

    def evidence(
        self, law: Law, reading: Reading, totals: Totals
    ) -> tuple[float, Float[np.ndarray, " k"], ByReading]:
        """The log evidence up to a constant; by numbers, and by loadings and strengths."""
        channel = reading.outputs.channel
        noise = 1.0 / (reading.strength[channel][self.output] * self.mass)
        rows = Rows(self.time, self.value, noise, self.output, self.basis)
        found = States(law, reading.loadings, reading.spreads).evidence(rows)
        energy = self.value**2 / noise
        beside = 0.5 * float(np.sum(np.log(2 * np.pi * noise) + energy))
        by_row = 0.5 * (energy - 1.0) - noise * found.by_noise
        by_strength = np.bincount(channel[self.output], by_row, len(reading.strength))
        by_strength += 0.5 * (totals.count - reading.strength * totals.energy)
        value = found.value + beside + reading.beside(totals)
        return value, found.by_numbers, ByReading(found.by_loadings, by_strength)


class _End(NamedTuple):
    """What intervals say of the state at one of their ends."""

    mass: Float[np.ndarray, "n O"]
    pull: Float[np.ndarray, "n O"]
    basis: Float[np.ndarray, "n O B"]

    @classmethod
    def of(
        cls, segment: Segment, readout: np.ndarray, place: np.ndarray, begin: int, size: int
    ) -> "_End | None":
        """From the numbers of the state that begin there; None if they are not those of rows."""
        first = int(np.argmax(np.abs(readout)))
        own = place[begin : begin + size, begin : begin + size]
        told = segment.precision[:, :, own]
        mass = told[:, :, first, first] / readout[first] ** 2
        pull = segment.linear[:, :, begin + first] / readout[first]
        across = segment.precision[:, :, place[begin + first, 2 * size :]] / readout[first]
        if np.any((mass == 0) & (pull != 0)) or mass.min() < 0:
            return None
        rest = np.abs(told - mass[:, :, None, None] * np.outer(readout, readout))
        if rest.max(initial=0.0) > _SAME * np.abs(told).max(initial=0.0):
            return None
        seen = np.abs(segment.linear[:, :, begin : begin + size] - pull[:, :, None] * readout)
        if seen.max(initial=0.0) > _SAME * np.abs(pull).max(initial=0.0):
            return None
        return cls(mass, pull, across / np.where(mass > 0, mass, 1.0)[:, :, None])

    def rows(self, times: Float[np.ndarray, " n"]) -> "AtNodes":
        """Where something was said, as rows."""
        where, output = np.nonzero(self.mass)
        mass = self.mass[where, output]
        value = self.pull[where, output] / mass
        return AtNodes(times[where], value, mass, output, self.basis[where, output])


def _ends(segment: Segment) -> tuple[np.ndarray, np.ndarray]:
    return segment.times[:-1], segment.times[1:]


def has_fixed_readouts(law: Law) -> bool:
    """Whether what is seen of states does not depend on hyperparameters."""
    return all(
        np.array_equal(one.readout, other.readout)
        for part in law.parts
        for one, other in part.variants(_STEP)
    )
