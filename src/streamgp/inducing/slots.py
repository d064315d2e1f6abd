"""Slots: sets of inducing points as padded arrays, and room for more of them."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from streamgp.data import inducing_bucket
from streamgp.inference.conditioning import Inducing
from streamgp.inference.learner import State
from streamgp.inference.sites import Site


def inducing(points: Sequence[Float[np.ndarray, "_ P"]]) -> Inducing:
    """Sets of points, one per latent function, in padded slots."""
    slots = inducing_bucket(max(len(p) for p in points))
    padded = np.stack([np.pad(p, [(0, slots - len(p)), (0, 0)]) for p in points])
    mask = np.stack([np.arange(slots) < len(p) for p in points])
    return Inducing(jnp.asarray(padded), jnp.asarray(mask))


def extends(old: Sequence[np.ndarray], new: Sequence[np.ndarray]) -> bool:
    """Whether each latent function's new points are its old ones, in order, and perhaps more."""
    return all(np.array_equal(a, b[: len(a)]) for a, b in zip(old, new, strict=True))


def extended(state: State, new: Inducing) -> State:
    """The state with further points in slots that were empty. Nothing is lost or computed.

    A Cholesky factor's leading block is that of the leading points, so the whitened values of
    the old points, and with them the site, are the same numbers as before.
    """
    latents, slots = state.inducing.mask.shape
    room = new.mask.shape[1]
    if room == slots:
        return state.replace(inducing=new)
    joint = state.site.linear.shape[0] != latents or latents == 1
    linear = _widen(state.site.linear.reshape(latents, slots), room, axes=(1,))
    shape = (latents, slots, latents, slots) if joint else (latents, slots, slots)
    axes = (1, 3) if joint else (1, 2)
    precision = _widen(state.site.precision.reshape(shape), room, axes)
    blocks, size = (1, latents * room) if joint else (latents, room)
    site = Site(linear.reshape(blocks, size), precision.reshape(blocks, size, size))
    return state.replace(inducing=new, site=site)


def _widen(array: jnp.ndarray, size: int, axes: tuple[int, ...]) -> jnp.ndarray:
    widths = [(0, size - n) if axis in axes else (0, 0) for axis, n in enumerate(array.shape)]
    return jnp.pad(array, widths)
