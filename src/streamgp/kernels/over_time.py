"""The kernel of functions of time about which nothing is known."""

import dataclasses
from typing import Self

from streamgp.kernels.base import Kernel
from streamgp.kernels.shapes import Columns, Inputs, Matrix, Others, Values
from streamgp.kernels.state_space import Process
from streamgp.kernels.stationary import Matern12, Matern32, Matern52
from streamgp.parameters import Node, Parameter, replaced
from streamgp.registry import storable

_FASTER, _SLOWER = 0.25, 8.0  # lengthscales to start from, in those of the part in the middle


def over_time() -> Kernel:
    """A rough, fast function, one that is slower and smoother, and one more of that kind.

    Of the kernels that were tried on series of many kinds it is the safest (docs/adr/0023 and
    0029). All parts are Markov, so that a model over one input is kept as a chain.

    Returns:
        `Matern12() + Matern32() + Matern52()`. The first starts with a quarter of the second's
        lengthscale. The last starts with eight times that lengthscale and, since what is slow goes
        far, with eight times its variance where variances start from that of the data.

    Examples:
        >>> import streamgp as sgp
        >>> model = sgp.ContinualGP(sgp.Poisson(), latents=sgp.kernels.over_time())
    """
    return Paced(Matern12(), _FASTER) + Matern32() + Paced(Matern52(), _SLOWER, _SLOWER)


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Paced(Kernel):
    """A kernel that starts slower or faster than usual. Once it has started, it is gone.

    Args:
        kernel: The kernel.
        times: How many times as long its lengthscale is.
        larger: How many times as large its variance is, if that comes from the data's. (Where
            weights carry the scale, all parts start alike.)
    """

    kernel: Kernel
    times: float
    larger: float = 1.0

    def matrix(self, x1: Inputs, x2: Others) -> Matrix:
        return self.kernel.matrix(x1, x2)

    def diagonal(self, x: Inputs) -> Values:
        return self.kernel.diagonal(x)

    def state_space(self) -> tuple[Process, ...] | None:
        return self.kernel.state_space()

    def started(self, spread: Columns, variance: Parameter) -> Kernel:  # type: ignore[override]
        if not isinstance(variance, Node):
            variance = self.larger * variance
        return self.kernel.started(self.times * spread, variance)

    def resolved(self, names: tuple[str, ...]) -> Self:  # type: ignore[override]
        return replaced(self, kernel=self.kernel.resolved(names))
