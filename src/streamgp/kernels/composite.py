"""Kernels made of others: constants, sums, products, multiples, and kernels of some columns."""

import dataclasses
import functools
import numbers
import operator
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from streamgp.errors import ConfigurationError, problem
from streamgp.kernels.base import Gradient, Kernel
from streamgp.kernels.scaled import filled
from streamgp.kernels.shapes import Columns, Inputs, Matrix, Others, Values
from streamgp.kernels.state_space import Process, multiplied_processes
from streamgp.parameters import Node, Parameter, positive, replaced
from streamgp.registry import storable

_Read = Callable[[Kernel], np.ndarray]
_Part = tuple[Kernel, np.ndarray, np.ndarray | None]


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Constant(Kernel):
    """The same covariance everywhere: functions that are constant.

    Args:
        value: The variance of the constant; positive. A number is where learning starts, and
            `fixed(…)` keeps it.
    """

    value: Parameter

    def matrix(self, x1: Inputs, x2: Others) -> Matrix:
        return np.full((len(x1), len(x2)), self.value, float)

    def diagonal(self, x: Inputs) -> Values:
        return np.full(len(x), self.value, float)

    def pullback(
        self, x1: Inputs, x2: Others, weights: Matrix, matrix: Matrix | None = None
    ) -> Gradient:
        return {"value": weights.sum()}

    def diagonal_pullback(self, x: Inputs, weights: Values) -> Gradient:
        return {"value": weights.sum()}

    def input_gradient(
        self, x1: Inputs, x2: Others, weights: Matrix, matrix: Matrix | None = None
    ) -> Inputs:
        return np.zeros(x1.shape)

    def state_space(self) -> tuple[Process, ...] | None:
        return (Process(float(self.value)),)

    def started(self, spread: Columns, variance: Parameter) -> Self:
        return filled(self)


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Multiple(Kernel):
    """A kernel times a positive number, which is what `2.0 * kernel` gives."""

    factor: Parameter
    kernel: Kernel

    def matrix(self, x1: Inputs, x2: Others) -> Matrix:
        return self.factor * self.kernel.matrix(x1, x2)

    def diagonal(self, x: Inputs) -> Values:
        return self.factor * self.kernel.diagonal(x)

    def pullback(
        self, x1: Inputs, x2: Others, weights: Matrix, matrix: Matrix | None = None
    ) -> Gradient:
        unit = self._unit_matrix(x1, x2, matrix)
        return {
            "factor": np.vdot(weights, unit),
            "kernel": self.kernel.pullback(x1, x2, self.factor * weights, unit),
        }

    def diagonal_pullback(self, x: Inputs, weights: Values) -> Gradient:
        return {
            "factor": weights @ self.kernel.diagonal(x),
            "kernel": self.kernel.diagonal_pullback(x, self.factor * weights),
        }

    def input_gradient(
        self, x1: Inputs, x2: Others, weights: Matrix, matrix: Matrix | None = None
    ) -> Inputs:
        unit = self._unit_matrix(x1, x2, matrix)
        return self.kernel.input_gradient(x1, x2, self.factor * weights, unit)

    def state_space(self) -> tuple[Process, ...] | None:
        parts = self.kernel.state_space()
        return None if parts is None else tuple(p.scaled(float(self.factor)) for p in parts)

    def summands(self) -> tuple[Kernel, ...]:
        return tuple(replaced(self, kernel=part) for part in self.kernel.summands())

    def label(self) -> str:
        return self.kernel.label()

    def started(self, spread: Columns, variance: Parameter) -> Self:
        factor = positive(self.factor, None)
        return replaced(self, factor=factor, kernel=self.kernel.started(spread, variance))

    def _unit_matrix(self, x1: np.ndarray, x2: np.ndarray, matrix: Matrix | None) -> Matrix:
        return self.kernel.matrix(x1, x2) if matrix is None else matrix / self.factor


