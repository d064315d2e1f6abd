"""The M step: hyperparameters by BFGS on the bound."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

Vector = Float[np.ndarray, " T"]
Answer = tuple[float, Vector]  # the value of an objective, and its gradient
Objective = Callable[[Vector], Answer]


_SUFFICIENT = 1e-4  # Armijo: part of the promised decrease that a step must deliver
FLAT = 1e-6  # a gradient, or a gain, per observation below which nothing is left to do
_QUIET = 2  # steps in a row that gain next to nothing: a single one may only have been short
_LONGEST = 2.0  # a step moves no log-parameter by more than this


class Found(NamedTuple):
    """A point, how often the objective was evaluated, and the inverse Hessian that was learned."""

    point: Vector
    evaluations: int
    inverse_hessian: Float[np.ndarray, "T T"]


def maximise(
    objective: Objective,
    start: Vector,
    *,
    evaluations: int,
    gain: float = 0.0,
    inverse_hessian: Float[np.ndarray, "T T"] | None = None,
) -> Found:
    """A better point than `start`, never a worse one.

    BFGS whose every pass evaluates value and gradient once, and either takes the step or shortens
    it: with few evaluations allowed, none is spent on a line search (docs/adr/0002).

    Args:
        objective: Value and gradient at a point. It should be of order one: the first step is the
            plain gradient.
        start: Where to begin.
        evaluations: How many are allowed.
        gain: It ends at two steps in a row that gain less each, or less than `FLAT`.
        inverse_hessian: What an earlier search has learned, if that is known.
    """
    is_new = inverse_hessian is None
    bend = np.eye(len(start)) if inverse_hessian is None else inverse_hessian
    if not len(start):
        return Found(start, 0, bend)
    point, (value, gradient) = start, objective(start)
    count, length = 1, 1.0
    if not _is_usable(value, gradient):
        return Found(start, count, bend)
    done, quiet = np.max(np.abs(gradient)) < FLAT, 0
    while not done and count < evaluations:
        direction = _bounded(bend @ gradient)
        slope = gradient @ direction
        trial = point + length * direction
        new_value, new_gradient = objective(trial)
        count += 1
        enough = value + _SUFFICIENT * length * slope
        if _is_usable(new_value, new_gradient) and new_value >= enough:
            step, change = trial - point, gradient - new_gradient
            bend = _updated(bend, step, change, first=is_new and count == 2)
            quiet = quiet + 1 if new_value - value < max(gain, FLAT) else 0
            done = np.max(np.abs(new_gradient)) < FLAT or quiet == _QUIET
            point, value, gradient, length = trial, new_value, new_gradient, 1.0
        else:
            length /= 4
            done = length * slope < FLAT / 100
    return Found(point, count, bend)


def _is_usable(value: float, gradient: Float[np.ndarray, " T"]) -> bool:
    return bool(np.isfinite(value) and np.all(np.isfinite(gradient)))


def _bounded(direction: Float[np.ndarray, " T"]) -> Float[np.ndarray, " T"]:
    return direction * min(1.0, _LONGEST / (np.max(np.abs(direction)) + 1e-30))


def _updated(
    inverse_hessian: Float[np.ndarray, "T T"],
    step: Float[np.ndarray, " T"],
    change: Float[np.ndarray, " T"],
    *,
    first: bool,
) -> Float[np.ndarray, "T T"]:
    """The BFGS inverse Hessian; kept where the curvature along the step is not positive.

    With ρ = 1 / sᵀy for a step s and a change y of the gradient, it is
    (I − ρ s yᵀ) H (I − ρ y sᵀ) + ρ s sᵀ, multiplied out, so that it costs no product of matrices.
    """
    curvature = step @ change
    if not curvature > 1e-12 * np.linalg.norm(step) * np.linalg.norm(change):
        return inverse_hessian
    if first:  # the identity is rescaled to the curvature just seen
        inverse_hessian = inverse_hessian * (curvature / max(change @ change, 1e-300))
    turned = inverse_hessian @ change
    half = 0.5 * (1 + change @ turned / curvature) * step - turned
    update = np.outer(half, step / curvature)
    return inverse_hessian + (update + update.T)
