"""Counts in each of K classes."""

import dataclasses
from abc import abstractmethod

import numpy as np
from jaxtyping import Float
from scipy import special

from streamgp.likelihoods import quadrature, softmax
from streamgp.likelihoods.arrays import Covariances, Latent, Means, Observed, Slopes, Values
from streamgp.likelihoods.base import Expected
from streamgp.likelihoods.classes import Softmax
from streamgp.likelihoods.support import Counts
from streamgp.registry import storable


@dataclasses.dataclass(frozen=True, eq=False)
class SoftmaxCounts(Softmax):
    """What `Multinomial` and `Categorical` share: counts c of classes with chances softmax(f).

    log p = c·f − n·log Σ exp f + what does not depend on f, n the total of the counts.
    """

    log_concave = True

    @abstractmethod
    def _counts(self, y: Observed) -> Latent:
        """c, row by row."""

    @abstractmethod
    def _log_ways(self, counts: Latent) -> Values | float:
        """What does not depend on f."""

    def location(self, y: Observed) -> tuple[np.ndarray, np.ndarray]:
        counts = np.sum(self._counts(y), axis=0) + 1.0
        log_share = np.log(counts / counts.sum())
        return log_share - log_share.mean(), np.ones(self.classes)

    def log_density(self, y: Observed, f: Latent) -> Values:
        counts = self._counts(y)
        relative = f - softmax.log_total(f)[..., None]
        return np.sum(counts * relative, axis=-1) + self._log_ways(counts)

    def derivatives(self, y: Observed, f: Latent) -> Slopes:
        counts, p = self._counts(y), softmax.shares(f)
        total = np.sum(counts, axis=-1)[..., None]
        return counts - total * p, -total[..., None] * softmax.bend(p)

    def gradient(self, y: Observed, f: Latent) -> Latent:
        counts = self._counts(y)
        return counts - np.sum(counts, axis=-1)[..., None] * softmax.shares(f)

    def expected(self, y: Observed, mean: Means, covariance: Covariances) -> Expected:
        """The part that is linear in f has no error, and its slope none of the nodes'."""
        counts = self._counts(y)
        total = np.sum(counts, axis=-1)
        f, weights = quadrature.spread(mean, covariance)
        log_totals, p = softmax.both(f)
        log_total = quadrature.average(weights, log_totals)
        by_mean, by_covariance = quadrature.expectation_slopes(
            mean, covariance, p, lambda rows: softmax.average_bend(weights, p[:, rows])[1]
        )
        value = np.sum(counts * mean, axis=-1) - total * log_total + self._log_ways(counts)
        by_mean = counts - total[:, None] * by_mean
        return Expected(value, by_mean, -total[:, None, None] * by_covariance)

    def curvature(self, y: Observed, mean: Means, covariance: Covariances) -> Slopes:
        """E[c − nπ] and n·E[diag(π) − ππᵀ], π = softmax(f)."""
        counts = self._counts(y)
        total = np.sum(counts, axis=-1)[:, None]
        f, weights = quadrature.spread(mean, covariance)
        average, bend = softmax.average_bend(weights, softmax.shares(f))
        return counts - total * average, total[..., None] * bend

    def moments(self, f: Latent) -> tuple[np.ndarray, np.ndarray]:
        """Of the K indicators of the classes in one trial."""
        p = softmax.shares(f)
        return p, p * (1 - p)

    def _drawn(self, f: Latent, rng: np.random.Generator) -> Values:
        """The class of one trial."""
        return np.argmax(f + rng.gumbel(size=f.shape), axis=-1).astype(float)


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Multinomial(SoftmaxCounts):
    """Counts in each of several classes.

    y is K whole numbers from 0 on: how many of an observation's trials ended in each class. There
    is one latent parameter per class, and the probabilities of the classes are softmax(f).
    Observations may have different totals, and these are taken as given: predictions are of one
    trial.

    Args:
        classes: The number K of classes; at least 2. There is no default.

    Raises:
        ConfigurationError: If `classes` is not a whole number of at least 2.

    Examples:
        >>> import numpy as np, streamgp as sgp
        >>> model = sgp.ContinualGP({"votes": sgp.Multinomial(3)})
        >>> report = model.update({"votes": (np.arange(4.0), np.tile([5.0, 2.0, 1.0], (4, 1)))})
        >>> model.predict([1.5], "votes").mean.shape
        (1, 3)
    """

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f"count_{k}" for k in range(self.classes))

    support = Counts()

    def valid(self, y: Observed) -> np.ndarray:
        return np.all(np.isfinite(y), axis=-1) & self.support.contains(y)

    def sample(self, f: Latent, rng: np.random.Generator) -> np.ndarray:
        return indicators(self._drawn(f, rng), self.classes)

    def _counts(self, y: Observed) -> Latent:
        return y if y.size else y.reshape(0, self.classes)

    def _log_ways(self, counts: Latent) -> Values:
        each = np.sum(special.gammaln(counts + 1), axis=-1)
        return special.gammaln(np.sum(counts, axis=-1) + 1) - each


def indicators(y: Values, classes: int) -> Float[np.ndarray, "*#b K"]:
    return (y[..., None] == np.arange(classes)).astype(float)
