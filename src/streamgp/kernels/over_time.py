"""The kernel of functions of time about which nothing is known."""

import dataclasses
from typing import Self

import numpy as np
from jaxtyping import Float

from streamgp.kernels.base import Kernel
from streamgp.kernels.state_space import StateSpace
from streamgp.kernels.stationary import Matern32, Matern52
from streamgp.parameters import Parameter, replaced
from streamgp.registry import storable

_SLOWER = 8.0  # the slow part's lengthscale, in those of the fast part, to start from


def over_time() -> Kernel:
    """A rough, fast function plus a smooth, slow one.

    Of the kernels that were tried on series of many kinds it is the safest (docs/adr/0021). Both
    parts are Markov, so that a model over one input is kept as a chain.

    Returns:
        `Matern32() + Matern52()`, the second of which starts with a lengthscale eight times as
        long.

    Example:
        >>> import streamgp as sgp
        >>> model = sgp.ContinualGP(sgp.Poisson(), latents=sgp.kernels.over_time())
    """
    return Matern32() + Slower(Matern52(), _SLOWER)


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Slower(Kernel):
    """A kernel whose lengthscale starts longer than usual. Once it has started, it is gone.

    Args:
        kernel: The kernel.
        times: How many times longer.
    """

    kernel: Kernel
    times: float

    def matrix(
        self, x1: Float[np.ndarray, "N P"], x2: Float[np.ndarray, "M P"]
    ) -> Float[np.ndarray, "N M"]:
        return self.kernel.matrix(x1, x2)

    def diagonal(self, x: Float[np.ndarray, "N P"]) -> Float[np.ndarray, " N"]:
        return self.kernel.diagonal(x)

    def state_space(self) -> tuple[StateSpace, ...] | None:
        return self.kernel.state_space()

    def started(self, spread: Float[np.ndarray, " P"], variance: Parameter) -> Kernel:  # type: ignore[override]
        return self.kernel.started(self.times * spread, variance)

    def resolved(self, names: tuple[str, ...]) -> Self:  # type: ignore[override]
        return replaced(self, kernel=self.kernel.resolved(names))