@dataclasses.dataclass(frozen=True, eq=False)
class _Several(Kernel):
    """Kernels whose matrices are added or multiplied."""

    _joined: ClassVar[np.ufunc]  # of values

    kernels: tuple[Kernel, ...]

    @abstractmethod
    def _weighted(self, weights: np.ndarray, values: _Read) -> Iterator[_Part]:
        """Each kernel, the weights of its values, and these if they were needed to find them."""

    def matrix(self, x1: Inputs, x2: Others) -> Matrix:
        return functools.reduce(self._joined, (k.matrix(x1, x2) for k in self.kernels))

    def diagonal(self, x: Inputs) -> Values:
        return functools.reduce(self._joined, (k.diagonal(x) for k in self.kernels))

    def pullback(
        self, x1: Inputs, x2: Others, weights: Matrix, matrix: Matrix | None = None
    ) -> Gradient:
        parts = self._weighted(weights, lambda k: k.matrix(x1, x2))
        return {"kernels": tuple(k.pullback(x1, x2, own, values) for k, own, values in parts)}

    def diagonal_pullback(self, x: Inputs, weights: Values) -> Gradient:
        parts = self._weighted(weights, lambda k: k.diagonal(x))
        return {"kernels": tuple(k.diagonal_pullback(x, own) for k, own, _ in parts)}

    def input_gradient(
        self, x1: Inputs, x2: Others, weights: Matrix, matrix: Matrix | None = None
    ) -> Inputs:
        parts = self._weighted(weights, lambda k: k.matrix(x1, x2))
        gradients = (k.input_gradient(x1, x2, own, values) for k, own, values in parts)
        return functools.reduce(operator.add, gradients)


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Sum(_Several):
    """The sum of kernels: functions that are sums."""

    _joined = np.add

    def _weighted(self, weights: np.ndarray, values: _Read) -> Iterator[_Part]:
        return ((k, weights, None) for k in self.kernels)

    def state_space(self) -> tuple[Process, ...] | None:
        parts = [k.state_space() for k in self.kernels]
        return None if None in parts else tuple(s for part in parts if part for s in part)

    def summands(self) -> tuple[Kernel, ...]:
        return tuple(part for kernel in self.kernels for part in kernel.summands())

    def label(self) -> str:
        return " + ".join(kernel.label() for kernel in self.kernels)


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Product(_Several):
    """The product of kernels."""

    _joined = np.multiply

    def _weighted(self, weights: np.ndarray, values: _Read) -> Iterator[_Part]:
        factors = [values(k) for k in self.kernels]
        for place, k in enumerate(self.kernels):
            others = factors[:place] + factors[place + 1 :]  # dividing would fail at zeros
            yield k, functools.reduce(operator.mul, others, weights), factors[place]

    def state_space(self) -> tuple[Process, ...] | None:
        return functools.reduce(multiplied_processes, (k.state_space() for k in self.kernels))

    def label(self) -> str:
        return " × ".join(kernel.label() for kernel in self.kernels)


