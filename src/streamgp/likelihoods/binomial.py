"""Binomial: successes among a number of trials."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.scipy.special import betainc, gammaln
from jaxtyping import Array, Float
from scipy import special

from streamgp.errors import ConfigurationError, problem
from streamgp.likelihoods.base import Likelihood
from streamgp.registry import storable


@storable
class Binomial(Likelihood):
    """The number of successes in a fixed number of trials.

    y is a whole number from 0 to `trials`. Each trial succeeds with probability sigmoid(f), where f
    is the latent parameter.

    Args:
        trials: The number of trials of each observation; at least 1. There is no default.

    Raises:
        ConfigurationError: If `trials` is not a whole number of at least 1.

    Example:
        >>> import streamgp as sgp
        >>> sgp.ContinualGP({"passed": sgp.Binomial(20)}).channels
        ('passed',)
    """

    trials: int = eqx.field(static=True)

    log_concave = True

    def __check_init__(self) -> None:
        if not (isinstance(self.trials, int) and self.trials >= 1):
            raise ConfigurationError(
                problem(
                    "at least 1 trial",
                    repr(self.trials),
                    "Give the number of trials of each observation.",
                )
            )

    def distribution(self, f: Float[Array, "*b J"]) -> dist.Distribution:
        return dist.Binomial(self.trials, logits=f[..., 0])

    def location(self, y: Float[np.ndarray, " N"]) -> tuple[np.ndarray, np.ndarray]:
        rate = (np.sum(y) + 1) / (self.trials * len(y) + 2)  # Laplace's rule: never 0 or 1
        return special.logit(np.array([rate])), np.ones(1)

    def cdf(self, y: Float[Array, "*b"], f: Float[Array, "*b J"]) -> Float[Array, "*b"]:
        k = jnp.clip(jnp.floor(y), 0, self.trials - 1)
        inside = betainc(self.trials - k, k + 1, jax.nn.sigmoid(-f[..., 0]))
        return jnp.where(y < 0, 0.0, jnp.where(y < self.trials, inside, 1.0))

    def log_density(self, y: Float[Array, ""], f: Float[Array, " J"]) -> Float[Array, ""]:
        # In closed form: the derivative of the distribution is wrong at logits of exactly zero.
        ways = gammaln(self.trials + 1.0) - gammaln(y + 1) - gammaln(self.trials - y + 1)
        return y * f[0] - self.trials * jax.nn.softplus(f[0]) + ways
