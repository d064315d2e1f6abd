"""Derivatives by central differences, for kernels that give values only."""

from collections.abc import Callable
from typing import Any

import numpy as np

from streamgp.kernels.shapes import Inputs, Matrix, Others
from streamgp.parameters import Module, fields_of, replaced

# Balances the error of the formula, which is of second order, with that of rounding.
_STEP = float(np.cbrt(np.finfo(float).eps))
# Inputs are told apart on the scale of a lengthscale, which may be far below their range.
_INPUT_STEP = 1e-6


def is_number(value: Any) -> bool:
    """Whether a field holds a floating-point number or an array of them."""
    if isinstance(value, float):
        return True
    return getattr(getattr(value, "dtype", None), "kind", None) == "f"


def by_parameters(tree: Any, total: Callable[[Any], float]) -> Any:
    """The derivative of `total(tree)` by every number in the tree, in the shape of the tree.

    None stands for a part without numbers. Numbers that are no parameters are moved as well. That
    costs time and nothing else.
    """
    if is_number(tree):
        return _by_number(np.asarray(tree, float), total)
    if isinstance(tree, tuple):
        parts = tuple(
            by_parameters(part, lambda new, k=k: total((*tree[:k], new, *tree[k + 1 :])))
            for k, part in enumerate(tree)
        )
        return None if all(part is None for part in parts) else parts
    if not isinstance(tree, Module):
        return None
    gradients = {
        name: by_parameters(value, lambda new, name=name: total(replaced(tree, **{name: new})))
        for name, value in fields_of(tree)
    }
    return {name: gradient for name, gradient in gradients.items() if gradient is not None}


def by_inputs(
    matrix: Callable[[np.ndarray, np.ndarray], np.ndarray],
    x1: Inputs,
    x2: Others,
    weights: Matrix,
) -> Inputs:
    """Σ_j weights_ij ∂k(x1_i, x2_j)/∂x1_i. All rows are moved at once, one column at a time."""
    gradient = np.empty(x1.shape)
    for column, step in enumerate(_input_steps(x1, x2)):
        above, below = x1.copy(), x1.copy()
        above[:, column] += step
        below[:, column] -= step
        change = matrix(above, x2) - matrix(below, x2)
        # The step that was taken is not quite the one asked for, once rounded.
        taken = above[:, column] - below[:, column]
        gradient[:, column] = np.einsum("ij,ij->i", weights, change) / taken
    return gradient


def _by_number(value: np.ndarray, total: Callable[[Any], float]) -> np.ndarray:
    gradient = np.empty(value.shape)
    for index in np.ndindex(value.shape):
        above, below = value.copy(), value.copy()
        step = _STEP * (abs(value[index]) or 1.0)
        above[index] += step
        below[index] -= step
        gradient[index] = (total(above) - total(below)) / (above[index] - below[index])
    return gradient


def _input_steps(x1: np.ndarray, x2: np.ndarray) -> np.ndarray:
    both = np.concatenate([x1, x2])
    if not len(both):
        return np.ones(x1.shape[1])
    size = np.ptp(both, axis=0)
    size = np.where(size > 0, size, np.abs(both).max(axis=0))
    return _INPUT_STEP * np.where(size > 0, size, 1.0)
