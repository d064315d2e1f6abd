"""Where observations can lie."""

import dataclasses
import math
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float


class Support(ABC):
    """A set of possible observations."""

    is_discrete: ClassVar[bool] = False
    is_positive: ClassVar[bool] = False  # no lower than zero, and without an upper end

    @abstractmethod
    def contains(self, y: Float[np.ndarray, "*#b"]) -> Bool[np.ndarray, "*#b"]:
        """Which of these are possible."""

    @property
    def highest(self) -> float | None:
        """The largest y of a family whose values are 0, 1, 2, …; None for every other family."""
        return None


@dataclasses.dataclass(frozen=True)
class Real(Support):
    """Any finite number."""

    def contains(self, y: Float[np.ndarray, "*#b"]) -> Bool[np.ndarray, "*#b"]:
        return np.isfinite(y)


@dataclasses.dataclass(frozen=True)
class Positive(Support):
    """Numbers above zero."""

    is_positive: ClassVar[bool] = True

    def contains(self, y: Float[np.ndarray, "*#b"]) -> Bool[np.ndarray, "*#b"]:
        return y > 0


@dataclasses.dataclass(frozen=True)
class NonNegative(Support):
    """Zero and the numbers above."""

    is_positive: ClassVar[bool] = True

    def contains(self, y: Float[np.ndarray, "*#b"]) -> Bool[np.ndarray, "*#b"]:
        return y >= 0


@dataclasses.dataclass(frozen=True)
class OpenInterval(Support):
    """Numbers strictly between two others."""

    low: float
    high: float

    def contains(self, y: Float[np.ndarray, "*#b"]) -> Bool[np.ndarray, "*#b"]:
        return (y > self.low) & (y < self.high)


@dataclasses.dataclass(frozen=True)
class NonNegativeInteger(Support):
    """0, 1, 2, …"""

    is_discrete: ClassVar[bool] = True
    is_positive: ClassVar[bool] = True

    def contains(self, y: Float[np.ndarray, "*#b"]) -> Bool[np.ndarray, "*#b"]:
        return (y >= 0) & (np.floor(y) == y)

    @property
    def highest(self) -> float:
        return math.inf


@dataclasses.dataclass(frozen=True)
class IntegerInterval(Support):
    """The whole numbers from `low` to `high`."""

    low: int
    high: int

    is_discrete: ClassVar[bool] = True

    def contains(self, y: Float[np.ndarray, "*#b"]) -> Bool[np.ndarray, "*#b"]:
        return (y >= self.low) & (y <= self.high) & (np.floor(y) == y)

    @property
    def highest(self) -> float | None:
        return float(self.high) if self.low == 0 else None


@dataclasses.dataclass(frozen=True)
class Boolean(IntegerInterval):
    """0 and 1."""

    low: int = 0
    high: int = 1


@dataclasses.dataclass(frozen=True)
class Counts(Support):
    """Several counts per row: the last axis."""

    is_discrete: ClassVar[bool] = True

    def contains(self, y: Float[np.ndarray, "*#b C"]) -> Bool[np.ndarray, "*#b"]:
        return np.all((y >= 0) & (np.floor(y) == y), axis=-1)


@dataclasses.dataclass(frozen=True)
class Simplex(Support):
    """Several positive shares per row that add up to one: the last axis."""

    def contains(self, y: Float[np.ndarray, "*#b C"]) -> Bool[np.ndarray, "*#b"]:
        return np.all(y > 0, axis=-1) & (np.abs(np.sum(y, axis=-1) - 1) < 1e-6)
