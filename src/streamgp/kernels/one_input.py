"""What kernels of a single input column have in common."""

from typing import Self

from streamgp.errors import ConfigurationError, problem
from streamgp.kernels.base import ConstantVariance, Kernel
from streamgp.kernels.scaled import filled
from streamgp.kernels.shapes import Columns, Inputs, Matrix, Others
from streamgp.parameters import Parameter


class OneInput(ConstantVariance, Kernel):
    """A kernel of the difference between two numbers, with a variance."""

    def started(self, spread: Columns, variance: Parameter) -> Self:
        self.check(spread)
        return filled(self, variance=variance)

    def check(self, spread: Columns) -> None:
        """Refuse to begin over several inputs."""
        if len(spread) != 1:
            name = type(self).__name__
            raise ConfigurationError(
                problem(
                    f"one input column for the kernel {name}",
                    f"{len(spread)} columns",
                    f"Say which one: `{name}(…).on(column)`.",
                )
            )


def differences(x1: Inputs, x2: Others) -> Matrix:
    """x1 − x2 of all pairs of a single input column."""
    return x1[:, :1] - x2[:, 0]
