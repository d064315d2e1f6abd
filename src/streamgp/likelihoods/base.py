"""The base class of likelihoods.

A subclass has to define `distribution`. Everything else has a default that uses quadrature. See
`docs/likelihoods.md`.
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

_FAR = 5.0  # a row that is farther off than this, in log units, begins at its own mode
_SUPPORTS: dict[Any, Any] = {}  # by structure, because building a distribution takes milliseconds


class Likelihood(eqx.Module):
    """The distribution p(y | f) of the observations of a channel.

    y is one observation, and f are the J latent parameters of the channel at its input. Methods
    that take `y`, `mean` and `covariance` compute with one observation and with the marginal
    q(f) = N(mean, covariance) at its input. The library maps them over a batch.

    Derive a class from this one and define `distribution` for a family of your own. Parameters of
    the family are fields of the class; see `streamgp.parameters.positive`.

    Attributes:
        conjugate: Whether the update of q(f) does not depend on q(f), so that one round is exact.
        log_concave: Whether log p(y | f) is concave in f. If not, precisions are made positive.
        ordered: Whether one observation can be larger than another.
        observation_dim: How many numbers one observation has.
        classes: How many classes there are; 0 if observations are not classes.

    Example:
        >>> import jax.numpy as jnp, numpyro.distributions as dist, streamgp as sgp
        >>> class Laplace(sgp.Likelihood):
        ...     def distribution(self, f):
        ...         return dist.Laplace(f[..., 0], 0.1)
        >>> sgp.ContinualGP(Laplace()).channels
        ('y',)
    """

    conjugate: ClassVar[bool] = False
    log_concave: ClassVar[bool] = False
    ordered: ClassVar[bool] = True
    observation_dim: ClassVar[int] = 1
    classes: ClassVar[int] = 0

    @property
    def latents(self) -> int:
        """The number J of latent parameters."""
        return 1

    @abstractmethod
    def distribution(self, f: Float[Array, "*b J"]) -> Distribution:
        """The distribution of y given f.

        Args:
            f: Latent parameters; the last axis has length J, and the others are a batch.

        Returns:
            A numpyro distribution with the shape of the batch.
        """

    # -- starting from data ------------------------------------------------------------------

    def start(self, y: Float[np.ndarray, " N"]) -> "Likelihood":
        """The same likelihood, with every parameter that was left out filled in.

        Args:
            y: The first observations of the channel. There may be none.

        Returns:
            A likelihood whose parameters can be trained.
        """
        return self

    def location(self, y: Float[np.ndarray, " N"]) -> tuple[np.ndarray, np.ndarray]:
        """Where each latent parameter starts, and how much it is expected to vary.

        f = offset + scale · (mixed latent functions). The latent functions are then of order one,
        whatever the units of y.

        Args:
            y: The first observations of the channel. There may be none.

        Returns:
            The offset and the scale of each latent parameter.
        """
        return np.zeros(self.latents), np.ones(self.latents)

    @property
    def support(self) -> Any:
        """The numpyro constraint that observations satisfy. It depends only on static settings."""
        structure = jax.tree.structure(self)
        if structure not in _SUPPORTS:
            ready = paramax.unwrap(self.start(np.zeros(0)))
            _SUPPORTS[structure] = ready.distribution(jnp.zeros(self.latents)).support
        return _SUPPORTS[structure]

    # -- inference ---------------------------------------------------------------------------

    def log_density(self, y: Float[Array, ""], f: Float[Array, " J"]) -> Float[Array, ""]:
        """log p(y | f)."""
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
        """E_q[∇ log p] and −E_q[∇∇ log p], the latter made positive semi-definite.

        By Bonnet's and Price's theorems these are ∂E/∂m and −2·∂E/∂S, with E the expected log
        density: its natural gradient. The Hessians are averaged over the nodes of the quadrature,
        so that the precision of a log-concave family stays positive. Differentiating through a
        Cholesky factor would not ensure that.
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
        """The gradient (at `mean`) and the precision of the site that the E step begins with.

        By default both are zero.
        """
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
        """Whether each observation is in the support."""
        finite = np.isfinite(y)
        return finite & np.asarray(self.support(np.where(finite, y, 0.0)))


def site_at_mode(
    mode: Float[Array, ""],
    weight: Float[Array, ""],
    distance: Float[Array, ""],
    mean: Float[Array, ""],
    variance: Float[Array, ""],
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """A first site for densities with an exponential in f, if q(f) is on the steep side.

    From there, Newton's steps come down by only one log unit per round. A row that is far off
    therefore begins at its own mode.

    Args:
        mode: The f at which the density of y is largest.
        weight: The precision of the density there.
        distance: How far the expected exponential is above the one that fits y, in log units.
        mean: The mean of q(f).
        variance: The variance of q(f).

    Returns:
        The gradient of the site at the mean, and its precision. Both are zero if q(f) is near.
    """
    variance = variance + 1e-12
    firm = weight + distance / variance  # reduces the distance to about one
    precision = jnp.where(distance > _FAR, firm, 0.0)
    return precision * (mode - mean), precision
