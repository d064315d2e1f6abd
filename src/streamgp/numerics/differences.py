"""Derivatives by central differences of fourth order, of many functions at once."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from streamgp.numerics.linalg import symmetric

Function = Callable[[Float[np.ndarray, "*b J"]], Float[np.ndarray, "*b"]]

_SHARE = 1e-3  # step of a scalar, as a share of its size
_STEP = 1e-4  # between two gradients, in log units


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


def expanded(
    gradient: Callable[[Float[np.ndarray, " T"]], Float[np.ndarray, " T"]],
    start: Float[np.ndarray, " T"],
) -> tuple[Float[np.ndarray, " T"], Float[np.ndarray, "T T"]]:
    """Gradient and Hessian of a function at a point, the latter by differences of gradients."""
    if not len(start):
        return start, np.zeros((0, 0))
    here = gradient(start)
    rows = [(gradient(start + step) - here) / _STEP for step in _STEP * np.eye(len(start))]
    return here, symmetric(np.stack(rows))


def with_right_sign(hessian: Float[np.ndarray, "T T"]) -> Float[np.ndarray, "T T"]:
    """Directions of the wrong curvature keep its size with the right sign.

    So the gradient cannot carry hyperparameters off along them.
    """
    if not hessian.size:
        return hessian
    curvature, vectors = np.linalg.eigh(hessian)
    return (vectors * np.abs(curvature)) @ vectors.T
