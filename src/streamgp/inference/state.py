"""State: what is kept of the past, and what a step reports."""

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from streamgp.inference.conditioning import Inducing
from streamgp.inference.memory import Memory
from streamgp.inference.sites import Site
from streamgp.model.multitask import Generative
from streamgp.registry import storable


@storable
class State(eqx.Module):
    """All that is kept of the past. No data, and nothing that can be derived."""

    model: Generative  # parameters still wrapped: constrained, with priors
    inducing: Inducing
    site: Site  # whitened by the prior under `model` at `inducing`
    memory: Memory  # of how past data depend on the hyperparameters
    count: Float[Array, ""]  # observations it stands for, faded ones in part
    energy: Float[Array, ""]  # their squares about the offset; for the noise of a lone channel

    def replace(self, **changes: Any) -> "State":
        """A copy with some fields changed, by name."""
        return dataclasses.replace(self, **changes)

    def is_finite(self) -> Bool[Array, ""]:
        """Whether there is no NaN and no infinity in it."""
        leaves = jax.tree.leaves(eqx.filter(self, eqx.is_inexact_array))
        return jnp.all(jnp.stack([jnp.isfinite(leaf).all() for leaf in leaves]))

    # JAX alone would read a pickled or copied state in the precision of whoever reads it.

    def __getstate__(self) -> dict[str, Any]:
        return jax.tree.map(
            lambda leaf: np.asarray(leaf) if eqx.is_array(leaf) else leaf, vars(self)
        )

    def __setstate__(self, fields: dict[str, Any]) -> None:
        with jax.enable_x64(True):
            for name, tree in fields.items():
                leaves = jax.tree.map(
                    lambda leaf: jnp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf, tree
                )
                object.__setattr__(self, name, leaves)


class Info(NamedTuple):
    """What happened in a step."""

    bound: Float[Array, ""]  # L_C of the batch: the first batch's is the ordinary ELBO
    log_predictive: Float[Array, " N"]  # of each row, before learning from it
    e_rounds: Int[Array, ""]
    m_evaluations: Int[Array, ""]
    finite: Bool[Array, ""]  # whether the new state is
