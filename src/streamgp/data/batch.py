"""Batch: the observations of one update, flat, padded and masked."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from streamgp.data.buckets import row_bucket


class Batch(eqx.Module):
    """N rows from any channels, in any order. Rows whose mask is false are padding."""

    x: Float[Array, "N P"]
    y: Float[Array, " N"]
    channel: Int[Array, " N"]
    mask: Bool[Array, " N"]


def pack(
    parts: Sequence[tuple[int, Float[np.ndarray, "_ P"], Float[np.ndarray, " _"]]],
) -> Batch:
    """One padded batch from (channel index, inputs, observations)."""
    x = np.concatenate([part[1] for part in parts])
    y = np.concatenate([part[2] for part in parts])
    channel = np.concatenate([np.full(len(part[2]), part[0]) for part in parts])
    size = row_bucket(len(y))
    rows = np.minimum(np.arange(size), len(y) - 1)  # padding repeats a row: always legal values
    return Batch(
        x=jnp.asarray(x[rows]),
        y=jnp.asarray(y[rows]),
        channel=jnp.asarray(channel[rows]),
        mask=jnp.arange(size) < len(y),
    )
