"""Parameters that can be trained. Each has a constraint and a weak prior, or is fixed.

A module of the library holds its parameters as nodes of this file, or of another `paramax` wrapper.
`paramax.unwrap` turns a tree of them into plain numbers. `split` separates the numbers that an
optimiser may change from the rest. `log_prior` sums the priors.
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
    """A positive number with a log-normal prior. It is trained as its logarithm.

    The prior matters if there are too few inducing points: without it, the variance of a kernel
    could grow to 1e5.

    Args:
        value: Where learning starts: a number, or an array of them.
        centre: The median of the prior; by default the value.
        spread: The standard deviation of the prior, in natural log units. With the default of 1.5,
            a parameter stays within a factor of about 20 of the centre unless the data clearly say
            otherwise.
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
    """A real number with a normal prior around zero.

    Args:
        value: Where learning starts: a number, or an array of them.
        spread: The standard deviation of the prior; 1 by default.
    """

    value: Float[Array, "..."]
    spread: float = eqx.field(static=True)

    def __init__(self, value: Any, spread: float = 1.0):
        self.value = np.asarray(value, float)  # type: ignore[assignment]
        self.spread = spread

    def unwrap(self) -> Array:
        return jnp.asarray(self.value)

    def log_prior(self) -> Float[Array, ""]:
        return -0.5 * jnp.sum((self.value / self.spread) ** 2)


# What the field of a module holds for a parameter: at first a number or an array as the user gave
# it, a node of this file once the model has started, and a plain array once it is unwrapped.
Parameter: TypeAlias = Any


def fixed(value: Any) -> NonTrainable:
    """Keep a parameter of a kernel or a likelihood at a value, or keep mixing weights.

    Args:
        value: A number, or an array.

    Returns:
        A parameter that learning never changes, to be given in place of a number.

    Example:
        >>> import streamgp as sgp
        >>> sgp.Gaussian(noise=sgp.fixed(0.1)).noise
        NonTrainable(tree=f64[](numpy))
    """
    return NonTrainable(np.asarray(value, float))


def positive(value: Parameter | None, default: Any) -> Parameter:
    """A positive parameter that can be trained, for the fields of a likelihood or a kernel.

    Args:
        value: What the user gave: a number, an array, a parameter such as `fixed(…)`, or None.
        default: What to take if the user gave nothing.

    Returns:
        A number or an array as a `Positive`; a parameter as it is.

    Raises:
        ConfigurationError: If a number is not positive and finite.
    """
    chosen = default if value is None else value
    wrapped = isinstance(chosen, paramax.AbstractUnwrappable)
    # With NumPy's exponential: loading a file calls this, and should not wait for a compiler.
    lone = isinstance(chosen, Positive)
    numbers = np.exp(chosen.log_value) if lone else np.asarray(paramax.unwrap(chosen))
    if not (numbers.dtype.kind in "iuf" and np.all(np.isfinite(numbers) & (numbers > 0))):
        raise ConfigurationError(
            problem("a positive number", str(numbers), "It is a scale, a variance or the like.")
        )
    return chosen if wrapped else Positive(chosen)


def _is_frozen(node: Any) -> bool:
    return isinstance(node, NonTrainable)


def split(tree: PyTree) -> tuple[PyTree, PyTree]:
    """Split a tree into what may be trained and the rest; `equinox.combine` joins them again."""
    return eqx.partition(tree, eqx.is_inexact_array, is_leaf=_is_frozen)


def log_prior(tree: PyTree) -> Float[Array, ""]:
    """The sum of the log priors of all parameters in a tree, up to a constant."""

    def has_prior(node: Any) -> bool:
        return isinstance(node, Positive | Real)

    nodes = [n for n in jax.tree.leaves(tree, is_leaf=has_prior) if has_prior(n)]
    return sum((node.log_prior() for node in nodes), jnp.zeros(()))
