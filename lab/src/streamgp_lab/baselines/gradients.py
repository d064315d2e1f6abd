"""Derivatives and the climbing along them, for several baselines."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from streamgp.model.multitask import MultiTaskGP
from streamgp.parameters import free_vector, prior_of

FLAT = 1e-6  # a gradient, or a gain, below which nothing is left to do
_SUFFICIENT = 1e-4  # Armijo: part of the promised gain that a step must deliver
_LONGEST = 2.0  # a step moves no number by more than this

Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]


def log_prior(wrapped: MultiTaskGP) -> tuple[float, Float[np.ndarray, " T"]]:
    """The log density of the priors of all free parameters, and its gradient."""
    centre, width = prior_of(wrapped)
    deviation = (free_vector(wrapped) - centre) / width
    return -0.5 * float(deviation @ deviation), -deviation / width


def climbed(
    objective: Objective, start: Float[np.ndarray, " T"], evaluations: int
) -> Float[np.ndarray, " T"]:
    """A better point than `start`, never a worse one.

    BFGS without line searches: each evaluation takes a step or shortens it.

    Args:
        objective: Value and gradient at a point. It should be of order one: the first step is the
            plain gradient.
        start: Where to begin.
        evaluations: How many are allowed.
    """
    point, (value, gradient) = start, objective(start)
    inverse_hessian, length = np.eye(len(start)), 1.0
    first, done = True, not _is_usable(value, gradient) or np.max(np.abs(gradient)) < FLAT
    for _ in range(evaluations - 1):
        if done:
            break
        direction = inverse_hessian @ gradient
        direction *= min(1.0, _LONGEST / (np.max(np.abs(direction)) + 1e-30))
        slope = gradient @ direction
        there = point + length * direction
        new_value, new_gradient = objective(there)
        enough = new_value >= value + _SUFFICIENT * length * slope
        if _is_usable(new_value, new_gradient) and enough:
            inverse_hessian = _updated(
                inverse_hessian, there - point, gradient - new_gradient, first=first
            )
            done = np.max(np.abs(new_gradient)) < FLAT or new_value - value < FLAT
            point, value, gradient, length = there, new_value, new_gradient, 1.0
        else:
            length /= 4
            done = length * slope < FLAT / 100
        first = False
    return point


def _is_usable(value: float, gradient: Float[np.ndarray, " T"]) -> bool:
    return bool(np.isfinite(value) and np.isfinite(gradient).all())


def _updated(
    inverse_hessian: Float[np.ndarray, "T T"],
    step: Float[np.ndarray, " T"],
    change: Float[np.ndarray, " T"],
    *,
    first: bool,
) -> Float[np.ndarray, "T T"]:
    """The BFGS inverse Hessian; kept where the curvature along the step is not positive."""
    curvature = step @ change
    if not curvature > 1e-12 * np.linalg.norm(step) * np.linalg.norm(change):
        return inverse_hessian
    if first:  # the identity is rescaled to the curvature just seen
        inverse_hessian = inverse_hessian * (curvature / max(change @ change, 1e-300))
    turned = inverse_hessian @ change
    half = 0.5 * (1 + change @ turned / curvature) * step - turned
    update = np.outer(half, step / curvature)
    return inverse_hessian + (update + update.T)
