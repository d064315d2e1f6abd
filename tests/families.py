"""Every family of observations with its textbook density, for the tests of all of them.

The densities are SciPy's, or written out from the textbook, so they share nothing with the library.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import special, stats

import streamgp as sgp
from streamgp.likelihoods import support
from streamgp.parameters import unwrap


@dataclasses.dataclass(frozen=True, eq=False)
class Waiting(sgp.Likelihood):
    """Waiting times with rate exp(f): what a user has to write."""

    @property
    def support(self):
        return support.NonNegative()

    def log_density(self, y, f):
        return f[..., 0] - y * np.exp(f[..., 0])

    def moments(self, f):
        return np.exp(-f[..., 0]), np.exp(-2 * f[..., 0])

    def cdf(self, y, f):
        return -np.expm1(-np.maximum(y, 0.0) * np.exp(f[..., 0]))

    def sample(self, f, rng):
        return rng.exponential(np.exp(-f[..., 0]))


@dataclasses.dataclass(frozen=True, eq=False)
class Regular(sgp.Likelihood):
    """Waiting times of mean exp(f₀) that are the more regular the larger f₁."""

    @property
    def latents(self):
        return 2

    @property
    def support(self):
        return support.Positive()

    def log_density(self, y, f):
        shape, rate = self._both(f)
        y = np.maximum(y, 1e-300)
        return shape * np.log(rate) + (shape - 1) * np.log(y) - rate * y - special.gammaln(shape)

    def moments(self, f):
        return np.exp(f[..., 0]), np.exp(2 * f[..., 0] - f[..., 1])

    def cdf(self, y, f):
        shape, rate = self._both(f)
        return special.gammainc(shape, rate * np.maximum(y, 0.0))

    def sample(self, f, rng):
        shape, rate = self._both(f)
        return rng.gamma(shape, 1 / rate)

    def _both(self, f):
        return np.exp(f[..., 1]), np.exp(f[..., 1] - f[..., 0])


Row = float | tuple[float, ...]  # an observation: one number, or several


class Family(NamedTuple):
    likelihood: sgp.Likelihood
    log_density: Callable  # (y, f of shape (K, J)) → (K,)
    draw: Callable | None  # (generator, f of shape (..., J)) → (...); None if y is not all it takes
    observed: tuple[Row, ...]
    impossible: tuple[Row, ...]
    classes: int = 0
    centre: float = 0.0  # of the latent means it is tried at
    width: float = 1.0  # of the latent variances; less where y has hardly a fourth moment
    ordered: bool = True

    @property
    def indicators(self) -> bool:
        """Whether `mean` and `variance` are those of the classes' indicators."""
        return isinstance(self.likelihood, sgp.Categorical | sgp.Ordinal)

    @property
    def started(self) -> sgp.Likelihood:
        return started(self.likelihood)

    def rows(self, count: int) -> np.ndarray:
        """That many observations, in turn."""
        values = np.asarray(self.observed, float)
        return np.resize(values, (count, *values.shape[1:]))


def started(likelihood: sgp.Likelihood) -> sgp.Likelihood:
    return unwrap(likelihood.start(np.zeros(0)))


def _log_shares(f):
    return f - np.log(np.sum(np.exp(f), axis=-1, keepdims=True))


def _poisson(y, f):
    return stats.poisson.logpmf(y, np.exp(f[:, 0]))


def below(f):
    """P(y < k) of the four ordered classes k, and one."""
    cutpoints = np.array([-np.inf, -1.0, -0.3, 1.2, np.inf])
    return special.expit(cutpoints - f[..., :1])


def _multinomial(y, f):
    """Of all counts together: the multinomial coefficient, and the chance of one such order."""
    ways = special.gammaln(np.sum(y) + 1) - np.sum(special.gammaln(np.asarray(y) + 1))
    return ways + _log_shares(f) @ np.asarray(y)


def _dirichlet(y, f, concentration):
    alpha = concentration * np.exp(_log_shares(f))
    each = (alpha - 1) * np.log(y) - special.gammaln(alpha)
    return np.sum(each, axis=-1) + special.gammaln(concentration)


def _drawn_shares(rng, f, concentration):
    gammas = rng.gamma(concentration * np.exp(_log_shares(f))) + 1e-300
    return gammas / np.sum(gammas, axis=-1, keepdims=True)


