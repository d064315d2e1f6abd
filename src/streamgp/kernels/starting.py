"""How a kernel of the user's becomes one that learns."""

from typing import Any

from streamgp.kernels.base import Kernel
from streamgp.kernels.composite import OnColumns, as_kernel
from streamgp.kernels.one_input import OneInput
from streamgp.kernels.scaled import ScaledKernel
from streamgp.kernels.shapes import Columns
from streamgp.parameters import Positive, fixed


def start(kernel: Any, spread: Columns, variance: float | None) -> Kernel:
    """A kernel of the user's made ready to learn.

    Parameters left out are filled in; bare numbers in a kernel of the user's own, or of tinygp,
    become trainable, positive ones in log space.

    Args:
        kernel: One of this package, one of the user's own, or one of tinygp.
        spread: The standard deviation of each input column.
        variance: Where variances start. None asks for a unit-variance kernel (its scale is the
            mixing weights' business): a lone kernel's variance is then fixed at one.

    Raises:
        ConfigurationError: If a parameter is not positive that must be, or a column is unknown.
    """
    own = as_kernel(kernel)
    if variance is not None:
        return own.started(spread, variance)
    return own.started(spread, fixed(1.0) if _is_lone(own) else Positive(1.0))


def _is_lone(kernel: Kernel) -> bool:
    while isinstance(kernel, OnColumns):
        kernel = kernel.kernel
    return isinstance(kernel, ScaledKernel | OneInput)
