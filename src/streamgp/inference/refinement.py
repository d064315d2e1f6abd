"""Refinement: new inducing points moved by gradient to where they serve their batch best.

A point that has just been added carries no site, so it may go anywhere without a loss: the factor
of the points before it, and all that is whitened by it, stay the same numbers.
"""

import jax.numpy as jnp
import paramax
from jaxtyping import Array, Bool, Float

from streamgp.data import Batch
from streamgp.inference.conditioning import Inducing, factorise
from streamgp.inference.m_step import maximise
from streamgp.inference.state import State
from streamgp.inference.vem import Episode, Options
from streamgp.model.multitask import Generative


def refine_points(
    state: State,
    batch: Batch,
    start: Generative,
    fresh: Bool[Array, "Q M"],
    options: Options,
    *,
    evaluations: int,
) -> Inducing:
    """The state's points with the fresh ones, which follow all others, at a higher bound.

    Hyperparameters stay, and so do the rows' sites, as in an M step.
    """
    unit = _unit(batch, fresh)

    def episode(shift: Float[Array, "Q M P"]) -> Episode:
        points = state.inducing.points + jnp.where(fresh[..., None], shift, 0.0) * unit
        inducing = Inducing(points, state.inducing.mask)
        there = state.replace(inducing=inducing)
        return Episode(there, factorise(paramax.unwrap(state.model), inducing), batch, options)

    still = jnp.zeros_like(state.inducing.points)
    rows = episode(still).learn(start, None).fit.rows
    observations = jnp.maximum(jnp.sum(batch.mask), 1)
    best, _ = maximise(
        lambda shift: episode(shift).bound(start, rows) / observations,
        still,
        evaluations=evaluations,
    )
    return episode(best).state.inducing


def _unit(batch: Batch, fresh: Bool[Array, "Q M"]) -> Float[Array, " P"]:
    """About the distance between neighbours, were the fresh points spread over the batch."""
    count = jnp.maximum(jnp.sum(batch.mask), 1)
    centre = jnp.sum(jnp.where(batch.mask[:, None], batch.x, 0.0), axis=0) / count
    apart = jnp.where(batch.mask[:, None], batch.x - centre, 0.0)
    spread = jnp.sqrt(jnp.sum(apart**2, axis=0) / count)
    return spread / jnp.maximum(jnp.max(jnp.sum(fresh, axis=-1)), 1)