def _censored(distribution: Callable) -> Callable:
    """The log density of y[0], or of its being a bound, given the distribution of y by f."""

    def log_density(y, f):
        known = distribution(f)
        return {0: known.logpdf, -1: known.logcdf, 1: known.logsf}[int(y[1])](y[0])

    return log_density


def _weighted_bound(y, f):
    value, error, side, weight = y
    noisy = _censored(lambda f: stats.norm(f[:, 0], np.hypot(0.5, error)))
    return weight * noisy((value, side), f)


GAPS = np.array([0.7, 1.5])

FAMILIES = {
    "gaussian": Family(
        sgp.Gaussian(noise=0.5),
        lambda y, f: stats.norm.logpdf(y, f[:, 0], 0.5),
        lambda rng, f: rng.normal(f[..., 0], 0.5),
        observed=(-1.0, 0.2, 3.0),
        impossible=(),
    ),
    "bernoulli": Family(
        sgp.Bernoulli(),
        lambda y, f: special.log_expit((2 * y - 1) * f[:, 0]),
        lambda rng, f: rng.uniform(size=f.shape[:-1]) < special.expit(f[..., 0]),
        observed=(0.0, 1.0),
        impossible=(-1.0, 0.5, 2.0),
        classes=2,
    ),
    "probit": Family(
        sgp.Bernoulli(link="probit"),
        lambda y, f: stats.norm.logcdf((2 * y - 1) * f[:, 0]),
        lambda rng, f: rng.normal(size=f.shape[:-1]) < f[..., 0],
        observed=(0.0, 1.0),
        impossible=(-1.0, 0.5, 2.0),
        classes=2,
    ),
    "poisson": Family(
        sgp.Poisson(),
        _poisson,
        lambda rng, f: rng.poisson(np.exp(f[..., 0])),
        observed=(0.0, 1.0, 6.0),
        impossible=(-1.0, 0.5),
    ),
    # The rate's uncertainty here is far wider than a Poisson of that rate: a hard case for nodes.
    "poisson-large": Family(
        sgp.Poisson(),
        _poisson,
        lambda rng, f: rng.poisson(np.exp(f[..., 0])),
        observed=(600.0, 1100.0, 2000.0),
        impossible=(-1.0, 1100.5),
        centre=7.0,
    ),
    "categorical": Family(
        sgp.Categorical(3),
        lambda y, f: _log_shares(f)[:, int(y)],
        lambda rng, f: np.argmax(f + rng.gumbel(size=f.shape), axis=-1),
        observed=(0.0, 1.0, 2.0),
        impossible=(-1.0, 0.5, 3.0),
        classes=3,
        ordered=False,
    ),
    "heteroscedastic": Family(
        sgp.HeteroscedasticGaussian(),
        lambda y, f: stats.norm.logpdf(y, f[:, 0], np.exp(f[:, 1])),
        lambda rng, f: rng.normal(f[..., 0], np.exp(f[..., 1])),
        observed=(-1.8, -0.2, 3.0),
        impossible=(),
        width=0.3,
    ),
    "student": Family(
        sgp.StudentT(scale=0.5, df=5.0),
        lambda y, f: stats.t.logpdf(y, 5.0, f[:, 0], 0.5),
        lambda rng, f: f[..., 0] + 0.5 * rng.standard_t(5.0, f.shape[:-1]),
        observed=(-1.0, 0.2, 3.0, 30.0),
        impossible=(),
    ),
    # Far narrower than the latent is known: nodes that follow q(f) miss it.
    "student-narrow": Family(
        sgp.StudentT(scale=0.03),
        lambda y, f: stats.t.logpdf(y, 4.0, f[:, 0], 0.03),
        lambda rng, f: f[..., 0] + 0.03 * rng.standard_t(4.0, f.shape[:-1]),
        observed=(-0.3, 0.2, 1.0),
        impossible=(),
    ),
    "exponential": Family(
        sgp.Exponential(),
        lambda y, f: stats.expon.logpdf(y, scale=np.exp(f[:, 0])),
        lambda rng, f: rng.exponential(np.exp(f[..., 0])),
        observed=(0.1, 1.0, 4.0),
        impossible=(-1.0, 0.0),
        width=0.5,
    ),
    "gamma": Family(
        sgp.Gamma(shape=2.5),
        lambda y, f: stats.gamma.logpdf(y, 2.5, scale=np.exp(f[:, 0]) / 2.5),
        lambda rng, f: rng.gamma(2.5, np.exp(f[..., 0]) / 2.5),
        observed=(0.1, 1.0, 4.0),
        impossible=(-1.0, 0.0),
        width=0.5,
    ),
    "beta": Family(
        sgp.Beta(concentration=30.0),
        lambda y, f: stats.beta.logpdf(
            y, 30.0 * special.expit(f[:, 0]), 30.0 * special.expit(-f[:, 0])
        ),
        lambda rng, f: rng.beta(30.0 * special.expit(f[..., 0]), 30.0 * special.expit(-f[..., 0])),
        observed=(0.1, 0.5, 0.9),
        impossible=(-1.0, 0.0, 1.0, 2.0),
    ),
    "binomial": Family(
        sgp.Binomial(7),
        lambda y, f: stats.binom.logpmf(y, 7, special.expit(f[:, 0])),
        lambda rng, f: rng.binomial(7, special.expit(f[..., 0])),
        observed=(0.0, 2.0, 7.0),
        impossible=(-1.0, 0.5, 8.0),
    ),
    "negative-binomial": Family(
        sgp.NegativeBinomial(concentration=3.0),
        lambda y, f: stats.nbinom.logpmf(y, 3.0, 3.0 / (3.0 + np.exp(f[:, 0]))),
        lambda rng, f: rng.negative_binomial(3.0, 3.0 / (3.0 + np.exp(f[..., 0]))),
        observed=(0.0, 1.0, 6.0),
        impossible=(-1.0, 0.5),
        width=0.5,
    ),
    "ordinal": Family(
        sgp.Ordinal(4, first=-1.0, gaps=GAPS),
        lambda y, f: np.log(np.diff(below(f), axis=-1)[:, int(y)]),
        lambda rng, f: np.sum(rng.uniform(size=(*f.shape[:-1], 1)) > below(f)[..., 1:], axis=-1),
        observed=(0.0, 1.0, 2.0, 3.0),
        impossible=(-1.0, 0.5, 4.0),
        classes=4,
    ),
    "log-normal": Family(
        sgp.LogNormal(noise=0.5),
        lambda y, f: stats.lognorm.logpdf(y, 0.5, scale=np.exp(f[:, 0])),
        lambda rng, f: np.exp(rng.normal(f[..., 0], 0.5)),
        observed=(0.1, 1.0, 4.0),
        impossible=(-1.0, 0.0),
        width=0.3,
    ),
    "multinomial": Family(
        sgp.Multinomial(3),
        _multinomial,
        lambda rng, f: np.eye(3)[np.argmax(f + rng.gumbel(size=f.shape), axis=-1)],
        observed=((0, 1, 2), (4, 0, 0), (0, 0, 0), (0, 0, 1)),
        impossible=((1, 0.5, 0), (-1, 2, 0)),
        classes=3,
        ordered=False,
    ),
    "dirichlet": Family(
        sgp.Dirichlet(3, concentration=6.0),
        functools.partial(_dirichlet, concentration=6.0),
        functools.partial(_drawn_shares, concentration=6.0),
        observed=((0.2, 0.3, 0.5), (0.9, 0.06, 0.04), (1e-3, 0.4, 0.599)),
        impossible=((1.0, 0.0, 0.0), (0.5, 0.6, 0.1), (1.2, -0.4, 0.2)),
        classes=3,
        width=0.3,
        ordered=False,
    ),
    # What observations say of themselves is in further columns.
    "poisson, exposure": Family(
        sgp.Poisson(exposure=True),
        lambda y, f: stats.poisson.logpmf(y[0], y[1] * np.exp(f[:, 0])),
        None,
        observed=((0, 0.5), (1, 2.0), (6, 7.0), (6, 30.0)),
        impossible=((1, 0.0), (1, -1.0), (1.5, 1.0), (-1, 1.0)),
    ),
    "binomial, trials": Family(
        sgp.Binomial(None),
        lambda y, f: stats.binom.logpmf(y[0], y[1], special.expit(f[:, 0])),
        None,
        observed=((0, 6), (1, 9), (6, 40), (6, 7), (1, 1)),
        impossible=((3, 2), (0, 0), (1, 2.5), (0.5, 2), (-1, 2)),
    ),
    "gaussian, error": Family(
        sgp.Gaussian(noise=0.5, error=True),
        lambda y, f: stats.norm.logpdf(y[0], f[:, 0], np.hypot(0.5, y[1])),
        None,
        observed=((-1, 0), (0.2, 0.3), (-1, 2), (0.2, 0)),
        impossible=((1, -1.0),),
    ),
    "weighted": Family(
        sgp.Weighted(sgp.Gamma(shape=2.5)),
        lambda y, f: y[1] * stats.gamma.logpdf(y[0], 2.5, scale=np.exp(f[:, 0]) / 2.5),
        None,
        observed=((0.1, 0), (1, 0.5), (4, 3), (0.1, 1)),
        impossible=((1, -0.5), (-1, 1)),
        width=0.3,
    ),
    "weighted classes": Family(
        sgp.Weighted(sgp.Ordinal(4, first=-1.0, gaps=GAPS)),
        lambda y, f: y[1] * np.log(np.diff(below(f), axis=-1)[:, int(y[0])]),
        None,
        observed=((0, 0.5), (1, 3), (2, 1), (3, 0.5)),
        impossible=((1, -0.5), (4, 1)),
    ),
    "censored": Family(
        sgp.Censored(sgp.Gaussian(noise=0.5)),
        _censored(lambda f: stats.norm(f[:, 0], 0.5)),
        None,
        observed=((-2, 0), (0.2, 1), (3, -1), (-1, -1), (1.5, 1)),
        impossible=((1, 0.5), (1, 2)),
        width=0.3,
    ),
    "censored log-normal": Family(
        sgp.Censored(sgp.LogNormal(noise=0.5)),
        _censored(lambda f: stats.lognorm(0.5, scale=np.exp(f[:, 0]))),
        None,
        observed=((0.3, 0), (1, 1), (4, -1), (0.5, -1), (2, 1)),
        impossible=((1, 0.5), (-1, 0)),
        width=0.3,
    ),
    "censored student": Family(
        sgp.Censored(sgp.StudentT(scale=0.5, df=4.0)),
        _censored(lambda f: stats.t(4.0, f[:, 0], 0.5)),
        None,
        observed=((-2, 0), (0.2, 1), (3, -1), (-1, -1), (1.5, 1)),
        impossible=((1, 0.5),),
        width=0.3,
    ),
    "censored exponential": Family(
        sgp.Censored(sgp.Exponential()),
        _censored(lambda f: stats.expon(scale=np.exp(f[:, 0]))),
        None,
        observed=((0.1, 0), (1, 1), (4, -1), (0.2, -1), (4, 1)),
        impossible=((1, 0.5), (0, 0)),
        width=0.5,
    ),
    "censored gamma": Family(
        sgp.Censored(sgp.Gamma(shape=2.5)),
        _censored(lambda f: stats.gamma(2.5, scale=np.exp(f[:, 0]) / 2.5)),
        None,
        observed=((0.1, 0), (0.4, 1), (4, -1), (0.4, -1), (0.2, 1)),
        impossible=((1, 0.5), (0, 0)),
        width=0.3,
    ),
    "weighted, censored, error": Family(
        sgp.Weighted(sgp.Censored(sgp.Gaussian(noise=0.5, error=True))),
        _weighted_bound,
        None,
        observed=((-2, 0.1, 0, 1), (0.2, 0.9, 1, 2.5), (3, 0.1, -1, 0), (-1, 0.9, -1, 0.7)),
        impossible=((1, -1, 0, 1), (1, 1, 0.5, 1), (1, 1, 0, -1)),
        width=0.3,
    ),
    "a user's": Family(
        Waiting(),
        lambda y, f: stats.expon.logpdf(y, scale=np.exp(-f[:, 0])),
        lambda rng, f: rng.exponential(np.exp(-f[..., 0])),
        observed=(0.1, 1.0, 4.0),
        impossible=(-1.0,),
    ),
    "a user's, of two latents": Family(
        Regular(),
        lambda y, f: stats.gamma.logpdf(y, np.exp(f[:, 1]), scale=np.exp(f[:, 0] - f[:, 1])),
        lambda rng, f: rng.gamma(np.exp(f[..., 1]), np.exp(f[..., 0] - f[..., 1])),
        observed=(0.1, 1.0, 4.0),
        impossible=(-1.0, 0.0),
        width=0.3,
    ),
}
