"""A kernel from a plain function."""

import dataclasses
import numbers
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from streamgp.kernels.base import Kernel
from streamgp.kernels.shapes import Inputs, Matrix, Others, Values
from streamgp.parameters import Parameter
from streamgp.registry import storable

# The diagonal is read off small square matrices of this many rows.
_BLOCK = 32


@storable
@dataclasses.dataclass(frozen=True, eq=False, init=False)
class FunctionKernel(Kernel):
    """A kernel from a function of two sets of inputs. Derivatives are taken by differences.

    Args:
        function: Called as `function(x1, x2, **parameters)` with arrays of shape (N, P) and (M, P).
            It gives all N·M covariances.
        parameters: Numbers by name. They are trained, positive ones in log space, unless they are
            `fixed`.
        diagonal: Called as `diagonal(x, **parameters)` for the N variances. If left out, they are
            taken from small matrices.

    >>> import numpy as np
    >>> def brownian(x1, x2, rate):
    ...     return rate * np.minimum(x1, x2.T)
    >>> kernel = FunctionKernel(brownian, {"rate": 2.0})
    >>> kernel.diagonal(np.array([[1.0], [3.0]]))
    array([2., 6.])
    """

    function: Callable[..., np.ndarray]
    diagonal_function: Callable[..., np.ndarray] | None
    names: tuple[str, ...]
    values: tuple[Parameter, ...]

    def __init__(
        self,
        function: Callable[..., np.ndarray],
        parameters: Mapping[str, Parameter] | None = None,
        diagonal: Callable[..., np.ndarray] | None = None,
    ):
        given = dict(parameters or {})
        object.__setattr__(self, "function", function)
        object.__setattr__(self, "diagonal_function", diagonal)
        object.__setattr__(self, "names", tuple(given))
        object.__setattr__(self, "values", tuple(map(_as_float, given.values())))

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters by name."""
        return dict(zip(self.names, self.values, strict=True))

    def label(self) -> str:
        return getattr(self.function, "__name__", type(self).__name__)

    def matrix(self, x1: Inputs, x2: Others) -> Matrix:
        return np.asarray(self.function(x1, x2, **self.parameters), float)

    def diagonal(self, x: Inputs) -> Values:
        if self.diagonal_function is not None:
            return np.asarray(self.diagonal_function(x, **self.parameters), float)
        blocks = (x[start : start + _BLOCK] for start in range(0, len(x), _BLOCK))
        return np.concatenate([np.zeros(0), *(self.matrix(b, b).diagonal() for b in blocks)])


def _as_float(value: Any) -> Parameter:
    """Whole numbers too are parameters here: what should not move is not given as one."""
    return float(value) if isinstance(value, numbers.Integral) else value
