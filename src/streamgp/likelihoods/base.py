"""What a likelihood is: latent parameters to a distribution, and what follows from that.

A family of your own is a subclass with `distribution`; everything else has a default by
quadrature. See `docs/likelihoods.md`.
"""

from abc import abstractmethod
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
from jaxtyping import Array, Bool, Float
from numpyro.distributions import Distribution

from streamgp.likelihoods import quadrature
from streamgp.numerics.linalg import positive_part

_FAR = 5.0  # log units from which a row begins at its own mode
_SUPPORTS: dict[Any, Any] = {}  # by structure: building a distribution takes milliseconds


class Likelihood(eqx.Module):
    """p(y | f) for one channel, f its J latent parameters.

    Methods that take `y`, `mean` and `covariance` speak of one observation and the marginal
    q(f) = N(mean, covariance) there; the library maps them over a batch.
    """

    conjugate: ClassVar[bool] = False  # the site does not depend on q(f): one round is exact
    log_concave: ClassVar[bool] = False  # in f: sites are then positive without clipping
    ordered: ClassVar[bool] = True  # whether one value can be larger than another
    observation_dim: ClassVar[int] = 1  # how many numbers one observation has
    classes: ClassVar[int] = 0  # how many classes values are in; 0 if they are not classes

    @property
    def latents(self) -> int:
        """J, the number of latent parameters."""
        return 1

    @abstractmethod
    def distribution(self, f: Float[Array, "*b J"]) -> Distribution:
        """p(y | f), batched over the leading axes of f."""

    # -- starting from data ------------------------------------------------------------------

    def start(self, y: Float[np.ndarray, " N"]) -> "Likelihood":
        """With every parameter that was left out filled in; `y` may be empty."""
        return self

    def location(self, y: Float[np.ndarray, " N"]) -> tuple[np.ndarray, np.ndarray]:
        """Offset and scale of each latent parameter, from the channel's first data.

        f = offset + scale · (mixed latent functions), so that those stay of order one whatever
        the units of y. `y` may be empty.
        """
        return np.zeros(self.latents), np.ones(self.latents)

    @property
    def support(self) -> Any:
        """The numpyro constraint that observations obey; it depends on static settings alone."""
        structure = jax.tree.structure(self)
        if structure not in _SUPPORTS:
            ready = paramax.unwrap(self.start(np.zeros(0)))
            _SUPPORTS[structure] = ready.distribution(jnp.zeros(self.latents)).support
        return _SUPPORTS[structure]

    # -- inference ---------------------------------------------------------------------------

    def log_density(self, y: Float[Array, ""], f: Float[Array, " J"]) -> Float[Array, ""]:
        return self.distribution(f).log_prob(y)

    def expected_log_density(
        self, y: Float[Array, ""], mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> Float[Array, ""]:
        """E_q[log p(y | f)]."""
        f, weights = quadrature.spread(mean, covariance)
        return jnp.dot(weights, jax.vmap(self.log_density, (None, 0))(y, f))

    def curvature(
        self, y: Float[Array, ""], mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> tuple[Float[Array, " J"], Float[Array, "J J"]]:
        """E_q[∇ log p] and −E_q[∇∇ log p], made positive semi-definite.

        By Bonnet's and Price's theorems these are ∂E/∂m and −2·∂E/∂S, the natural gradient of
        the expectation. Averaging Hessians keeps a log-concave family's precision positive
        node by node, which differentiating through a Cholesky factor would not.
        """
        f, weights = quadrature.spread(mean, covariance)
        gradients = jax.vmap(jax.grad(self.log_density, 1), (None, 0))(y, f)
        hessians = jax.vmap(jax.hessian(self.log_density, 1), (None, 0))(y, f)
        precision = -jnp.tensordot(weights, hessians, 1)
        if not self.log_concave:
            one = self.latents == 1
            precision = jnp.maximum(precision, 0.0) if one else positive_part(precision)
        return weights @ gradients, precision

    def first_site(
        self, y: Float[Array, ""], mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> tuple[Float[Array, " J"], Float[Array, "J J"]]:
        """Where the E step's rounds begin: gradient at `mean`, and precision. None by default."""
        return jnp.zeros_like(mean), jnp.zeros_like(covariance)

    def log_predictive(
        self, y: Float[Array, ""], mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> Float[Array, ""]:
        """log E_q[p(y | f)]."""
        if self.latents == 1 and self.log_concave:
            return quadrature.log_integral(
                lambda f: self.log_density(y, f[None]), mean[0], covariance[0, 0]
            )
        f, weights = quadrature.spread(mean, covariance, fine=not self.log_concave)
        return jax.nn.logsumexp(jax.vmap(self.log_density, (None, 0))(y, f), b=weights)

    # -- prediction ----------------------------------------------------------------------------

    def predictive_cdf(
        self, y: Float[Array, ""], mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> Float[Array, ""]:
        """E_q[P(Y ≤ y | f)]."""
        f, weights = quadrature.spread(mean, covariance, fine=True)
        return jnp.dot(weights, self.cdf(jnp.broadcast_to(y, f.shape[:-1]), f))

    def cdf(self, y: Float[Array, "*b"], f: Float[Array, "*b J"]) -> Float[Array, "*b"]:
        """P(Y ≤ y | f)."""
        return self.distribution(f).cdf(y)

    def moments(self, f: Float[Array, "*b J"]) -> tuple[Array, Array]:
        """Mean and variance of y given f."""
        conditional = self.distribution(f)
        return conditional.mean, conditional.variance

    def valid(self, y: Float[np.ndarray, " N"]) -> Bool[np.ndarray, " N"]:
        """Which observations this family can have produced."""
        finite = np.isfinite(y)
        return finite & np.asarray(self.support(np.where(finite, y, 0.0)))


def site_at_mode(
    mode: Float[Array, ""],
    weight: Float[Array, ""],
    distance: Float[Array, ""],
    mean: Float[Array, ""],
    variance: Float[Array, ""],
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """A first site for densities with an exponential in f, of a row on its steep side.

    `distance` is how far, in log units, the expected exponential is above what y asks for. Newton's
    steps come down from there by one a round; from the row's own mode, where it begins if far,
    they only go up. `weight` is the precision at that mode.
    """
    variance = variance + 1e-12
    firm = weight + distance / variance  # leaves about one of the distance
    precision = jnp.where(distance > _FAR, firm, 0.0)
    return precision * (mode - mean), precision
