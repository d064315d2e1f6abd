"""The law of the states: how all latent functions of time move under some hyperparameters."""

import dataclasses
import functools

import numpy as np
from jaxtyping import Float, Int

from streamgp.kernels.state_space import Process
from streamgp.model.multitask import MultiTaskGP

Times = Float[np.ndarray, " _n"]

_ROUNDING = 4 * float(np.finfo(float).eps)


@dataclasses.dataclass(frozen=True, eq=False)
class Law:
    """States of Q latent functions, one after the other.

    Attributes:
        parts: The independent processes.
        latent: The latent function that each part belongs to.
        latents: Q.
        origin: Where time begins.
    """

    parts: tuple[Process, ...]
    latent: tuple[int, ...]
    latents: int
    origin: float

    @classmethod
    def of(cls, model: MultiTaskGP) -> "Law":
        """The law of a plain model whose kernels all are Markov."""
        parts: list[Process] = []
        latent: list[int] = []
        for q, kernel in enumerate(model.latent_kernels):
            own = kernel.state_space()
            assert own is not None
            parts.extend(own)
            latent.extend([q] * len(own))
        return cls(tuple(parts), tuple(latent), sum(model.draws), float(np.ravel(model.origin)[0]))

    @property
    def numbers(self) -> Float[np.ndarray, " n"]:
        """The numbers of all parts."""
        return np.array([number for part in self.parts for number in part.numbers])

    @functools.cached_property
    def variance(self) -> Float[np.ndarray, " Q"]:
        """The prior variance of each latent function, about the origin of time."""
        found = np.zeros(self.latents)
        for part, q in zip(self.parts, self.latent, strict=True):
            found[q] += 0.0 if part.is_line else part.variance
        return found


def distinct_gaps(times: Times) -> tuple[Times, Int[np.ndarray, " n"]]:
    """The gaps between times, those that differ by rounding only once, and which each one is.

    A gap is known to the rounding of its two times. Gaps with the same multiple of about that are
    taken to be one, which is the first of them.
    """
    if len(times) < 2:
        return np.zeros(1), np.zeros(0, int)
    largest = np.maximum(np.abs(times[1:]), np.abs(times[:-1]))
    unit = 2.0 ** np.ceil(np.log2(_ROUNDING * np.maximum(largest, 1e-300)))
    gaps = np.diff(times)
    _, first, which = np.unique(
        unit * np.round(gaps / unit), return_index=True, return_inverse=True
    )
    return gaps[first], which
