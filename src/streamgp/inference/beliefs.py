"""Beliefs: what is believed of hyperparameters beside the bound, and the objective of M steps."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.inference.memory import Memory, Vector
from streamgp.model.multitask import MultiTaskGP
from streamgp.parameters import free_size, free_vector, prior_of, with_free

_ORDINARY_BATCH = 100


class Beliefs(NamedTuple):
    """Normal priors on the free vector, and a memory of past data around some anchor.

    Attributes:
        centre: Of the priors.
        below: One over the spread of each below its centre; zero where a prior has no say.
        above: The same above it.
        anchor: Where the memory is expanded.
        memory: How past data depend on hyperparameters.
        size: A number of observations that makes the objective of order one.
    """

    centre: Vector
    below: Vector
    above: Vector
    anchor: Vector
    memory: Memory
    size: float

    @classmethod
    def of(
        cls,
        wrapped: MultiTaskGP,
        anchor: MultiTaskGP,
        memory: Memory,
        heard: Float[np.ndarray, " D"],
        *,
        new: float,
        past: float,
    ) -> "Beliefs":
        """What an M step does not change.

        Args:
            wrapped: The model that it begins from.
            anchor: The model around which the memory is expanded.
            memory: Of past data.
            heard: The observations of each channel, past and new.
            new: How many of them are new.
            past: How many are not.
        """
        centre, say = prior_of(wrapped)[0], _has_say(wrapped, heard)
        below, above = (say / prior_of(with_free(wrapped, centre + by))[1] for by in (-1.0, 1.0))
        # A small batch borrows from the past the size that makes the objective of order one.
        size = max(new, min(max(past, 1.0), _ORDINARY_BATCH))
        return cls(centre, below, above, free_vector(anchor), memory, size)

    @classmethod
    def none(cls, anchor: MultiTaskGP, memory: Memory) -> "Beliefs":
        """No priors, and a memory: the objective is then what data say."""
        theta = free_vector(anchor)
        nothing = np.zeros(len(theta))
        return cls(theta, nothing, nothing, theta, memory, 1.0)

    def objective(self, theta: Vector, value: float, gradient: Vector) -> tuple[float, Vector]:
        """Bound, priors and memory per observation, and the gradient, from those of the bound."""
        slope = self.memory.slope(theta - self.anchor) - self._deviation(theta) * self._say(theta)
        return (value + self.value(theta)) / self.size, (gradient + slope) / self.size

    def value(self, theta: Vector) -> float:
        """What priors and memory add to the bound of all data."""
        deviation = self._deviation(theta)
        return self.memory.value(theta - self.anchor) - 0.5 * float(deviation @ deviation)

    def _deviation(self, theta: Vector) -> Vector:
        return (theta - self.centre) * self._say(theta)

    def _say(self, theta: Vector) -> Vector:
        return np.where(theta < self.centre, self.below, self.above)


def _has_say(wrapped: MultiTaskGP, heard: Float[np.ndarray, " D"]) -> Float[np.ndarray, " T"]:
    """One for parameters whose priors count: not those of channels without data.

    Those stay as they started.
    """
    parts = [np.ones(free_size(wrapped.kernels))]
    for channel, said in zip(wrapped.channels, heard, strict=True):
        parts.append(np.full(free_size(channel), float(said > 0)))
    return np.concatenate(parts)
