"""Kernels of time as linear states that are driven by white noise.

A function of time with a Markov kernel is h·s(t), where the state s has the function and perhaps
some derivatives, and over a gap of time s(t + gap) = A·s(t) + noise of covariance Q.
"""

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from jaxtyping import Float
from scipy.special import ive

Gaps = Float[np.ndarray, " n"]
Matrices = Float[np.ndarray, "n d d"]

HARMONICS = 8  # of a periodic kernel
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)
_DIFFERENCE = 1e-5  # in log units


class Slope(NamedTuple):
    """Derivatives by the logarithm of a number: of A and Q over each gap, and of a covariance."""

    transition: Matrices
    noise: Matrices
    covariance: Float[np.ndarray, "d d"]


class StateSpace(ABC):
    """One state and its law."""

    @property
    @abstractmethod
    def readout(self) -> Float[np.ndarray, " d"]:
        """h, so that the function is h·s."""

    @property
    @abstractmethod
    def resolution(self) -> float:
        """The longest gap within which two states tell nearly all that lies between them."""

    @abstractmethod
    def covariance(self, time: float) -> Float[np.ndarray, "d d"]:
        """Of the state at some time, before any data."""

    @abstractmethod
    def transition(self, gaps: Gaps) -> tuple[Matrices, Matrices]:
        """A and Q over each gap."""

    @abstractmethod
    def scaled(self, factor: float) -> Self:
        """The same with its variance times a positive number."""

    # Its numbers beside the variance, to which covariances are in proportion.
    other: ClassVar[tuple[str, ...]] = ()

    def numbers(self) -> tuple[float, ...]:
        """The variance, and its other numbers."""
        return tuple(getattr(self, name) for name in ("variance", *self.other))

    def variants(self, step: float) -> Iterator[tuple[Self, Self]]:
        """For each number but the variance, the state with it so much larger and so much smaller.

        Args:
            step: In natural log units.
        """
        for name in self.other:
            value = getattr(self, name)
            larger = dataclasses.replace(self, **{name: value * math.exp(step)})  # type: ignore[type-var]
            smaller = dataclasses.replace(self, **{name: value * math.exp(-step)})  # type: ignore[type-var]
            yield larger, smaller

    def slopes(self, gaps: Gaps, moves: tuple[Matrices, Matrices], time: float) -> Iterator[Slope]:
        """By the logarithm of each number but the variance; here by differences.

        Args:
            gaps: Of time.
            moves: A and Q over them.
            time: Of the covariance.
        """
        for larger, smaller in self.variants(_DIFFERENCE):
            (a, q), (b, r) = larger.transition(gaps), smaller.transition(gaps)
            change = larger.covariance(time) - smaller.covariance(time)
            yield Slope(*(part / (2 * _DIFFERENCE) for part in (a - b, q - r, change)))


