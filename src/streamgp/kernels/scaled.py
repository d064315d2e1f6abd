"""Kernels with a lengthscale and a variance, and how these start."""

import dataclasses
from typing import Any, ClassVar, Self

import numpy as np

from streamgp.errors import ConfigurationError, problem
from streamgp.kernels.base import Gradient, Kernel
from streamgp.kernels.blocks import mirror
from streamgp.kernels.shapes import Columns, Inputs, Matrix, Others, Values
from streamgp.kernels.state_space import Process
from streamgp.parameters import Frozen, Node, Parameter, Positive, fields_of, positive, replaced
from streamgp.registry import storable

# Over one input, lengthscales start well below its spread: from there the bound leads to longer
# ones, whereas from a long start fast changes look like noise and stay so. Over several inputs it
# is the other way round: from a short start, few rows are explained one by one, and that stays so.
_SHORT_START = 0.25
# The spread of the prior of lengthscales, in natural log units. It is narrower for a function among
# others, whose variance is fixed at one: in a small first batch, a function too many that changes
# from row to row explains noise, and what it learned so stays.
_DOUBT, _DOUBT_AMONG_OTHERS = 1.5, 1.0
# The same below the centre, over several inputs: few rows can be explained one by one there.
_DOUBT_OF_SHORT = 0.7


@dataclasses.dataclass(frozen=True, eq=False)
class ScaledKernel(Kernel):
    """variance · shape(x / lengthscale, x' / lengthscale).

    Args:
        lengthscale: One number, or one per input column (ARD). If left out, one per column that
            starts from the spread of the inputs.
        variance: If left out, it starts from the variance of the data.
    """

    # Parameters that may have one number per input column.
    per_column: ClassVar[tuple[str, ...]] = ("lengthscale",)

    # Whether functions forget their values beyond a lengthscale: short ones explain row by row.
    is_local: ClassVar[bool] = True

    lengthscale: Parameter = None
    variance: Parameter = None

    def started(self, spread: Columns, variance: Parameter) -> Self:
        usual = np.sqrt(len(spread)) * spread  # how far inputs are apart grows with their width
        doubt = _DOUBT_AMONG_OTHERS if isinstance(variance, Frozen) else _DOUBT
        first = _SHORT_START if len(spread) == 1 else 1.0
        is_doubted = self.is_local and len(spread) > 1
        below = min(_DOUBT_OF_SHORT / doubt, 1.0) if is_doubted else 1.0
        start = Positive(first * usual, centre=usual, spread=doubt, below=below)
        ready = filled(self, lengthscale=start, variance=variance)
        for name, node in fields_of(ready):
            _check_shape(name, node, len(spread) if name in self.per_column else 1)
        return ready

    def _coordinates(self, x1: np.ndarray, x2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Both inputs in lengthscales; one array twice stays one array twice."""
        a = x1 / self.lengthscale
        return a, a if x2 is x1 else x2 / self.lengthscale


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Linear(ScaledKernel):
    """The linear kernel: straight lines that are zero at the centre of the first batch.

    Args:
        lengthscale: The distance from the centre at which the variance is reached. See `RBF`.
        variance: The variance of the functions. See `RBF`.
    """

    is_local = False

    def matrix(self, x1: Inputs, x2: Others) -> Matrix:
        a, b = self._coordinates(x1, x2)
        product = (self.variance * a) @ b.T
        if b is a:
            mirror(product)
        return product

    def diagonal(self, x: Inputs) -> Values:
        a = x / self.lengthscale
        return self.variance * np.einsum("ip,ip->i", a, a)

    def pullback(
        self, x1: Inputs, x2: Others, weights: Matrix, matrix: Matrix | None = None
    ) -> Gradient:
        a, b = self._coordinates(x1, x2)
        return self._gradient(np.einsum("ip,ip->p", a, weights @ b))

    def diagonal_pullback(self, x: Inputs, weights: Values) -> Gradient:
        return self._gradient(weights @ np.square(x / self.lengthscale))

    def input_gradient(
        self, x1: Inputs, x2: Others, weights: Matrix, matrix: Matrix | None = None
    ) -> Inputs:
        return weights @ x2 * (self.variance / np.square(self.lengthscale))

    def state_space(self) -> tuple[Process, ...] | None:
        slope = number(self.variance) * number(self.lengthscale) ** -2
        return (Process(slope, is_line=True),)

    def _gradient(self, by_column: Columns) -> Gradient:
        """From the sum of the unit kernel over all pairs, split by input column."""
        by_lengthscale = by_column * (-2.0 * self.variance / self.lengthscale)
        return {
            "lengthscale": shaped_like(by_lengthscale, self.lengthscale),
            "variance": by_column.sum(),
        }


def filled(kernel: Any, **starts: Any) -> Any:
    """A kernel with positive parameters only, where those that were left out have these starts."""
    parameters = fields_of(kernel)
    return replaced(kernel, **{name: positive(own, starts.get(name)) for name, own in parameters})


def _check_shape(name: str, node: Node, most: int) -> None:
    shape = np.shape(node.value)
    if shape not in ((), (1,), (most,)):
        expected = f"one number for {name}" + (f", or {most}" if most > 1 else "")
        raise ConfigurationError(
            problem(
                expected, f"an array of shape {shape}", "There is at most one per input column."
            )
        )


def number(parameter: Parameter) -> float:
    """A plain parameter that has one number."""
    return float(np.ravel(parameter)[0])


def shaped_like(by_column: Columns, parameter: Parameter) -> np.ndarray:
    """Derivatives by a parameter of each column as those by one that columns may share."""
    shape = np.shape(parameter)
    return by_column if shape == by_column.shape else by_column.sum().reshape(shape)
