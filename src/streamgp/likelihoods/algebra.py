"""Small pieces of algebra that families share."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from streamgp.likelihoods.arrays import Covariances, Observed, Values

LOG_2PI = np.log(2 * np.pi)
_LEAST = np.nextafter(0.0, 1.0)  # the smallest number above zero
_FAR = 5.0  # log units from which a row begins at its own mode


def each(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """`function` of every array in a tree of dictionaries and tuples, and in others like it."""
    if isinstance(tree, Mapping):
        return {
            name: each(function, part, *(other[name] for other in others))
            for name, part in tree.items()
        }
    if isinstance(tree, tuple):
        parts = (each(function, *same) for same in zip(tree, *others, strict=True))
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    return function(tree, *others)


def column(values: Values) -> Float[np.ndarray, "*#b 1"]:
    """A first derivative by one latent parameter, as a vector of length one."""
    return values[..., None]


def square(values: Values) -> Float[np.ndarray, "*#b 1 1"]:
    """A second derivative by one latent parameter, as a matrix of one entry."""
    return values[..., None, None]


def log_of(y: Observed) -> Observed:
    """log y; of a y that is not above zero, as of the smallest number that is."""
    return np.log(np.maximum(y, _LEAST))


def log_normal(squares: Values, variance: Values | float) -> Values:
    """The log density of a normal distribution, by squared distances from its mean."""
    return -0.5 * (squares / variance + np.log(variance) + LOG_2PI)


@np.errstate(over="ignore", divide="ignore")
def exponential(log_mean: Values, variance: Values | float) -> tuple[Values, Values, Values]:
    """Mean, mean square and variance of exp(f) for a normal f of that variance.

    `log_mean` is the logarithm of the first. They are infinite where they are beyond all numbers.
    """
    log_excess = variance + np.log(-np.expm1(-variance))  # log(exp(variance) − 1)
    square = np.exp(2 * log_mean + variance)
    return np.exp(log_mean), square, np.exp(2 * log_mean + log_excess)


def positive_part(a: Covariances) -> Covariances:
    """The nearest positive semi-definite matrix in Frobenius norm."""
    if a.shape[-1] == 1:
        return np.maximum(a, 0.0)
    values, vectors = np.linalg.eigh(0.5 * (a + np.swapaxes(a, -1, -2)))
    return (vectors * np.maximum(values, 0.0)[..., None, :]) @ np.swapaxes(vectors, -1, -2)


def site_at_mode(
    mode: Values, weight: Values | float, distance: Values, mean: Values, variance: Values
) -> tuple[Values, Values]:
    """A first site for densities with an exponential in f, of rows on its steep side.

    `distance` is how far, in log units, the expected exponential is above what y asks for. Newton's
    steps come down from there by one per round; from the row's own mode, where it begins if far,
    they only go up. `weight` is the precision at that mode.
    """
    variance = variance + 1e-12
    firm = weight + distance / variance  # leaves about one of the distance
    precision = np.where(distance > _FAR, firm, 0.0)
    return precision * (mode - mean), precision