@dataclasses.dataclass(frozen=True, eq=False)
class MaternState(StateSpace):
    """Matérn-1/2, 3/2 and 5/2: the function and its first `order` derivatives."""

    order: int
    lengthscale: float
    variance: float

    other: ClassVar[tuple[str, ...]] = ("lengthscale",)

    # The open part of the variance in the middle of a gap is then 1%, 0.1% and 0.1%.
    _RESOLUTION: ClassVar[tuple[float, ...]] = (0.02, 0.2, 0.4)
    _DRIVE: ClassVar[tuple[float, ...]] = (2.0, 4.0, 16.0 / 3.0)

    @property
    def readout(self) -> Float[np.ndarray, " d"]:
        return np.eye(self.order + 1)[0]

    @property
    def resolution(self) -> float:
        return self._RESOLUTION[self.order] * self.lengthscale

    @property
    def _rate(self) -> float:
        return math.sqrt(2 * self.order + 1) / self.lengthscale

    def scaled(self, factor: float) -> Self:
        return dataclasses.replace(self, variance=factor * self.variance)

    def covariance(self, time: float) -> Float[np.ndarray, "d d"]:
        g = self._rate
        if self.order == 0:
            unit = [[1.0]]
        elif self.order == 1:
            unit = [[1.0, 0.0], [0.0, g**2]]
        else:
            k = g**2 / 3
            unit = [[1.0, 0.0, -k], [0.0, k, 0.0], [-k, 0.0, g**4]]
        return self.variance * np.array(unit)

    def transition(self, gaps: Gaps) -> tuple[Matrices, Matrices]:
        a = self._decay(gaps)
        # Over short gaps what is left of the stationary covariance is a difference of nearly equal
        # numbers, so the noise is integrated instead: Q = ∫ φφᵀ ds with φ(s) = A(s)·(0, …, 1).
        short = gaps * self._rate < 1.0
        if short.all():
            return a, self._integrated(gaps)
        noise = np.empty_like(a)
        if short.any():
            noise[short] = self._integrated(gaps[short])
        stationary, long = self.covariance(0.0), a[~short]
        noise[~short] = stationary - long @ stationary @ np.swapaxes(long, 1, 2)
        return a, noise

    def slopes(self, gaps: Gaps, moves: tuple[Matrices, Matrices], time: float) -> Iterator[Slope]:
        """By the lengthscale ℓ, in closed form.

        Over a gap, A and Q depend on gap/ℓ, and the number i of a state is in units of ℓ⁻ⁱ. So what
        ℓ does is told by those units and by what the gap does: ∂A = F·A and ∂Q = φφᵀ, φ the last
        column of A times the root of what drives the state.
        """
        a, q = moves
        units = np.arange(self.order + 1)
        by_gap = self._feedback @ a
        by_lengthscale = (units - units[:, None]) * a - gaps[:, None, None] * by_gap
        pushed = a[:, :, -1]
        drift = (self._drive * gaps)[:, None, None] * (pushed[:, :, None] * pushed[:, None, :])
        both = units + units[:, None]
        yield Slope(by_lengthscale, -both * q - drift, -both * self.covariance(time))

    @property
    def _feedback(self) -> Float[np.ndarray, "d d"]:
        """F: how a state moves at once, but for what drives it."""
        g = self._rate
        found = np.eye(self.order + 1, k=1)
        found[-1] = ([-g], [-(g**2), -2 * g], [-(g**3), -3 * g**2, -3 * g])[self.order]
        return found

    @property
    def _drive(self) -> float:
        """The strength of the white noise that drives the last number."""
        return self._DRIVE[self.order] * self.variance * self._rate ** (2 * self.order + 1)

    def _integrated(self, gaps: Gaps) -> Matrices:
        half = 0.5 * gaps[:, None]
        times = half * (1 + _NODES)
        phi = self._response(times)
        return phi @ ((self._drive * half * _WEIGHTS)[:, None, :] * phi).swapaxes(1, 2)

    def _response(self, t: Float[np.ndarray, "n m"]) -> Float[np.ndarray, "n d m"]:
        """The last column of A over each gap: what becomes of a push."""
        gt = self._rate * t
        fade = np.exp(-gt)
        found = np.empty((len(t), self.order + 1, t.shape[1]))
        if self.order == 0:
            found[:, 0] = fade
        elif self.order == 1:
            found[:, 0], found[:, 1] = t * fade, (1 - gt) * fade
        else:
            found[:, 0], found[:, 1] = 0.5 * t * t * fade, t * (1 - 0.5 * gt) * fade
            found[:, 2] = (1 - 2 * gt + 0.5 * gt * gt) * fade
        return found

    def _decay(self, t: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n d d"]:
        """A over each gap."""
        g = self._rate
        fade, gt = np.exp(-g * t), g * t
        rows: list[list[Any]]
        if self.order == 0:
            rows = [[1.0]]
        elif self.order == 1:
            rows = [[1 + gt, t], [-g * gt, 1 - gt]]
        else:
            rows = [
                [1 + gt + gt**2 / 2, t * (1 + gt), t**2 / 2],
                [-g * gt**2 / 2, 1 + gt - gt**2, t * (1 - gt / 2)],
                [g**2 * gt * (gt / 2 - 1), g * gt * (gt - 3), 1 - 2 * gt + gt**2 / 2],
            ]
        found = np.empty((*t.shape, self.order + 1, self.order + 1))
        for i, row in enumerate(rows):
            for j, entry in enumerate(row):
                np.multiply(fade, entry, out=found[..., i, j])
        return found


@dataclasses.dataclass(frozen=True, eq=False)
class ConstantState(StateSpace):
    """A number that never changes."""

    variance: float

    @property
    def readout(self) -> Float[np.ndarray, " d"]:
        return np.ones(1)

    @property
    def resolution(self) -> float:
        return math.inf

    def scaled(self, factor: float) -> Self:
        return dataclasses.replace(self, variance=factor * self.variance)

    def covariance(self, time: float) -> Float[np.ndarray, "d d"]:
        return np.full((1, 1), self.variance)

    def transition(self, gaps: Gaps) -> tuple[Matrices, Matrices]:
        return np.ones((len(gaps), 1, 1)), np.zeros((len(gaps), 1, 1))


@dataclasses.dataclass(frozen=True, eq=False)
class LineState(StateSpace):
    """A straight line through the origin of time: where it is, and its slope."""

    variance: float  # of the slope

    @property
    def readout(self) -> Float[np.ndarray, " d"]:
        return np.array([1.0, 0.0])

    @property
    def resolution(self) -> float:
        return math.inf

    def scaled(self, factor: float) -> Self:
        return dataclasses.replace(self, variance=factor * self.variance)

    def covariance(self, time: float) -> Float[np.ndarray, "d d"]:
        return self.variance * np.array([[time**2, time], [time, 1.0]])

    def transition(self, gaps: Gaps) -> tuple[Matrices, Matrices]:
        a = np.tile(np.eye(2), (len(gaps), 1, 1))
        a[:, 0, 1] = gaps
        return a, np.zeros_like(a)


@dataclasses.dataclass(frozen=True, eq=False)
class HarmonicState(StateSpace):
    """An oscillation of fixed amplitude: the function and its quarter turn."""

    frequency: float  # radians per unit of time
    variance: float

    other: ClassVar[tuple[str, ...]] = ("frequency",)

    @property
    def readout(self) -> Float[np.ndarray, " d"]:
        return np.array([1.0, 0.0])

    @property
    def resolution(self) -> float:
        return math.inf

    def scaled(self, factor: float) -> Self:
        return dataclasses.replace(self, variance=factor * self.variance)

    def covariance(self, time: float) -> Float[np.ndarray, "d d"]:
        return self.variance * np.eye(2)

    def transition(self, gaps: Gaps) -> tuple[Matrices, Matrices]:
        angle = self.frequency * gaps
        c, s = np.cos(angle), np.sin(angle)
        a = np.moveaxis(np.array([[c, -s], [s, c]]), 2, 0)
        return a, np.zeros_like(a)


@dataclasses.dataclass(frozen=True, eq=False)
class ProductState(StateSpace):
    """The product of two functions' kernels: the Kronecker product of their states."""

    left: StateSpace
    right: StateSpace

    def numbers(self) -> tuple[float, ...]:
        (one, *left), (two, *right) = self.left.numbers(), self.right.numbers()
        return one * two, *left, *right

    def variants(self, step: float) -> Iterator[tuple["ProductState", "ProductState"]]:
        for larger, smaller in self.left.variants(step):
            yield ProductState(larger, self.right), ProductState(smaller, self.right)
        for larger, smaller in self.right.variants(step):
            yield ProductState(self.left, larger), ProductState(self.left, smaller)

    @property
    def readout(self) -> Float[np.ndarray, " d"]:
        return np.kron(self.left.readout, self.right.readout)

    @property
    def resolution(self) -> float:
        return min(self.left.resolution, self.right.resolution)

    def scaled(self, factor: float) -> Self:
        return dataclasses.replace(self, left=self.left.scaled(factor))

    def covariance(self, time: float) -> Float[np.ndarray, "d d"]:
        return np.kron(self.left.covariance(time), self.right.covariance(time))

    def transition(self, gaps: Gaps) -> tuple[Matrices, Matrices]:
        (a, q), (b, r) = self.left.transition(gaps), self.right.transition(gaps)
        # A sum of positive terms, since both factors are stationary (`multiplied` sees to it).
        after = a @ self.left.covariance(0.0) @ np.swapaxes(a, 1, 2)
        stationary = np.broadcast_to(self.right.covariance(0.0), b.shape)
        return _kron(a, b), _kron(q, stationary) + _kron(after, r)


def multiplied(
    left: tuple[StateSpace, ...], right: tuple[StateSpace, ...]
) -> tuple[StateSpace, ...] | None:
    """The states of a product of two sums, or None if a factor is not stationary."""
    if any(isinstance(part, LineState) for part in (*left, *right)):
        return None
    return tuple(ProductState(a, b) for a in left for b in right)


def scaled(parts: tuple[StateSpace, ...], factor: float) -> tuple[StateSpace, ...]:
    """The states of a kernel times a positive number."""
    return tuple(part.scaled(factor) for part in parts)


def harmonics(lengthscale: float, variance: float, period: float) -> tuple[StateSpace, ...]:
    """exp((cos − 1)/ℓ²) as a cosine series, cut off after some harmonics and of equal variance.

    The weights are e^(−1/ℓ²)·I_j(1/ℓ²), twice that for j > 0 (Solin & Särkkä, 2014).
    """
    order = np.arange(HARMONICS + 1)
    weights = ive(order, lengthscale**-2.0) * np.where(order == 0, 1.0, 2.0)
    weights *= variance / weights.sum()
    turns = [
        HarmonicState(2 * math.pi * j / period, float(w)) for j, w in enumerate(weights) if j > 0
    ]
    return (ConstantState(float(weights[0])), *turns)


def _kron(a: Matrices, b: Matrices) -> Matrices:
    size = a.shape[1] * b.shape[1]
    return np.einsum("nij,nkl->nikjl", a, b).reshape(len(a), size, size)
