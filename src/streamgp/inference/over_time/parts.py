"""Processes of kernels as blocks of the compiled core, and how rows see them."""

import dataclasses
import functools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Float

from streamgp.inference.over_time.law import scale_of
from streamgp.kernels.state_space import (
    ConstantState,
    HarmonicState,
    LineState,
    MaternState,
    ProductState,
    StateSpace,
)

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
        factors: The processes that it is the product of.
    """

    latent: int
    factors: tuple[StateSpace, ...]

    @functools.cached_property
    def process(self) -> StateSpace | None:
        """What moves; None if nothing does."""
        still = ConstantState | HarmonicState | LineState
        moving = [factor for factor in self.factors if not isinstance(factor, still)]
        return functools.reduce(ProductState, moving) if moving else None

    @property
    def kind(self) -> int:
        """The core's kind of its blocks."""
        return self.process.order if isinstance(self.process, MaternState) else _GIVEN

    @property
    def is_given(self) -> bool:
        """Whether the core does not know what moves."""
        return self.process is not None and self.kind == _GIVEN

    @functools.cached_property
    def lines(self) -> int:
        """How many straight lines are among the factors: a block is seen through that power."""
        return sum(isinstance(factor, LineState) for factor in self.factors)

    @functools.cached_property
    def scale(self) -> Float[np.ndarray, " d"]:
        """The units of a process that is handed over: its prior standard deviations."""
        assert self.process is not None
        return scale_of(np.diagonal(self.process.covariance(0.0)))

    @functools.cached_property
    def readout(self) -> Float[np.ndarray, " d"]:
        """Of each block. It has the variances that the core's blocks have not."""
        variance = 1.0
        for factor in self.factors:
            if isinstance(factor, ConstantState | HarmonicState | LineState):
                variance *= factor.variance
        if self.process is None:
            return np.array([math.sqrt(variance)])
        if self.is_given:
            return math.sqrt(variance) * self.process.readout * self.scale
        return math.sqrt(variance * self.process.numbers()[0]) * self.process.readout

    @functools.cached_property
    def frequencies(self) -> tuple[float, ...]:
        """Of the cosines among its factors."""
        return tuple(f.frequency for f in self.factors if isinstance(f, HarmonicState))

    @property
    def ways(self) -> int:
        """How many blocks it has: one for each choice of cosine or sine, wave by wave."""
        return 2 ** len(self.frequencies)

    @property
    def size(self) -> int:
        """How many numbers of the core it has."""
        return len(self.readout) * self.ways

    def features(self, time: Times) -> Float[np.ndarray, "n w"]:
        """What multiplies the readout of each block at some times."""
        found = (time**self.lines)[:, None]
        for frequency in self.frequencies:
            both = found[:, :, None] * _turned(frequency, time)[:, None]
            found = both.reshape(len(time), 2 * found.shape[1])
        return found

    def by_wave(
        self,
        number: int,
        time: Times,
        features: Float[np.ndarray, "n w"],
        by: Float[np.ndarray, "n w"],
    ) -> float:
        """The derivative by a cosine's log frequency, from those by the features."""
        shape = (len(time), 2**number, 2, self.ways // 2 ** (number + 1))
        cosine, sine = np.moveaxis(features.reshape(shape), 2, 0)
        by_cosine, by_sine = np.moveaxis(by.reshape(shape), 2, 0)
        by_angle = np.sum(by_sine * cosine - by_cosine * sine, axis=(1, 2))
        return self.frequencies[number] * float(time @ by_angle)


def factors_of(part: StateSpace) -> tuple[StateSpace, ...]:
    if isinstance(part, ProductState):
        return (*factors_of(part.left), *factors_of(part.right))
    return (part,)


def matrices(process: StateSpace, gaps: Times) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return process.covariance(0.0), *process.transition(gaps)


def scaled(
    part: Part, start: np.ndarray, a: np.ndarray, q: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Matrices of a process that is handed over in its units, as rows of numbers."""
    outer, turn = np.outer(part.scale, part.scale), part.scale / part.scale[:, None]
    return np.ravel(start / outer), (a * turn).reshape(len(a), -1), (q / outer).reshape(len(q), -1)


def by_given(
    part: Part, gaps: Times, by: list[np.ndarray], by_readout: Float[np.ndarray, " d"]
) -> Iterator[float]:
    """The derivatives by a process's numbers but the variance, from those by its matrices."""
    assert part.process is not None
    by_start, by_a, by_q = (own.reshape(*own.shape[:-1], part.ways, -1).sum(axis=-2) for own in by)
    by_readout = by_readout.reshape(part.ways, -1).sum(axis=0)
    amplitude = part.readout @ part.readout / (part.process.readout * part.scale @ part.readout)
    for larger, smaller in part.process.variants(_DIFFERENCE):
        one, other = (scaled(part, *matrices(p, gaps)) for p in (larger, smaller))
        change = sum(
            np.vdot(own, a - b)
            for own, a, b in zip((by_start, by_a, by_q), one, other, strict=True)
        )
        seen = amplitude * part.scale * (larger.readout - smaller.readout)
        yield float(change + by_readout @ seen) / (2 * _DIFFERENCE)
