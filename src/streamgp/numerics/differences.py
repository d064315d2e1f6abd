"""Derivatives by central differences of fourth order, of many functions at once."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

Function = Callable[[Float[np.ndarray, "*b J"]], Float[np.ndarray, "*b"]]

_SHARE = 1e-3  # step of a scalar, as a share of its size


def gradient(function: Function, f: Float[np.ndarray, "*b J"], step: float) -> np.ndarray:
    """The first derivatives by the last axis of f, of shape (*b, J)."""
    return np.stack([_slope(function, f, e) for e in step * np.eye(f.shape[-1])], axis=-1) / step


def hessian(function: Function, f: Float[np.ndarray, "*b J"], step: float) -> np.ndarray:
    """The second derivatives by the last axis of f, of shape (*b, J, J).

    A mixed derivative is half of what the bend along the sum of two directions has over the sum of
    their own bends.
    """
    moves, centre = step * np.eye(f.shape[-1]), function(f)
    bends = [_bend(function, f, e, centre) for e in moves]
    result = np.empty((*np.shape(bends[0]), len(moves), len(moves)))
    for i, a in enumerate(moves):
        result[..., i, i] = bends[i]
        for j, b in enumerate(moves[:i]):
            mixed = 0.5 * (_bend(function, f, a + b, centre) - bends[i] - bends[j])
            result[..., i, j] = result[..., j, i] = mixed
    return result / step**2


def _slope(function: Function, f: np.ndarray, e: np.ndarray) -> np.ndarray:
    near, far = function(f + e) - function(f - e), function(f + 2 * e) - function(f - 2 * e)
    return (8 * near - far) / 12


def _bend(function: Function, f: np.ndarray, e: np.ndarray, centre: np.ndarray) -> np.ndarray:
    near, far = function(f + e) + function(f - e), function(f + 2 * e) + function(f - 2 * e)
    return (16 * near - far - 30 * centre) / 12


def by_number(
    function: Callable[[np.ndarray], np.ndarray], number: Float[np.ndarray, "*s"]
) -> np.ndarray:
    """The derivatives of an array by each entry of another; the entries' axes come last."""
    number = np.asarray(number, float)
    slopes = []
    for index in np.ndindex(number.shape):
        step = np.zeros(number.shape)
        step[index] = _SHARE * abs(number[index]) or _SHARE
        slopes.append(_slope(function, number, step) / step[index])
    if not slopes:
        return np.zeros((*np.shape(function(number)), *number.shape))
    return np.stack(slopes, axis=-1).reshape(*slopes[0].shape, *number.shape)
