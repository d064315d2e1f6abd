"""Shares of K parts that add up to one."""

import dataclasses
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy import special

from streamgp.likelihoods import softmax
from streamgp.likelihoods.algebra import log_of
from streamgp.likelihoods.arrays import ByName, Latent, Observed, Slopes, Values
from streamgp.likelihoods.classes import Softmax
from streamgp.likelihoods.support import Simplex
from streamgp.numerics.special import trigamma
from streamgp.parameters import Parameter, positive
from streamgp.registry import storable

_LEAST = np.exp(-100.0)  # share that is taken for none
_TINY = 1e-300


class _Parts(NamedTuple):
    """The shares π = softmax(f), α = concentration·π, and where π was not too small for that."""

    p: Latent
    alpha: Latent
    inside: Bool[np.ndarray, "*#b J"]


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Dirichlet(Softmax):
    """Shares of several parts that add up to one.

    y is K positive numbers whose sum is 1. There is one latent parameter per part. The mean is
    μ = softmax(f), and a share has variance μ·(1 − μ)/(1 + concentration).

    Args:
        classes: The number K of parts; at least 2. There is no default.
        concentration: How closely y follows its mean; positive. By default it starts from the
            spread of the channel's first data. It is learned, unless it is given as `fixed(…)`.

    Raises:
        ConfigurationError: If `classes` is not a whole number of at least 2.
    """

    concentration: Parameter = None

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f"share_{k}" for k in range(self.classes))

    support = Simplex()

    def start(self, y: Observed) -> "Dirichlet":
        """With half of the first data's variance taken for noise."""
        y = self._rows(y)
        mean, variance = (np.mean(y, 0), np.sum(np.var(y, 0))) if len(y) else (np.ones(1), 0.0)
        excess = 2 * np.sum(mean * (1 - mean)) / variance - 1 if variance > 0 else 10.0
        start = positive(self.concentration, np.clip(excess, 1.0, 1e4))
        return Dirichlet(self.classes, start)

    def location(self, y: Observed) -> tuple[np.ndarray, np.ndarray]:
        y = self._rows(y)
        mean = np.maximum(np.mean(y, axis=0), 1e-6) if len(y) else np.ones(self.classes)
        return np.log(mean) - np.mean(np.log(mean)), np.ones(self.classes)

    def valid(self, y: Observed) -> Bool[np.ndarray, " N"]:
        finite = np.all(np.isfinite(y), axis=-1)
        return finite & self.support.contains(np.where(finite[:, None], y, 0.0))

    def log_density(self, y: Observed, f: Latent) -> Values:
        _, alpha, _ = self._parts(f)
        each = (alpha - 1) * log_of(y) - special.gammaln(alpha)
        return np.sum(each, axis=-1) + special.gammaln(self.concentration)

    def gradient(self, y: Observed, f: Latent) -> Latent:
        p, alpha, inside = self._parts(f)
        push = np.where(inside, alpha * (log_of(y) - special.psi(alpha)), 0.0)
        return push - p * np.sum(push, axis=-1, keepdims=True)

    def derivatives(self, y: Observed, f: Latent) -> Slopes:
        """By dα_k/df_j = α_k·(δ_kj − π_j), twice."""
        p, alpha, inside = self._parts(f)
        push = np.where(inside, alpha * (log_of(y) - special.psi(alpha)), 0.0)
        turn = np.where(inside, push - alpha**2 * trigamma(alpha), 0.0)
        total = np.sum(push, axis=-1, keepdims=True)
        both = total + np.sum(turn, axis=-1, keepdims=True)
        cross = p[..., :, None] * turn[..., None, :]
        hessian = both[..., None] * p[..., :, None] * p[..., None, :]
        hessian -= cross + np.swapaxes(cross, -1, -2)
        hessian += (turn - p * total)[..., None] * np.eye(self.classes)
        return push - p * total, hessian

    def parameter_gradient(self, y: Observed, f: Latent) -> ByName:
        _, alpha, _ = self._parts(f)
        each = alpha / self.concentration * (log_of(y) - special.psi(alpha))
        return {"concentration": np.sum(each, axis=-1) + special.psi(self.concentration)}

    def moments(self, f: Latent) -> tuple[np.ndarray, np.ndarray]:
        """Of each share."""
        p = softmax.shares(f)
        return p, p * (1 - p) / (1 + self.concentration)

    def sample(self, f: Latent, rng: np.random.Generator) -> np.ndarray:
        """By gamma variates in logarithms, so that small shares do not round to zero."""
        _, alpha, _ = self._parts(f)
        log_uniform = np.log(rng.random(alpha.shape) + _TINY)
        log_gamma = np.log(rng.gamma(alpha + 1)) + log_uniform / alpha
        return np.maximum(softmax.shares(log_gamma), _TINY)

    def _rows(self, y: Observed) -> Float[np.ndarray, "N C"]:
        return y if y.size else y.reshape(0, self.classes)

    def _parts(self, f: Latent) -> _Parts:
        p = softmax.shares(f)
        return _Parts(p, self.concentration * np.maximum(p, _LEAST), p >= _LEAST)
