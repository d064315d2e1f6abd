"""Prediction: what the model says of one channel at some inputs."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from numpyro.distributions import constraints

from streamgp.data import arrays
from streamgp.errors import DataError, problem
from streamgp.likelihoods import Categorical, Gaussian, Likelihood, Ordinal
from streamgp.likelihoods.quadrature import root, spread
from streamgp.precision import double_precision

_BISECTIONS = 80
_DOUBLINGS = 200
_SMALL = 1e-30  # values below it are told apart as numbers, not by magnitude


class Prediction:
    """The predictive distribution of y at N inputs, with the latent parameters behind it.

    Everything is in the units of the data. `mean` and `variance` are those of a new observation,
    noise included; `latent_mean` and `latent_variance` those of the function f alone. For a
    channel with classes, `mean` and `variance` have a column a class (they are the indicators').
    """

    def __init__(
        self,
        likelihood: Likelihood,
        mean: Float[np.ndarray, "N J"],
        covariance: Float[np.ndarray, "N J J"],
    ):
        self.likelihood = likelihood
        self._mean = mean
        self._covariance = covariance

    def _moments_of_f(self) -> tuple[Float[Array, "N J"], Float[Array, "N J J"]]:
        return jnp.asarray(self._mean), jnp.asarray(self._covariance)

    def __len__(self) -> int:
        return len(self._mean)

    def __repr__(self) -> str:
        return f"Prediction({type(self.likelihood).__name__}, {len(self)} inputs)"

    @property
    def latent_mean(self) -> np.ndarray:
        """E[f]: (N,), or (N, J) where the channel has several latent parameters."""
        return self._mean[:, 0] if self.likelihood.latents == 1 else self._mean

    @property
    def latent_variance(self) -> np.ndarray:
        """Var[f]: (N,), or (N, J)."""
        variances = np.diagonal(self._covariance, axis1=-2, axis2=-1)
        return variances[:, 0] if self.likelihood.latents == 1 else variances

    @property
    def mean(self) -> np.ndarray:
        return self._moments()[0]

    @property
    def variance(self) -> np.ndarray:
        return self._moments()[1]

    @property
    def std(self) -> np.ndarray:
        return np.sqrt(self.variance)

    @property
    def probabilities(self) -> Float[np.ndarray, "N K"]:
        """The probability of each class, for channels that have classes."""
        if isinstance(self.likelihood, Categorical | Ordinal):
            return self.mean
        if self.likelihood.support is not constraints.boolean:
            raise DataError(
                problem(
                    "a channel with classes (Bernoulli, Categorical, Ordinal)",
                    type(self.likelihood).__name__,
                    "Use `mean`, `interval` or `quantile` for this channel.",
                )
            )
        return np.stack([1 - self.mean, self.mean], axis=-1)

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """The central interval that holds a new observation with that probability."""
        _check_probability(level)
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)

    @double_precision
    def quantile(self, level: float) -> Float[np.ndarray, " N"]:
        """The value below which a new observation falls with that probability."""
        _check_probability(level)
        if isinstance(self.likelihood, Categorical):
            raise DataError(
                problem(
                    "a channel whose values are ordered",
                    type(self.likelihood).__name__,
                    "Use `probabilities` for this channel.",
                )
            )
        if isinstance(self.likelihood, Gaussian):
            return self.mean + self.std * float(jax.scipy.special.ndtri(level))
        discrete = bool(self.likelihood.support.is_discrete)
        moments = self._moments_of_f()
        values = np.asarray(_quantile(self.likelihood, *moments, jnp.asarray(level), discrete))
        support = self.likelihood.support  # bisection may end a rounding outside of it
        values = np.floor(values + 1e-6) if discrete else values
        lowest = getattr(support, "lower_bound", -np.inf)
        return np.clip(values, lowest, getattr(support, "upper_bound", np.inf))

    @double_precision
    def log_density(self, y: Any) -> Float[np.ndarray, " N"]:
        """log p(y) of one observation an input."""
        values = arrays.numbers(y, "observations of the prediction")
        if values.ndim and values.shape != (len(self),):
            raise DataError(
                problem(f"one value, or {len(self)}", f"shape {values.shape}", "Give one an input.")
            )
        values = np.broadcast_to(values, (len(self),))
        invalid = ~self.likelihood.valid(values)
        if invalid.any():
            raise DataError(
                problem(
                    f"values in the support of {type(self.likelihood).__name__}",
                    f"{values[invalid][0]!r} among {invalid.sum()} others",
                    "Leave those out.",
                )
            )
        method = jax.vmap(type(self.likelihood).log_predictive, (None, 0, 0, 0))
        return np.asarray(
            eqx.filter_jit(method)(self.likelihood, jnp.asarray(values), *self._moments_of_f())
        )

    @double_precision
    def sample(self, count: int = 1, *, seed: int = 0) -> np.ndarray:
        """Independent draws of a new observation at each input, (count, N)."""
        if not (isinstance(count, int | np.integer) and count >= 1):
            raise DataError(problem("a count of at least 1", repr(count), "Ask for one draw."))
        key_f, key_y = jax.random.split(jax.random.key(seed))
        mean, covariance = self._moments_of_f()
        noise = jax.random.normal(key_f, (count, *mean.shape))
        f = mean + jnp.einsum("njk,snk->snj", root(covariance), noise)
        return np.asarray(self.likelihood.distribution(f).sample(key_y))

    @double_precision
    def _moments(self) -> tuple[np.ndarray, np.ndarray]:
        mean, variance = _moments(self.likelihood, *self._moments_of_f())
        return np.asarray(mean), np.asarray(variance)


@eqx.filter_jit
def _moments(
    likelihood: Likelihood, mean: Float[Array, "N J"], covariance: Float[Array, "N J J"]
) -> tuple[Array, Array]:
    """Total mean and variance: E[E[y|f]], E[Var[y|f]] + Var[E[y|f]]."""
    f, weights = spread(mean, covariance)
    means, variances = likelihood.moments(f)
    total = jnp.tensordot(weights, means, 1)
    between = jnp.tensordot(weights, (means - total) ** 2, 1)
    return total, between + jnp.tensordot(weights, variances, 1)


@eqx.filter_jit
def _quantile(
    likelihood: Likelihood,
    mean: Float[Array, "N J"],
    covariance: Float[Array, "N J J"],
    level: Float[Array, ""],
    discrete: bool,
) -> Float[Array, " N"]:
    """Bisection on the predictive distribution function; for whole numbers it may end early."""
    centre, variance = _moments(likelihood, mean, covariance)
    if centre.ndim > 1:  # of the classes' indicators
        centre, variance = jnp.zeros((2, len(mean)))
    finite = jnp.isfinite(centre + variance)  # not every family has both
    centre = jnp.where(finite, centre, 0.0)
    # Chebyshev (Cantelli), where there is a variance to go by; then doubled while that is short.
    reach = 1.0 + jnp.where(finite, jnp.sqrt(variance / jnp.minimum(level, 1 - level)), 0.0)

    def enough(y: Float[Array, " N"]) -> Bool[Array, " N"]:
        below = jax.vmap(likelihood.predictive_cdf)(y, mean, covariance)
        return jnp.where(jnp.isnan(below), y > centre, below >= level)  # NaN: out of the support

    def widen(bracket: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        low, high, _, tries = bracket
        short_below, short_above = enough(low), ~enough(high)
        low = jnp.where(short_below, centre - 2 * (centre - low), low)
        high = jnp.where(short_above, centre + 2 * (high - centre), high)
        return low, high, jnp.any(short_below | short_above), tries + 1

    def halve(ends: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        low, high, tries = ends
        middle = _between(low, high)
        is_enough = enough(middle)
        low, high = jnp.where(is_enough, low, middle), jnp.where(is_enough, middle, high)
        return low, high, tries + 1

    def is_wide(ends: tuple[Array, Array, Array]) -> Bool[Array, ""]:
        low, high, tries = ends
        narrow = 1e-3 if discrete else 1e-12 * (jnp.abs(low) + jnp.abs(high)) + 1e-300
        return jnp.any(high - low > narrow) & (tries < _BISECTIONS)

    begin = (centre - reach, centre + reach, jnp.asarray(True), jnp.asarray(0))
    low, high, _, _ = jax.lax.while_loop(lambda b: b[2] & (b[3] < _DOUBLINGS), widen, begin)
    _, high, _ = jax.lax.while_loop(is_wide, halve, (low, high, jnp.asarray(0)))
    return high


def _between(low: Float[Array, " N"], high: Float[Array, " N"]) -> Float[Array, " N"]:
    """Halfway: by value where the two are close, else by magnitude.

    A variance of 1e80 may belong to a quantile of 1e-3, which halving by value would not reach.
    """
    is_close = high - low <= 0.5 * jnp.maximum(jnp.abs(low), jnp.abs(high))
    magnitude = 0.5 * (jnp.arcsinh(low / _SMALL) + jnp.arcsinh(high / _SMALL))
    return jnp.where(is_close, 0.5 * (low + high), _SMALL * jnp.sinh(magnitude))


def _check_probability(level: float) -> None:
    if not (isinstance(level, int | float | np.floating) and 0 < level < 1):
        raise DataError(problem("a probability between 0 and 1", repr(level), "Use 0.95 for 95%."))
