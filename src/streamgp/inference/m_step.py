"""The M step: hyperparameters by BFGS on the bound, inside one compiled program."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, PyTree

_SUFFICIENT = 1e-4  # Armijo: share of the promised decrease that a step must deliver
FLAT = 1e-5  # a gradient, or a gain, per observation below which nothing is left to do
_LONGEST = 2.0  # a step moves no log-parameter by more than this


class _Search(NamedTuple):
    point: Float[Array, " T"]
    value: Float[Array, ""]
    gradient: Float[Array, " T"]
    inverse_hessian: Float[Array, "T T"]
    length: Float[Array, ""]  # of the next trial, in units of the quasi-Newton step
    evaluations: Int[Array, ""]
    done: Bool[Array, ""]


def maximise(
    objective: Callable[[PyTree], Float[Array, ""]], start: PyTree, *, evaluations: int
) -> tuple[PyTree, Int[Array, ""]]:
    """A better point than `start`, never a worse one, and how often the objective was evaluated.

    BFGS whose line search is the same loop: every pass evaluates value and gradient once, and
    either takes the step or shortens it. The objective therefore stands in the program once,
    which halves its compile time against a general-purpose solver (docs/adr/0002). It should be
    of order one: the first step is the plain gradient.
    """
    first, unravel = ravel_pytree(start)
    if first.size == 0:
        return start, jnp.asarray(0)
    loss = jax.value_and_grad(lambda vector: -objective(unravel(vector)))

    def advance(search: _Search) -> _Search:
        direction = _bounded(-search.inverse_hessian @ search.gradient)
        slope = search.gradient @ direction
        # The first pass only evaluates the start: its step has length zero.
        trial = search.point + search.length * direction
        value, gradient = loss(trial)
        usable = jnp.isfinite(value) & jnp.all(jnp.isfinite(gradient))
        promised = search.value + _SUFFICIENT * search.length * slope
        taken = usable & (value <= promised)
        flat = jnp.max(jnp.abs(gradient)) < FLAT
        small = (search.evaluations > 0) & (search.value - value < FLAT)
        moved = _Search(
            trial,
            value,
            gradient,
            _updated(search, trial, gradient),
            jnp.ones(()),
            search.evaluations + 1,
            flat | small,
        )
        length = search.length / 4
        stuck = ~usable & (search.evaluations == 0)
        kept = search._replace(
            length=length,
            evaluations=search.evaluations + 1,
            done=stuck | (-length * slope < FLAT / 100),
        )
        return jax.tree.map(lambda a, b: jnp.where(taken, a, b), moved, kept)

    size = first.size
    begin = _Search(
        first, jnp.asarray(jnp.inf), jnp.zeros(size), jnp.eye(size),
        jnp.zeros(()), jnp.asarray(0), jnp.asarray(False),
    )  # fmt: skip
    end = jax.lax.while_loop(lambda s: ~s.done & (s.evaluations < evaluations), advance, begin)
    return unravel(end.point), end.evaluations


def _bounded(direction: Float[Array, " T"]) -> Float[Array, " T"]:
    return direction * jnp.minimum(1.0, _LONGEST / (jnp.max(jnp.abs(direction)) + 1e-30))


def _updated(
    search: _Search, point: Float[Array, " T"], gradient: Float[Array, " T"]
) -> Float[Array, "T T"]:
    """The BFGS inverse Hessian; kept where the curvature along the step is not positive."""
    step, change = point - search.point, gradient - search.gradient
    curvature = step @ change
    fit = curvature > 1e-12 * jnp.linalg.norm(step) * jnp.linalg.norm(change)
    rho = 1.0 / jnp.where(fit, curvature, 1.0)
    left = jnp.eye(len(step)) - rho * jnp.outer(step, change)
    # Before the first update the identity is rescaled to the curvature just seen.
    fresh = search.evaluations == 1
    scale = jnp.where(fresh, curvature / jnp.maximum(change @ change, 1e-300), 1.0)
    new = left @ (scale * search.inverse_hessian) @ left.T + rho * jnp.outer(step, step)
    return jnp.where(fit & (search.evaluations > 0), new, search.inverse_hessian)
