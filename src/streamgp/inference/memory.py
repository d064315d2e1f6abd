"""Memory of what the past cannot be read for: how data depend on the other hyperparameters.

The past (`past`) is read under any weights and noises. But past data also spoke of the kernels,
which say how inducing values extend to where the data were, and of other likelihood parameters.
Those terms appear only in the newest data's part of the bound, so learning from each batch alone
would forget them. Their second-order expansion, with q(u) as it was, is kept instead:

    Σ_past E_q[log p(y|f)] ≈ gᵀ(θ − θ_t) − ½(θ − θ_t)ᵀH(θ − θ_t),   H ⪰ 0.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.linalg import block_diag

from streamgp.model.multitask import MultiTaskGP
from streamgp.numerics.linalg import symmetric
from streamgp.parameters import free_size, free_vector
from streamgp.registry import storable

_DIFFERENCE = 1e-4  # in log units

# Names for annotations inside functions, where making one anew each time would cost.
Vector = Float[np.ndarray, " T"]
Gradient = Callable[[Vector], Vector]


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Memory:
    """The expansion's g and H, around the hyperparameters of the state it belongs to."""

    gradient: Float[np.ndarray, " T"]
    precision: Float[np.ndarray, "T T"]

    def value(self, step: Float[np.ndarray, " T"]) -> float:
        """What the past says of hyperparameters that far from the anchor."""
        return float(self.gradient @ step - 0.5 * step @ self.precision @ step)

    def slope(self, step: Float[np.ndarray, " T"]) -> Float[np.ndarray, " T"]:
        """The derivative of `value`."""
        return self.gradient - self.precision @ step

    def recentred(self, model: MultiTaskGP, anchor: MultiTaskGP) -> "Memory":
        """The same expansion around other hyperparameters."""
        if model is anchor:
            return self
        step = free_vector(model) - free_vector(anchor)
        return Memory(self.slope(step), self.precision)

    def widened(self, size: int) -> "Memory":
        """The same with further hyperparameters behind its own, up to so many in all."""
        more = size - len(self.gradient)
        return Memory(np.pad(self.gradient, (0, more)), np.pad(self.precision, (0, more)))

    def scaled(self, part: float) -> "Memory":
        """The memory with that part of its say."""
        return Memory(part * self.gradient, part * self.precision)

    def __add__(self, other: "Memory") -> "Memory":
        return Memory(self.gradient + other.gradient, self.precision + other.precision)


def blank(part: Any) -> Memory:
    """The memory of no data, for a model or a part of one."""
    size = free_size(part)
    return Memory(np.zeros(size), np.zeros((size, size)))


def expand(
    gradient: Gradient, start: Float[np.ndarray, " T"], *, central: bool = False
) -> tuple[Float[np.ndarray, " T"], Float[np.ndarray, "T T"]]:
    """Gradient and Hessian at a point, the latter by differences of gradients.

    `central` differences take twice as many gradients and are right to eight digits.
    """
    if not len(start):
        return start, np.zeros((0, 0))
    here = gradient(start)
    rows = []
    for step in _DIFFERENCE * np.eye(len(start)):
        below, width = (gradient(start - step), 2) if central else (here, 1)
        rows.append((gradient(start + step) - below) / (width * _DIFFERENCE))
    return here, symmetric(np.stack(rows))


def with_right_sign(hessian: Float[np.ndarray, "T T"]) -> Float[np.ndarray, "T T"]:
    """Directions of the wrong curvature keep its size with the right sign.

    So the gradient cannot carry hyperparameters off along them.
    """
    if not hessian.size:
        return hessian
    curvature, vectors = np.linalg.eigh(hessian)
    return (vectors * np.abs(curvature)) @ vectors.T


def joined(*parts: Memory) -> Memory:
    """The memory of several parts of a model, in their order."""
    return Memory(
        np.concatenate([part.gradient for part in parts]),
        block_diag(*[part.precision for part in parts]),
    )
