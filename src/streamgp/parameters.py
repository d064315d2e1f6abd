"""Trainable parameters: constrained, with a weak prior each, and freezable.

A module of the library holds its parameters as nodes of this file (or any other `paramax`
wrapper). `paramax.unwrap` turns a tree of them into plain numbers; `split` separates what an
optimiser may move from what it may not; `log_prior` sums the priors.
"""

from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
from jaxtyping import Array, Float, PyTree
from paramax import NonTrainable

from streamgp.errors import ConfigurationError, problem
from streamgp.registry import register_foreign, storable

register_foreign("paramax", NonTrainable)


@storable
class Positive(paramax.AbstractUnwrappable[Array]):
    """A positive number, moved in log space, with a log-normal prior around `centre`.

    The spread is in natural log units: 1.5 keeps a parameter within a factor of about 20 of its
    start unless the data insist. It is what stops too few inducing points from driving a kernel
    variance to 1e5.
    """

    log_value: Float[Array, "..."]
    log_centre: NonTrainable
    spread: float = eqx.field(static=True)

    def __init__(self, value: Any, centre: Any = None, spread: float = 1.5):
        centre = value if centre is None else centre
        self.log_value = np.log(np.asarray(value, float))
        self.log_centre = NonTrainable(np.log(np.asarray(centre, float)))
        self.spread = spread

    def unwrap(self) -> Array:
        return jnp.exp(self.log_value)

    def log_prior(self) -> Float[Array, ""]:
        deviation = (self.log_value - self.log_centre.tree) / self.spread
        return -0.5 * jnp.sum(deviation**2)


@storable
class Real(paramax.AbstractUnwrappable[Array]):
    """A real number with a normal prior around zero."""

    value: Float[Array, "..."]
    spread: float = eqx.field(static=True)

    def __init__(self, value: Any, spread: float = 1.0):
        self.value = np.asarray(value, float)  # type: ignore[assignment]
        self.spread = spread

    def unwrap(self) -> Array:
        return jnp.asarray(self.value)

    def log_prior(self) -> Float[Array, ""]:
        return -0.5 * jnp.sum((self.value / self.spread) ** 2)


# What a module's field holds for a parameter: a number or an array as the user gave it, a node of
# this file once the model has started, a plain array once unwrapped.
Parameter: TypeAlias = Any


def fixed(value: Any) -> NonTrainable:
    """A parameter that learning never touches.

    >>> import streamgp as sgp
    >>> sgp.Gaussian(noise=sgp.fixed(0.1)).noise
    NonTrainable(tree=f64[](numpy))
    """
    return NonTrainable(np.asarray(value, float))


def positive(value: Parameter | None, default: Any) -> Parameter:
    """What the user gave (a number, or a parameter node as it is), else the default."""
    chosen = default if value is None else value
    wrapped = isinstance(chosen, paramax.AbstractUnwrappable)
    # NumPy's exponential: loading a file calls this, and should not wait for a compiler.
    lone = isinstance(chosen, Positive)
    numbers = np.exp(chosen.log_value) if lone else np.asarray(paramax.unwrap(chosen))
    if not (numbers.dtype.kind in "iuf" and np.all(np.isfinite(numbers) & (numbers > 0))):
        raise ConfigurationError(
            problem("a positive number", str(numbers), "It stands for a scale or a variance.")
        )
    return chosen if wrapped else Positive(chosen)


def _is_frozen(node: Any) -> bool:
    return isinstance(node, NonTrainable)


def split(tree: PyTree) -> tuple[PyTree, PyTree]:
    """(what may be trained, the rest): put them together again with `equinox.combine`."""
    return eqx.partition(tree, eqx.is_inexact_array, is_leaf=_is_frozen)


def log_prior(tree: PyTree) -> Float[Array, ""]:
    """Sum of the log priors of every parameter in the tree, up to a constant."""

    def has_prior(node: Any) -> bool:
        return isinstance(node, Positive | Real)

    nodes = [n for n in jax.tree.leaves(tree, is_leaf=has_prior) if has_prior(n)]
    return sum((node.log_prior() for node in nodes), jnp.zeros(()))
