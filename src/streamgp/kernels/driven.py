"""States of linear differential equations that are driven by white noise.

x⁽ᵖ⁾ = −Σ α_k x⁽ᵏ⁾ + noise has the state (x, x′, …, x⁽ᵖ⁻¹⁾), and the function is Σ β_k x⁽ᵏ⁾. Time is
measured in units in which no α_k is large. Over short gaps, A and Q are power series; since α
stands in one row and the noise in one entry, the small entries of both keep all their digits.
Longer gaps are reached by doubling, A(2t) = A(t)², Q(2t) = A(t)·Q(t)·A(t)ᵀ + Q(t), which takes no
differences.
"""

import dataclasses
import functools
from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar, NamedTuple, Self

import numpy as np
from jaxtyping import Float
from scipy.linalg import solve_continuous_lyapunov

from streamgp.kernels.state_space import Gaps, Matrices, StateSpace

_LOOKED_AT = np.logspace(-4, 3, 281)  # gaps, in units of time, that may be the resolution
_LEFT_OPEN = 1e-3  # of the variance, in the middle of a gap
_LEFT_OPEN_OF_ROUGH = (
    1e-2  # where the function has no derivative, and shorter gaps are of little use
)


class Series(NamedTuple):
    """Power series of A and Q, in units of time in which no coefficient is large.

    Attributes:
        transition: F^k / k!.
        noise: ∂^k Q / k!, for noise of unit strength; the first one is zero.
        stationary: The covariance that the noise sustains.
        reach: The longest gap that the series are used for.
    """

    transition: Matrices
    noise: Matrices
    stationary: Float[np.ndarray, "p p"]
    reach: float

    @classmethod
    @functools.lru_cache(maxsize=256)
    def of(cls, coefficients: tuple[float, ...]) -> "Series":
        """Of the equation with these α."""
        size = len(coefficients)
        drift = np.eye(size, k=1)
        drift[-1] = -np.array(coefficients)
        strength = np.zeros((size, size))
        strength[-1, -1] = 1.0
        terms = 2 * size + 20  # Q begins with a power of 2p − 1 in its smallest entry
        transition, noise = np.zeros((2, terms, size, size))
        transition[0], noise[1] = np.eye(size), strength
        for k in range(1, terms):
            transition[k] = drift @ transition[k - 1] / k
            if k > 1:
                half = drift @ noise[k - 1]
                noise[k] = (half + half.T) / k
        reach = 0.5 / max(1.0, float(np.sum(np.abs(coefficients))))
        return cls(transition, noise, _sustained(drift, strength), reach)

    def steps(self, gaps: Gaps) -> Matrices:
        """A over each gap."""
        return self.moves(gaps, with_noise=False)[0]

    def moves(self, gaps: Gaps, *, with_noise: bool = True) -> tuple[Matrices, Matrices]:
        """A, and Q for noise of unit strength, over each gap."""
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


def _sustained(drift: np.ndarray, strength: np.ndarray) -> Float[np.ndarray, "p p"]:
    """P with FP + PFᵀ + D = 0. Once more in units of its own deviations, for the small entries."""
    unit = np.ones(len(drift))
    for _ in range(2):
        turned, driven = drift * (unit / unit[:, None]), strength / np.outer(unit, unit)
        found = solve_continuous_lyapunov(turned, -driven) * np.outer(unit, unit)
        unit = np.sqrt(np.diagonal(found))
    return 0.5 * (found + found.T)


