"""Bernoulli: yes or no."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.scipy.special import log_ndtr
from jaxtyping import Array, Float
from scipy import special

from streamgp.errors import ConfigurationError, problem
from streamgp.likelihoods.base import Likelihood
from streamgp.registry import storable


@storable
class Bernoulli(Likelihood):
    """Observations that are yes or no.

    y is 0 or 1, a boolean, or one of two labels such as "no" and "yes". Of two labels, the second
    in their order counts as 1. The probability of 1 depends on the latent parameter f.

    Args:
        link: How the probability depends on f: "logit" (the default) for sigmoid(f), or "probit"
            for Φ(f), the distribution function of the standard normal.

    Raises:
        ConfigurationError: If the link is another.

    Example:
        >>> import streamgp as sgp
        >>> sgp.ContinualGP({"rain": sgp.Bernoulli(), "frost": sgp.Bernoulli("probit")}).channels
        ('rain', 'frost')
    """

    link: Literal["logit", "probit"] = eqx.field(static=True, default="logit")

    log_concave = True
    classes = 2

    def __check_init__(self) -> None:
        if self.link not in ("logit", "probit"):
            raise ConfigurationError(
                problem("link 'logit' or 'probit'", repr(self.link), "Choose one of them.")
            )

    def distribution(self, f: Float[Array, "*b J"]) -> dist.Distribution:
        logits = f[..., 0]
        if self.link == "probit":
            logits = log_ndtr(f[..., 0]) - log_ndtr(-f[..., 0])
        return dist.Bernoulli(logits=logits)

    def location(self, y: Float[np.ndarray, " N"]) -> tuple[np.ndarray, np.ndarray]:
        rate = (np.sum(y) + 1) / (len(y) + 2)  # Laplace's rule: never 0 or 1
        link = special.logit if self.link == "logit" else special.ndtri
        return np.array([link(rate)]), np.ones(1)

    def log_density(self, y: Float[Array, ""], f: Float[Array, " J"]) -> Float[Array, ""]:
        # In closed form, because the logits of the distribution overflow for probit far from zero,
        # and its derivative is wrong at logits of exactly zero.
        log_probability = log_ndtr if self.link == "probit" else jax.nn.log_sigmoid
        return log_probability((2 * y - 1) * f[0])

    def log_predictive(
        self, y: Float[Array, ""], mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> Float[Array, ""]:
        if self.link == "logit":
            return super().log_predictive(y, mean, covariance)
        return log_ndtr((2 * y - 1) * mean[0] / jnp.sqrt(1 + covariance[0, 0]))

    def cdf(self, y: Float[Array, "*b"], f: Float[Array, "*b J"]) -> Float[Array, "*b"]:
        below_one = jnp.where(y < 0, 0.0, 1.0 - self.distribution(f).mean)
        return jnp.where(y < 1, below_one, 1.0)