@storable
@dataclasses.dataclass(frozen=True, eq=False, init=False)
class OnColumns(Kernel):
    """A kernel that sees some of the input columns only, which is what `kernel.on(columns)` gives.

    Args:
        kernel: The kernel of those columns.
        columns: Their numbers, or their names if these are known to the model.
    """

    kernel: Kernel
    columns: tuple[Any, ...]  # numbers, but names until these are resolved

    def __init__(self, kernel: Kernel, columns: int | str | Sequence[int | str]):
        chosen = (columns,) if isinstance(columns, int | np.integer | str) else tuple(columns)
        if not chosen or len(set(chosen)) < len(chosen):
            raise ConfigurationError(
                problem("different columns, at least one", str(columns), "Name each column once.")
            )
        object.__setattr__(self, "kernel", kernel)
        object.__setattr__(self, "columns", chosen)

    def matrix(self, x1: Inputs, x2: Others) -> Matrix:
        return self.kernel.matrix(*self._taken(x1, x2))

    def diagonal(self, x: Inputs) -> Values:
        return self.kernel.diagonal(x.take(self.columns, axis=1))

    def pullback(
        self, x1: Inputs, x2: Others, weights: Matrix, matrix: Matrix | None = None
    ) -> Gradient:
        return {"kernel": self.kernel.pullback(*self._taken(x1, x2), weights, matrix)}

    def diagonal_pullback(self, x: Inputs, weights: Values) -> Gradient:
        return {"kernel": self.kernel.diagonal_pullback(x.take(self.columns, axis=1), weights)}

    def input_gradient(
        self, x1: Inputs, x2: Others, weights: Matrix, matrix: Matrix | None = None
    ) -> Inputs:
        gradient = np.zeros(x1.shape)
        own = self.kernel.input_gradient(*self._taken(x1, x2), weights, matrix)
        gradient[:, list(self.columns)] = own
        return gradient

    def state_space(self) -> tuple[Process, ...] | None:
        return self.kernel.state_space() if self.columns == (0,) else None

    def summands(self) -> tuple[Kernel, ...]:
        return tuple(replaced(self, kernel=part) for part in self.kernel.summands())

    def shortest_waves(self, width: int) -> Columns:
        waves = np.full(width, np.inf)
        waves[list(self.columns)] = self.kernel.shortest_waves(len(self.columns))
        return waves

    def label(self) -> str:
        return f"{self.kernel.label()} on {', '.join(map(str, self.columns))}"

    def started(self, spread: Columns, variance: Parameter) -> Self:
        columns = [_checked(column, len(spread)) for column in self.columns]
        return replaced(self, kernel=self.kernel.started(spread[columns], variance))

    def resolved(self, names: Sequence[str]) -> Self:
        columns = tuple(_numbered(column, names) for column in self.columns)
        own_names = [names[column] for column in columns]
        return replaced(self, columns=columns, kernel=self.kernel.resolved(own_names))

    def _taken(self, x1: np.ndarray, x2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        a = x1.take(self.columns, axis=1)
        return a, a if x2 is x1 else x2.take(self.columns, axis=1)


def is_kernel(value: Any) -> bool:
    """Whether it is a kernel of this package, of the user's own, or of tinygp."""
    modules = (cls.__module__.split(".")[0] for cls in type(value).__mro__)
    return isinstance(value, Kernel) or "tinygp" in modules


def is_quasiseparable(value: Any) -> bool:
    """Whether it is one of tinygp's kernels that have states."""
    modules = (cls.__module__ for cls in type(value).__mro__)
    return "tinygp.kernels.quasisep" in modules


def as_kernel(value: Any) -> Kernel:
    """A kernel as it is, a number as a constant one, one of tinygp's through its adapter."""
    if isinstance(value, Kernel):
        return value
    if _is_factor(value):
        return Constant(value)
    if is_quasiseparable(value):
        from streamgp.kernels.quasisep_adapter import native

        return native(value)
    if is_kernel(value):
        from streamgp.kernels.tinygp_adapter import adapted

        return adapted(value)
    raise ConfigurationError(
        problem("a kernel", str(value), "Use one of streamgp.kernels, or derive from Kernel.")
    )


def added(left: Any, right: Any) -> Kernel:
    """left + right, as one flat sum."""
    return Sum((*_parts(as_kernel(left), Sum), *_parts(as_kernel(right), Sum)))


def multiplied(left: Any, right: Any) -> Kernel:
    """left · right, as one flat product, or as a multiple if one is a number."""
    if _is_factor(left):
        return Multiple(left, as_kernel(right))
    if _is_factor(right):
        return Multiple(right, as_kernel(left))
    return Product((*_parts(as_kernel(left), Product), *_parts(as_kernel(right), Product)))


def _is_factor(value: Any) -> bool:
    """A number, or a node or an array that holds one."""
    held = value.value if isinstance(value, Node) else value
    return isinstance(held, numbers.Real) or (isinstance(held, np.ndarray) and held.ndim == 0)


def _parts(kernel: Kernel, kind: type) -> tuple[Kernel, ...]:
    return kernel.kernels if isinstance(kernel, kind) else (kernel,)  # type: ignore[attr-defined]


def _numbered(column: int | str, names: Sequence[str]) -> int:
    if isinstance(column, str):
        if column not in names:
            known = ", ".join(names)
            raise ConfigurationError(
                problem(f"one of the input columns {known}", column, "Name a column that exists.")
            )
        return list(names).index(column)
    return _checked(column, len(names))


def _checked(column: int | str, width: int) -> int:
    if isinstance(column, str):
        raise ConfigurationError(
            problem("a column number", repr(column), "The inputs have no column names.")
        )
    if not 0 <= column < width:
        raise ConfigurationError(
            problem(f"a column number below {width}", str(column), "Columns count from zero.")
        )
    return column
