"""Kernels of time as linear states that are driven by white noise.

A function of time with a Markov kernel is h·s(t), where the state s has the function and perhaps
some derivatives, and over a gap of time s(t + gap) = A·s(t) + noise of covariance Q.

Over short gaps, A and Q are power series; since the coefficients of an equation stand in one row,
and its noise in one entry, the small entries of both keep all their digits. Longer gaps are reached
by doubling, A(2t) = A(t)², Q(2t) = A(t)·Q(t)·A(t)ᵀ + Q(t), which takes no differences.
"""

import dataclasses
import functools
import math
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple, Self

import numpy as np
from jaxtyping import Float
from scipy.linalg import solve_continuous_lyapunov

Gaps = Float[np.ndarray, " n"]
Matrices = Float[np.ndarray, "n d d"]

# α of Matérn-1/2, 3/2 and 5/2 at the rate √(2ν)/lengthscale: those of (s + 1)^p but for the last.
MATERN = (1.0,), (1.0, 2.0), (1.0, 3.0, 3.0)


class Series(NamedTuple):
    """The law of x⁽ᵖ⁾ = −Σ α_k x⁽ᵏ⁾ + noise, with A and Q as power series.

    Time is measured in units in which no coefficient is large, and each number of the state in its
    standard deviation.

    Attributes:
        clock: How many of these units there are in a unit of time.
        deviation: Of each number of the state, in those units, if the noise has unit strength.
        stationary: The covariance that the noise sustains.
        transition: F^k / k!.
        noise: ∂^k Q / k!; the first one is zero.
        reach: The longest gap that the series are used for.
    """

    clock: float
    deviation: Float[np.ndarray, " p"]
    stationary: Float[np.ndarray, "p p"]
    transition: Matrices
    noise: Matrices
    reach: float

    @classmethod
    @functools.lru_cache(maxsize=256)
    def of(cls, alpha: tuple[float, ...]) -> "Series":
        """Of the equation with these α."""
        size, values = len(alpha), np.array(alpha)
        powers = size - np.arange(size)
        clock = float(np.max(values ** (1.0 / powers)))
        values = values / clock**powers
        drift, strength = _companion(values)
        terms = 2 * size + 20  # Q begins with a power of 2p − 1 in its smallest entry
        transition, noise = np.zeros((2, terms, size, size))
        transition[0], noise[1] = np.eye(size), strength
        for k in range(1, terms):
            transition[k] = drift @ transition[k - 1] / k
            if k > 1:
                half = drift @ noise[k - 1]
                noise[k] = (half + half.T) / k
        stationary = sustained(values)
        unit = np.sqrt(np.diagonal(stationary))
        outer, turn = np.outer(unit, unit), unit / unit[:, None]
        stationary /= outer
        np.fill_diagonal(stationary, 1.0)  # exactly
        reach = 0.5 / max(1.0, float(np.sum(np.abs(values))))
        return cls(clock, unit, stationary, transition * turn, noise / outer, reach)

    def moves(self, gaps: Gaps, *, with_noise: bool = True) -> tuple[Matrices, Matrices]:
        """A and Q over each gap, or zeros for Q."""
        doublings = np.ceil(np.log2(np.maximum(gaps / self.reach, 1.0))).astype(int)
        powers = (gaps / 2.0**doublings)[:, None] ** np.arange(len(self.transition))
        a = np.tensordot(powers, self.transition, 1)
        q = np.tensordot(powers, self.noise, 1) if with_noise else np.zeros_like(a)
        for turn in range(doublings.max(initial=0)):
            on = doublings > turn
            here = a[on]
            if with_noise:
                more = here @ q[on] @ np.swapaxes(here, 1, 2)
                q[on] += 0.5 * (more + np.swapaxes(more, 1, 2))
            a[on] = here @ here
        return a, q


def sustained(alpha: Float[np.ndarray, " p"]) -> Float[np.ndarray, "p p"]:
    """P with FP + PFᵀ + D = 0: the covariance of the state if the noise has unit strength.

    It is solved for once more in units of its own deviations, for the small entries.
    """
    drift, strength = _companion(alpha)
    unit = np.ones(len(alpha))
    for _ in range(2):
        turned, driven = drift * (unit / unit[:, None]), strength / np.outer(unit, unit)
        found = solve_continuous_lyapunov(turned, -driven) * np.outer(unit, unit)
        unit = np.sqrt(np.diagonal(found))
    return 0.5 * (found + found.T)


def _companion(alpha: Float[np.ndarray, " p"]) -> Float[np.ndarray, "2 p p"]:
    """F and D of an equation."""
    drift, strength = np.eye(len(alpha), k=1), np.zeros((len(alpha), len(alpha)))
    drift[-1], strength[-1, -1] = -alpha, 1.0
    return np.stack([drift, strength])


