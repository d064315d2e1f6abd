"""StudentT: real numbers with outliers."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float

from streamgp.likelihoods.base import Likelihood
from streamgp.likelihoods.gaussian import Gaussian
from streamgp.parameters import Parameter, fixed, positive
from streamgp.registry import storable

_LOG_PRECISIONS = np.arange(-70 * 14, 4 * 14 + 1) / 14  # includes 0, the normal limit df → ∞
_UNIT = np.linspace(0.0, 1.0, 96)


@storable
class StudentT(Likelihood):
    """Real numbers with outliers.

    y is any real number: y = f + noise, where f is the latent parameter and the noise has Student's
    t distribution. Outliers have little influence on what is learned.

    Args:
        scale: The scale of the noise, in the units of y; positive. By default it starts at 0.3
            times the spread of the channel's first data, measured by their quartiles. It is
            learned, unless it is given as `fixed(…)`.
        df: The degrees of freedom; positive. Fewer of them mean heavier tails. By default they are
            fixed at 4. A number that is given is where learning starts, and `fixed(…)` keeps it.
            The variance of y is infinite for `df` up to 2.

    Example:
        >>> import streamgp as sgp
        >>> sgp.ContinualGP({"price": sgp.StudentT(df=sgp.fixed(3.0))}).channels
        ('price',)
    """

    scale: Parameter = None
    df: Parameter = None

    def distribution(self, f: Float[Array, "*b J"]) -> dist.Distribution:
        return dist.StudentT(self.df, f[..., 0], self.scale)

    def start(self, y: Float[np.ndarray, " N"]) -> "StudentT":
        _, scale = self.location(y)
        return StudentT(positive(self.scale, 0.3 * scale[0]), positive(self.df, fixed(4.0)))

    def location(self, y: Float[np.ndarray, " N"]) -> tuple[np.ndarray, np.ndarray]:
        """As in the base class: the median and the quartiles, which outliers do not move."""
        offset, scale = Gaussian().location(y)
        low, middle, high = np.quantile(y, [0.25, 0.5, 0.75]) if len(y) else (0.0, 0.0, 0.0)
        if high - low <= 1e-12 * max(abs(low), abs(high)):
            return offset, scale
        return np.array([middle]), np.array([(high - low) / 1.349])  # of a normal: 1.349 σ

    def expected_log_density(
        self, y: Float[Array, ""], mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> Float[Array, ""]:
        peak = self.log_density(mean[0], mean)
        square = _expected_log1p(y - mean[0], covariance[0, 0], self.df * self.scale**2)
        return peak - 0.5 * (self.df + 1) * square

    def curvature(
        self, y: Float[Array, ""], mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> tuple[Float[Array, " J"], Float[Array, "J J"]]:
        slope, half_bend = jax.grad(self.expected_log_density, (1, 2))(y, mean, covariance)
        return slope, jnp.maximum(-2 * half_bend, 0.0)

    def log_predictive(
        self, y: Float[Array, ""], mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> Float[Array, ""]:
        given, log_weights = self._given_precision(mean, covariance)
        return jax.nn.logsumexp(log_weights + given.log_prob(y))

    def predictive_cdf(
        self, y: Float[Array, ""], mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> Float[Array, ""]:
        given, log_weights = self._given_precision(mean, covariance)
        return jnp.dot(jnp.exp(log_weights), given.cdf(y))

    def _given_precision(
        self, mean: Float[Array, " J"], covariance: Float[Array, "J J"]
    ) -> tuple[dist.Distribution, Float[Array, " K"]]:
        """y as a mixture of normals over the precision, with f integrated out; and log weights.

        This is accurate for any width of q(f) and any distance of y.
        """
        half, u = 0.5 * self.df, _LOG_PRECISIONS
        log_weights = half * (u - np.exp(u))  # of log τ, τ ~ Gamma(df/2, df/2)
        total = jnp.sqrt(covariance[0, 0] + self.scale**2 * np.exp(-u))
        return dist.Normal(mean[0], total), jax.nn.log_softmax(log_weights)


def _expected_log1p(
    residual: Float[Array, ""], variance: Float[Array, ""], width: Float[Array, ""]
) -> Float[Array, ""]:
    """E[log(1 + r²/width)] for r ~ N(residual, variance), accurate for any variance.

    It uses log(1 + x) = ∫ (1 − exp(−ux))·exp(−u) du/u, in which r can be integrated out. As a
    function of log u the integrand is smooth and falls off on both sides, so that the trapezoidal
    rule is accurate to rounding.
    """
    distance, spread = residual**2 / width, variance / width
    low, high = -24.0 - jax.lax.stop_gradient(jnp.log1p(distance + spread)), 3.7
    u = jnp.exp(low + (high - low) * _UNIT)
    shrink = 1 + 2 * u * spread
    lost = -jnp.expm1(-0.5 * jnp.log(shrink) - u * distance / shrink)
    return (high - low) * _UNIT[1] * jnp.sum(lost * jnp.exp(-u))
