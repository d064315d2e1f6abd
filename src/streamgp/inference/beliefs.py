"""Beliefs: what is believed of hyperparameters beside the bound, and the objective of M steps."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.inference.m_step import Vector
from streamgp.model.multitask import MultiTaskGP
from streamgp.parameters import free_size, prior_of, with_free


class Beliefs(NamedTuple):
    """Normal priors on the free vector.

    Attributes:
        centre: Of the priors.
        below: One over the spread of each below its centre; zero where a prior has no say.
        above: The same above it.
        size: A number of observations that makes the objective of order one.
    """

    centre: Vector
    below: Vector
    above: Vector
    size: float

    @classmethod
    def of(cls, wrapped: MultiTaskGP, heard: Float[np.ndarray, " D"]) -> "Beliefs":
        """What an M step does not change.

        Args:
            wrapped: The model that it begins from.
            heard: The observations of each channel.
        """
        centre, say = prior_of(wrapped)[0], _has_say(wrapped, heard)
        below, above = (say / prior_of(with_free(wrapped, centre + by))[1] for by in (-1.0, 1.0))
        return cls(centre, below, above, max(float(np.sum(heard)), 1.0))

    def objective(self, theta: Vector, value: float, gradient: Vector) -> tuple[float, Vector]:
        """Bound and priors per observation, and the gradient, from those of the bound."""
        slope = -self._deviation(theta) * self._say(theta)
        return (value + self.value(theta)) / self.size, (gradient + slope) / self.size

    def value(self, theta: Vector) -> float:
        """What priors add to the bound of all data."""
        deviation = self._deviation(theta)
        return -0.5 * float(deviation @ deviation)

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
