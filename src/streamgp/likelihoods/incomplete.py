"""Incomplete gamma and beta functions that are accurate for small and for large arguments."""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import betainc, erfc, gammaincc
from jaxtyping import Array, Float

_LARGE = 1000.0  # above it, the expansion has an error below 1e-7
_MANY = 1e6  # the same for the beta function, if the other argument is much smaller


def upper_gamma(a: Float[Array, "*b"], x: Float[Array, "*b"]) -> Float[Array, "*b"]:
    """Q(a, x) = Γ(a, x)/Γ(a): the probability of fewer than a events at rate x, for whole a.

    JAX's own function takes about √a steps, which is thousands for counts in the millions. For
    large a this one is Temme's uniform expansion (1979) up to its second term. With
    ½η² = μ − log(1 + μ) and μ = x/a − 1,

        Q = ½ erfc(η√(a/2)) + exp(−½aη²)/√(2πa) · (1/μ − 1/η).
    """
    is_large = a > _LARGE
    small = gammaincc(jnp.where(is_large, 1.0, a), jnp.where(is_large, 1.0, x))
    a = jnp.where(is_large, a, _LARGE)
    mu = jnp.where(is_large, x, _LARGE) / a - 1
    height = jnp.maximum(mu - jnp.log1p(jnp.maximum(mu, -1 + 1e-300)), 0.0)  # ½η²
    eta = jnp.sign(mu) * jnp.sqrt(2 * height)
    near = jnp.abs(mu) < 1e-3  # here the two fractions cancel
    apart = 1 / jnp.where(near, 1.0, mu) - 1 / jnp.where(near, 1.0, eta)
    second = jnp.where(near, -1 / 3 + mu / 12, apart)
    correction = jnp.exp(-a * height) / jnp.sqrt(2 * np.pi * a) * second
    return jnp.where(is_large, 0.5 * erfc(eta * jnp.sqrt(a / 2)) + correction, small)


def lower_beta(
    a: Float[Array, "*b"], b: Float[Array, "*b"], odds: Float[Array, "*b"]
) -> Float[Array, "*b"]:
    """I_p(a, b) for p/(1 − p) = odds: the probability of fewer than b failures before a successes.

    JAX's own function takes a limited number of steps, so that its result is arbitrary for b in the
    billions. For large b this one is Wise's approximation (1950) by a gamma distribution.
    """
    is_large = (b > _MANY) & (b > 100 * a**1.5)
    safe = jnp.where(is_large, 1.0, odds)
    small = betainc(a, jnp.where(is_large, 1.0, b), safe / (1 + safe))
    large = 1 - upper_gamma(a, (b + 0.5 * (a - 1)) * jnp.log1p(odds))
    return jnp.where(is_large, large, small)
