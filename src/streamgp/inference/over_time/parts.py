"""Processes of kernels as blocks of the compiled core, and how rows see them."""

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Float

from streamgp.kernels.state_space import Process

_GIVEN = 3  # the core's kind of a block whose moves are handed over; Matérns have their order
_DIFFERENCE = 1e-5  # in log units
_HALF = 2.0**27 + 1  # it splits a number into two of half the digits

Times = Float[np.ndarray, " n"]


def _turned(frequency: float, time: Times) -> Float[np.ndarray, "n 2"]:
    """cos ωt and sin ωt, right to all digits after however many turns."""
    turn = frequency * time
    rest = _rounding_of(frequency, time, turn)
    cosine, sine = np.cos(turn), np.sin(turn)
    return np.column_stack([cosine - rest * sine, sine + rest * cosine])


def _rounding_of(
    a: float, b: Float[np.ndarray, " n"], product: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " n"]:
    """What a·b is more than its rounded product (Dekker, 1971)."""

    def halves(x: Any) -> tuple[Any, Any]:
        upper = _HALF * x - (_HALF * x - x)
        return upper, x - upper

    (a_upper, a_lower), (b_upper, b_lower) = halves(a), halves(b)
    rest = a_upper * b_upper - product
    return rest + a_upper * b_lower + a_lower * b_upper + a_lower * b_lower


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """One process of a kernel as blocks of the core: a block for each way in which it is seen.

    Attributes:
        latent: The latent function that it belongs to.
        process: The process.
    """

    latent: int
    process: Process

    @property
    def moves(self) -> bool:
        """Whether its blocks move, and are no static numbers."""
        return bool(self.process.driven)

    @property
    def kind(self) -> int:
        """The core's kind of blocks that move."""
        first, *others = self.process.driven
        order = None if others else first.matern_order
        return _GIVEN if order is None else order

    @property
    def is_given(self) -> bool:
        """Whether the core does not know what moves."""
        return self.moves and self.kind == _GIVEN

    @property
    def rate(self) -> float:
        """Of a block that the core knows."""
        return 1.0 if self.is_given else self.process.driven[0].rate

    @property
    def has_features(self) -> bool:
        """Whether rows see its blocks in different ways."""
        return self.process.is_line or bool(self.process.waves)

    @property
    def ways(self) -> int:
        """How many blocks it has: one for each choice of cosine or sine, wave by wave."""
        return 2 ** len(self.process.waves)

    @property
    def size(self) -> int:
        """How many numbers of the core it has."""
        return len(self.process.readout) * self.ways

    def features(self, time: Times) -> Float[np.ndarray, "n w"]:
        """What multiplies the readout of each block at some times."""
        found = (time if self.process.is_line else np.ones(len(time)))[:, None]
        for frequency in self.process.waves:
            both = found[:, :, None] * _turned(frequency, time)[:, None]
            found = both.reshape(len(time), 2 * found.shape[1])
        return found

    def by_waves(
        self, time: Times, features: Float[np.ndarray, "n w"], by: Float[np.ndarray, "n w"]
    ) -> Iterator[float]:
        """The derivatives by log frequencies, from those by the features."""
        for number, frequency in enumerate(self.process.waves):
            shape = (len(time), 2**number, 2, self.ways // 2 ** (number + 1))
            cosine, sine = np.moveaxis(features.reshape(shape), 2, 0)
            by_cosine, by_sine = np.moveaxis(by.reshape(shape), 2, 0)
            by_angle = np.sum(by_sine * cosine - by_cosine * sine, axis=(1, 2))
            yield frequency * float(time @ by_angle)

    def by_given(
        self, gaps: Times, by: list[np.ndarray], by_readout: Float[np.ndarray, " d"]
    ) -> Iterator[float]:
        """The derivatives by the numbers of what is handed over, from those by its matrices."""
        process, first = self.process, 1 + len(self.process.waves)
        by = [own.reshape(*own.shape[:-1], self.ways, -1).sum(axis=-2) for own in by]
        by.append(by_readout.reshape(self.ways, -1).sum(axis=0))
        for number in range(first, len(process.numbers)):
            ends = []
            for step in (_DIFFERENCE, -_DIFFERENCE):
                numbers = np.array(process.numbers)
                numbers[number] *= math.exp(step)
                moved = process.with_numbers(numbers.tolist())
                ends.append((*matrices(moved, gaps), moved.readout))
            change = sum(np.vdot(own, a - b) for own, a, b in zip(by, *ends, strict=True))
            yield float(change) / (2 * _DIFFERENCE)


def matrices(process: Process, gaps: Times) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of a process that is handed over, as rows of numbers."""
    start, a, q = process.moves(gaps)
    return np.ravel(start), a.reshape(len(a), -1), q.reshape(len(q), -1)
