"""What a kernel is."""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from streamgp.errors import ConfigurationError, problem
from streamgp.kernels.differences import by_inputs, by_parameters, is_number
from streamgp.kernels.shapes import Columns, Inputs, Matrix, Others, Values
from streamgp.kernels.state_space import Process
from streamgp.parameters import Module, Parameter, Positive, Real, fields_of, replaced

# Mirrors the fields of a kernel; see `streamgp.parameters.free_gradient`.
Gradient = dict[str, Any]


@dataclasses.dataclass(frozen=True, eq=False)
class Kernel(Module, ABC):
    """A covariance function.

    A kernel of your own is a frozen dataclass that derives from this class and has `matrix` and
    `diagonal`. Its fields that hold floating-point numbers are trained, positive ones in log space.
    Derivatives are taken by differences unless the kernel has methods for them.

    >>> import dataclasses
    >>> import numpy as np
    >>> @dataclasses.dataclass(frozen=True, eq=False)
    ... class Cosine(Kernel):
    ...     period: float
    ...     def matrix(self, x1, x2):
    ...         return np.cos(2 * np.pi * (x1 - x2.T) / self.period)
    ...     def diagonal(self, x):
    ...         return np.ones(len(x))
    >>> Cosine(2.0).matrix(np.array([[0.0], [1.0]]), np.array([[0.0]]))
    array([[ 1.],
           [-1.]])
    """

    @abstractmethod
    def matrix(self, x1: Inputs, x2: Others) -> Matrix:
        """k(x1_i, x2_j). Give the same array twice for K(Z, Z): that is faster and symmetric."""

    @abstractmethod
    def diagonal(self, x: Inputs) -> Values:
        """k(x_i, x_i)."""

    def pullback(
        self, x1: Inputs, x2: Others, weights: Matrix, matrix: Matrix | None = None
    ) -> Gradient:
        """Σ_ij weights_ij ∂k(x1_i, x2_j)/∂parameter for every parameter, by field.

        Args:
            x1: The first inputs.
            x2: The second inputs.
            weights: The derivative of some number by each entry of the matrix.
            matrix: What `matrix(x1, x2)` gave, to save time.

        Returns:
            A dictionary by field, nested where kernels are. What is left out is zero.
        """
        return by_parameters(self, lambda kernel: np.vdot(weights, kernel.matrix(x1, x2)))

    def diagonal_pullback(self, x: Inputs, weights: Values) -> Gradient:
        """Σ_i weights_i ∂k(x_i, x_i)/∂parameter for every parameter, by field."""
        return by_parameters(self, lambda kernel: np.vdot(weights, kernel.diagonal(x)))

    def input_gradient(
        self, x1: Inputs, x2: Others, weights: Matrix, matrix: Matrix | None = None
    ) -> Inputs:
        """Σ_j weights_ij ∂k(x1_i, x2_j)/∂x1_i, with x2 held even if it is the same array."""
        return by_inputs(self.matrix, x1, x2, weights)

    def state_space(self) -> tuple[Process, ...] | None:
        """Independent processes that add up to its functions of time, or None if there are none."""
        return None

    def summands(self) -> tuple["Kernel", ...]:
        """Kernels that add up to this one: the parts that its functions are the sum of."""
        return (self,)

    def shortest_waves(self, width: int) -> Columns:
        """The length of the shortest wave along each of so many input columns, for pictures.

        It is infinite where nothing repeats. A kernel of others has the shortest of theirs.
        """
        parts = [part for _, value in fields_of(self) for part in _kernels_in(value)]
        every = [np.full(width, np.inf), *(part.shortest_waves(width) for part in parts)]
        return np.minimum.reduce(every)

    def label(self) -> str:
        """A short name, for what its functions contribute."""
        return type(self).__name__

    def started(self, spread: Columns, variance: Parameter) -> Self:
        """This kernel made ready to learn, for inputs of that spread and data of that variance."""
        _check_fields(self)
        changes = {name: _started(value, spread, variance) for name, value in fields_of(self)}
        return replaced(self, **changes)

    def resolved(self, names: Sequence[str]) -> Self:
        """This kernel with column numbers where `on` was given names, for columns so named."""
        changes = {name: _resolved(value, names) for name, value in fields_of(self)}
        return replaced(self, **changes)

    def on(self, columns: int | str | Sequence[int | str]) -> "Kernel":
        """This kernel as one of some of the input columns only, by number or by name."""
        from streamgp.kernels.composite import OnColumns

        return OnColumns(self, columns)

    def __add__(self, other: Any) -> "Kernel":
        from streamgp.kernels.composite import added

        return added(self, other)

    def __radd__(self, other: Any) -> "Kernel":
        from streamgp.kernels.composite import added

        is_start_of_sum = isinstance(other, int) and other == 0  # what the built-in `sum` adds to
        return self if is_start_of_sum else added(other, self)

    def __mul__(self, other: Any) -> "Kernel":
        from streamgp.kernels.composite import multiplied

        return multiplied(self, other)

    def __rmul__(self, other: Any) -> "Kernel":
        from streamgp.kernels.composite import multiplied

        return multiplied(other, self)

    # NumPy's numbers would otherwise try to multiply the kernel as an array of objects.
    __array_ufunc__ = None


class ConstantVariance:
    """For kernels whose functions vary equally everywhere, by their field `variance`."""

    variance: Parameter

    def diagonal(self, x: Inputs) -> Values:
        """k(x_i, x_i)."""
        return np.full(len(x), self.variance, float)

    def diagonal_pullback(self, x: Inputs, weights: Values) -> Gradient:
        """Σ_i weights_i ∂k(x_i, x_i)/∂variance."""
        return {"variance": np.add.reduce(weights)}


def trainable(value: Any) -> Parameter:
    """A number as a parameter: in log space if it is positive. Anything else as it is."""
    if not is_number(value):
        return value
    return Positive(value) if np.all(np.asarray(value) > 0) else Real(value, spread=10.0)


def _kernels_in(value: Any) -> list[Kernel]:
    """A kernel, or those of a tuple."""
    parts = value if isinstance(value, tuple) else (value,)
    return [part for part in parts if isinstance(part, Kernel)]


def _started(value: Any, spread: np.ndarray, variance: Parameter) -> Any:
    if isinstance(value, tuple):
        return tuple(_started(part, spread, variance) for part in value)
    if isinstance(value, Kernel):
        return value.started(spread, variance)
    return trainable(value)


def _resolved(value: Any, names: Sequence[str]) -> Any:
    if isinstance(value, tuple):
        return tuple(_resolved(part, names) for part in value)
    return value.resolved(names) if isinstance(value, Kernel) else value


def _check_fields(kernel: Kernel) -> None:
    """A kernel that is no dataclass would silently learn nothing."""
    hidden = vars(kernel).keys() - {name for name, _ in fields_of(kernel)}
    if any(is_number(getattr(kernel, name)) for name in hidden):
        raise ConfigurationError(
            problem(
                f"the parameters of {type(kernel).__name__} as fields of a dataclass",
                f"other attributes: {', '.join(sorted(hidden))}",
                "Decorate the class with @dataclasses.dataclass(frozen=True, eq=False).",
            )
        )