@dataclasses.dataclass(frozen=True, eq=False)
class DrivenState(StateSpace):
    """The state of such an equation. `variance` is that of the function."""

    variance: float

    @property
    @abstractmethod
    def equation(self) -> tuple[float, tuple[float, ...]]:
        """A rate, and the coefficients α_k in units of rate^(p − k)."""

    @property
    @abstractmethod
    def weights(self) -> tuple[float, ...]:
        """β_k, in the user's units; those that are left out are zero."""

    def scaled(self, factor: float) -> Self:
        return dataclasses.replace(self, variance=factor * self.variance)

    @functools.cached_property
    def readout(self) -> Float[np.ndarray, " d"]:
        size = len(self.equation[1])
        return np.pad(np.array(self.weights), (0, size - len(self.weights)))

    @functools.cached_property
    def _series(self) -> Series:
        return Series.of(self.equation[1])

    @functools.cached_property
    def _units(self) -> Float[np.ndarray, " d"]:
        """Of the state: rate^k."""
        rate, coefficients = self.equation
        return rate ** np.arange(len(coefficients))

    @functools.cached_property
    def _outer(self) -> Float[np.ndarray, "d d"]:
        """Of covariances: such that the function has its variance."""
        outer = np.outer(self._units, self._units)
        return outer * (
            self.variance / (self.readout @ (self._series.stationary * outer) @ self.readout)
        )

    def covariance(self, time: float) -> Float[np.ndarray, "d d"]:
        return self._series.stationary * self._outer

    def transition(self, gaps: Gaps) -> tuple[Matrices, Matrices]:
        a, q = self._series.moves(self.equation[0] * gaps)
        return a * (self._units[:, None] / self._units), q * self._outer

    def covariances(self, gaps: Gaps) -> Float[np.ndarray, " n"]:
        """Of the function, at two times that far apart."""
        a = self._series.steps(self.equation[0] * gaps)
        unit = self.readout * self._units
        reach = self._series.stationary @ unit
        return (self.variance / (unit @ reach)) * (a @ reach @ unit)

    @functools.cached_property
    def resolution(self) -> float:
        """Looked for: states at both ends leave little of the variance open in the middle."""
        gaps, stationary = _LOOKED_AT, self._series.stationary
        unit = self.readout * self._units
        whole, most = float(unit @ stationary @ unit), _LEFT_OPEN
        if unit[-1]:  # the function has no derivative, and shorter gaps are of little use
            most = _LEFT_OPEN_OF_ROUGH
        else:  # no longer than the function takes to change, whatever states would tell
            slope = np.roll(unit, 1)
            gaps = gaps[gaps <= np.sqrt(whole / (slope @ stationary @ slope))]
        a, q = self._series.moves(0.5 * gaps)
        across = a @ q
        total = across @ np.swapaxes(a, 1, 2) + q
        scale = 1.0 / np.sqrt(np.diagonal(total, axis1=1, axis2=2))
        seen = scale * (across @ unit)
        solved = np.linalg.solve(total * scale[:, :, None] * scale[:, None, :], seen[:, :, None])
        left = unit @ q @ unit - np.einsum("ni,ni->n", seen, solved[:, :, 0])
        few = left <= most * whole
        last = len(few) if few.all() else int(np.argmin(few))
        return float(gaps[max(last - 1, 0)] / self.equation[0])


def timed(coefficients: tuple[float, ...]) -> tuple[float, tuple[float, ...]]:
    """A rate, and coefficients α_k in units of rate^(p − k), of which the largest is one."""
    powers = len(coefficients) - np.arange(len(coefficients))
    values = np.array(coefficients)
    rate = float(np.max(values ** (1.0 / powers)))
    return rate, tuple((values / rate**powers).tolist())


@dataclasses.dataclass(frozen=True, eq=False)
class OscillatorState(DrivenState):
    """A damped oscillator that is driven by noise: where it is, and how fast it moves."""

    frequency: float  # radians per unit of time, without damping
    quality: float

    other: ClassVar[tuple[str, ...]] = ("frequency", "quality")

    @functools.cached_property
    def equation(self) -> tuple[float, tuple[float, ...]]:
        return timed((self.frequency**2, self.frequency / self.quality))

    @property
    def weights(self) -> tuple[float, ...]:
        return (1.0,)


@dataclasses.dataclass(frozen=True, eq=False)
class CarmaState(DrivenState):
    """Any positive α and β, the first of each belonging to the function itself."""

    alpha: tuple[float, ...]
    beta: tuple[float, ...]

    def numbers(self) -> tuple[float, ...]:
        return self.variance, *self.alpha, *self.beta

    def variants(self, step: float) -> Iterator[tuple["CarmaState", "CarmaState"]]:
        changes = np.exp([step, -step])
        for k in range(len(self.alpha)):
            one, other = (_with(self.alpha, k, change) for change in changes)
            yield (
                CarmaState(self.variance, one, self.beta),
                CarmaState(self.variance, other, self.beta),
            )
        for k in range(len(self.beta)):
            one, other = (_with(self.beta, k, change) for change in changes)
            yield (
                CarmaState(self.variance, self.alpha, one),
                CarmaState(self.variance, self.alpha, other),
            )

    @functools.cached_property
    def equation(self) -> tuple[float, tuple[float, ...]]:
        return timed(self.alpha)

    @property
    def weights(self) -> tuple[float, ...]:
        return self.beta


def _with(numbers: tuple[float, ...], place: int, factor: float) -> tuple[float, ...]:
    """The numbers with one of them multiplied."""
    return (*numbers[:place], numbers[place] * float(factor), *numbers[place + 1 :])


@dataclasses.dataclass(frozen=True, eq=False)
class SmoothState(DrivenState):
    """An equation with a clock of its own: time in lengthscales."""

    lengthscale: float
    coefficients: tuple[float, ...]  # α for a lengthscale of one

    other: ClassVar[tuple[str, ...]] = ("lengthscale",)

    @functools.cached_property
    def _clock(self) -> tuple[float, tuple[float, ...]]:
        return timed(self.coefficients)

    @property
    def equation(self) -> tuple[float, tuple[float, ...]]:
        rate, unit = self._clock
        return rate / self.lengthscale, unit

    @property
    def weights(self) -> tuple[float, ...]:
        return (1.0,)