@dataclasses.dataclass(frozen=True, eq=False)
class LinearSDE:
    """A function Σ β_k x⁽ᵏ⁾ of unit variance, where x⁽ᵖ⁾ = −Σ α_k·rate^(p−k)·x⁽ᵏ⁾ + noise.

    Attributes:
        rate: How fast its clock goes.
        alpha: α_k, all positive.
        beta: β_k but for the last one, which is one.
        free: Which of its numbers can be learned, among the rate, α and β in this order.
    """

    rate: float
    alpha: tuple[float, ...]
    beta: tuple[float, ...] = ()
    free: tuple[int, ...] = (0,)

    @property
    def numbers(self) -> tuple[float, ...]:
        """Those that can be learned."""
        every = (self.rate, *self.alpha, *self.beta)
        return tuple(every[place] for place in self.free)

    def with_numbers(self, numbers: Iterable[float]) -> Self:
        """The same with others of these numbers."""
        every = [self.rate, *self.alpha, *self.beta]
        for place, number in zip(self.free, numbers, strict=True):
            every[place] = number
        end = 1 + len(self.alpha)
        alpha, beta = tuple(every[1:end]), tuple(every[end:])
        return dataclasses.replace(self, rate=every[0], alpha=alpha, beta=beta)

    @property
    def matern_order(self) -> int | None:
        """0, 1 or 2 if it is a Matérn-1/2, 3/2 or 5/2 of some lengthscale."""
        is_matern = self.free == (0,) and not self.beta and self.alpha in MATERN
        return len(self.alpha) - 1 if is_matern else None

    @property
    def stationary(self) -> Float[np.ndarray, "d d"]:
        """The covariance of the state before any data. The variances are one."""
        return self._series.stationary

    @functools.cached_property
    def readout(self) -> Float[np.ndarray, " d"]:
        """h."""
        found = np.zeros(len(self.alpha))
        if not self.beta:
            found[0] = 1.0
            return found
        beta = np.array((*self.beta, 1.0))
        found[: len(beta)] = beta * self._speed ** np.arange(len(beta))
        found *= self._series.deviation
        return found / math.sqrt(found @ self.stationary @ found)

    def moves(self, gaps: Gaps) -> tuple[Matrices, Matrices]:
        """A and Q over each gap."""
        return self._series.moves(self._speed * gaps)

    def covariances(self, gaps: Gaps) -> Float[np.ndarray, " n"]:
        """Of the function, at two times that far apart."""
        a, _ = self._series.moves(self._speed * gaps, with_noise=False)
        return a @ (self.stationary @ self.readout) @ self.readout

    @property
    def _series(self) -> Series:
        return Series.of(self.alpha)

    @property
    def _speed(self) -> float:
        return self.rate * self._series.clock


class Moves(NamedTuple):
    """How a state moves.

    Attributes:
        start: Its covariance before any data.
        transition: A over each gap.
        noise: Q over each gap.
    """

    start: Float[np.ndarray, "d d"]
    transition: Matrices
    noise: Matrices

    def times(self, other: "Moves") -> "Moves":
        """Of the product of two functions: the Kronecker products of their states."""
        a, b = self.transition, other.transition
        # A sum of positive terms.
        after = a @ self.start @ np.swapaxes(a, 1, 2)
        noise = _kron(self.noise, other.start[None]) + _kron(after, other.noise)
        return Moves(np.kron(self.start, other.start), _kron(a, b), noise)


def _kron(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of each matrix with each, or with the only one."""
    size = a.shape[1] * b.shape[1]
    return (a[:, :, None, :, None] * b[:, None, :, None, :]).reshape(-1, size, size)


@dataclasses.dataclass(frozen=True, eq=False)
class Process:
    """A function of time with a state: a product of simple ones.

    Its covariance is variance · Π cos ω(t − t′) · Π k(t − t′); that of a line is variance · t · t′.
    With nothing but a variance it is a constant.

    Attributes:
        variance: Of the function; of a line, of its slope.
        is_line: Whether it is a straight line through the origin of time.
        waves: ω of each cosine, in radians per unit of time.
        driven: The factors that noise drives.
    """

    variance: float
    is_line: bool = False
    waves: tuple[float, ...] = ()
    driven: tuple[LinearSDE, ...] = ()

    @property
    def numbers(self) -> tuple[float, ...]:
        """Those that can be learned: the variance, those of the waves, those of driven factors."""
        return self.variance, *self.waves, *(n for factor in self.driven for n in factor.numbers)

    def with_numbers(self, numbers: Iterable[float]) -> Self:
        """The same with others of these numbers."""
        left = iter(numbers)
        variance, waves = next(left), tuple(islice(left, len(self.waves)))
        driven = [factor.with_numbers(islice(left, len(factor.free))) for factor in self.driven]
        return dataclasses.replace(self, variance=variance, waves=waves, driven=tuple(driven))

    def scaled(self, factor: float) -> Self:
        """The same with its variance times a positive number."""
        return dataclasses.replace(self, variance=factor * self.variance)

    @functools.cached_property
    def readout(self) -> Float[np.ndarray, " d"]:
        """h of what noise drives, for a function with the variance."""
        factors = [factor.readout for factor in self.driven] or [np.ones(1)]
        return math.sqrt(self.variance) * functools.reduce(np.kron, factors)

    def moves(self, gaps: Gaps) -> Moves:
        """How what noise drives moves over each gap."""
        factors = [Moves(factor.stationary, *factor.moves(gaps)) for factor in self.driven]
        return functools.reduce(Moves.times, factors)

    def covariances(self, gaps: Gaps) -> Float[np.ndarray, " n"]:
        """Of the function, at two times that far apart, unless it is a line."""
        waves = [np.cos(frequency * gaps) for frequency in self.waves]
        factors = [*waves, *(factor.covariances(gaps) for factor in self.driven)]
        return functools.reduce(np.multiply, factors, np.full(len(gaps), self.variance))


def multiplied_processes(
    left: tuple[Process, ...] | None, right: tuple[Process, ...] | None
) -> tuple[Process, ...] | None:
    """The processes of a product of two sums, or None if a factor has none, or is a line."""
    if left is None or right is None or any(part.is_line for part in left + right):
        return None
    return tuple(
        Process(a.variance * b.variance, waves=a.waves + b.waves, driven=a.driven + b.driven)
        for a in left
        for b in right
    )
