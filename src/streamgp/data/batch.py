"""Rows of observations, and the padded and masked batch that compiled programs take."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from streamgp.data.buckets import row_bucket

# Stands in where there is no observation: every likelihood has a finite log-density here.
ANY_FAMILYS_VALUE = 0.5


class Batch(eqx.Module):
    """N rows from any channels, in any order.

    The arrays are NumPy's or JAX's. Programs take either, and NumPy's cost less to hand over.

    Attributes:
        x: The inputs.
        y: The observations.
        channel: The index of the channel of each row.
        mask: Whether a row is an observation; otherwise it is padding.
    """

    x: Float[Any, "N P"]
    y: Float[Any, " N"]
    channel: Int[Any, " N"]
    mask: Bool[Any, " N"]


class Rows(NamedTuple):
    """Observations from any channels, without padding.

    Attributes:
        x: The inputs.
        y: The observations.
        channel: The index of the channel of each row.
        names: The names of all channels of the model, which the indices refer to.
    """

    x: Float[np.ndarray, "N P"]
    y: Float[np.ndarray, " N"]
    channel: Int[np.ndarray, " N"]
    names: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.y)

    def take(self, which: slice | np.ndarray) -> "Rows":
        """Some of the rows, by their numbers."""
        return Rows(self.x[which], self.y[which], self.channel[which], self.names)

    def by_channel(self) -> Iterator[tuple[str, Bool[np.ndarray, " N"]]]:
        """The name of each channel that has rows, and which rows are its own."""
        for index in np.unique(self.channel):
            yield self.names[index], self.channel == index

    def pack(self) -> Batch:
        """The rows padded to the next bucket. Padding repeats the last row, which is valid data."""
        padded = row_bucket(self.size)
        rows = np.minimum(np.arange(padded), self.size - 1)
        real = np.arange(padded) < self.size
        return Batch(self.x[rows], self.y[rows], self.channel[rows], real)


def pack(
    parts: Sequence[tuple[int, Float[np.ndarray, "_ P"], Float[np.ndarray, " _"]]],
) -> Batch:
    """One padded batch of JAX arrays, from triples (channel index, inputs, observations)."""
    return jax.tree.map(jnp.asarray, join(parts).pack())


def join(
    parts: Sequence[tuple[int, Float[np.ndarray, "_ P"], Float[np.ndarray, " _"]]],
) -> Rows:
    """Rows from triples (channel index, inputs, observations), one after the other."""
    return Rows(
        np.concatenate([x for _, x, _ in parts]),
        np.concatenate([y for _, _, y in parts]),
        np.concatenate([np.full(len(y), index) for index, _, y in parts]),
    )


def blank_batch(width: int) -> Batch:
    """A batch that is all padding, for inputs with so many columns."""
    size = row_bucket(1)
    return Batch(
        x=jnp.zeros((size, width)),
        y=jnp.full(size, ANY_FAMILYS_VALUE),
        channel=jnp.zeros(size, int),
        mask=jnp.zeros(size, bool),
    )
