"""The collapsed sparse GP of Titsias (2009) on all rows at once.

It is a reference for streams with several inputs: a squared exponential kernel with one lengthscale
per input, a learned constant mean, and inducing points that are optimised with everything else.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.cluster.vq import kmeans2
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize

_JITTER = 1e-8  # relative to the variance of the kernel
_BLOCK = 4096  # rows that are computed together
_CLUSTERED = 8000  # the largest number of rows that k-means sees
_WIDEST = 12.0  # the largest size of the logarithm of a hyperparameter


class Parameters(NamedTuple):
    """Hyperparameters and inducing points."""

    lengthscales: Float[np.ndarray, " P"]
    variance: float
    noise: float  # the variance of the noise
    mean: float
    points: Float[np.ndarray, "M P"]

    def vector(self) -> Float[np.ndarray, " T"]:
        """Everything as one vector. Positive numbers are logarithms."""
        positive = np.append(self.lengthscales, [self.variance, self.noise])
        return np.concatenate([np.log(positive), [self.mean], self.points.ravel()])

    def replaced(self, vector: Float[np.ndarray, " T"]) -> "Parameters":
        """The parameters of a vector. One without points leaves the points as they are."""
        inputs = len(self.lengthscales)
        positive, rest = np.exp(vector[: inputs + 2]), vector[inputs + 3 :]
        return Parameters(
            positive[:inputs],
            float(positive[inputs]),
            float(positive[inputs + 1]),
            float(vector[inputs + 2]),
            rest.reshape(self.points.shape) if len(rest) else self.points,
        )

    def kernel(
        self, a: Float[np.ndarray, "M P"], b: Float[np.ndarray, "N P"]
    ) -> Float[np.ndarray, "M N"]:
        a, b = a / self.lengthscales, b / self.lengthscales
        squares = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1) - 2 * a @ b.T
        return self.variance * np.exp(-0.5 * np.maximum(squares, 0))

    def of_points(self) -> Float[np.ndarray, "M M"]:
        """The covariance of the function at the inducing points."""
        nugget = _JITTER * self.variance * np.eye(len(self.points))
        return self.kernel(self.points, self.points) + nugget


@dataclass(frozen=True)
class Posterior:
    """What the points know of all rows.

    `root` is the Cholesky factor of the points' covariance and `inner` that of the posterior
    precision of the whitened points, whose mean is `centre`.
    """

    parameters: Parameters
    root: Float[np.ndarray, "M M"]
    inner: Float[np.ndarray, "M M"]
    centre: Float[np.ndarray, " M"]

    def predict(
        self, x: Float[np.ndarray, "N P"]
    ) -> tuple[Float[np.ndarray, " N"], Float[np.ndarray, " N"]]:
        """Mean and variance of observations."""
        own = self.parameters
        means, variances = [], []
        for rows in _blocks(len(x)):
            features = _solved(self.root, own.kernel(own.points, x[rows]))
            means.append(own.mean + features.T @ self.centre)
            explained = (features**2).sum(axis=0) - (_solved(self.inner, features) ** 2).sum(axis=0)
            variances.append(own.variance + own.noise - explained)
        return np.concatenate(means), np.concatenate(variances)


class CollapsedGP:
    """Fits the bound by L-BFGS: first from k-means points, then points and the rest together."""

    def __init__(self, points: int = 128, rounds: int = 4, each: int = 40, together: int = 200):
        self._count, self._rounds, self._each, self._together = points, rounds, each, together
        self.bound = np.nan  # per row
        self._posterior: Posterior | None = None

    def fit(self, x: Float[np.ndarray, "N P"], y: Float[np.ndarray, " N"]) -> "CollapsedGP":
        parameters = _start(x, y, self._count)
        for _ in range(self._rounds):
            parameters = parameters._replace(points=clustered(x, parameters, self._count))
            parameters, _bound = _climbed(parameters, x, y, self._each, move=False)
        parameters, self.bound = _climbed(parameters, x, y, self._together, move=True)
        self._posterior = posterior(parameters, x, y)
        return self

    @property
    def parameters(self) -> Parameters:
        return self._fitted.parameters

    def predict(
        self, x: Float[np.ndarray, "N P"]
    ) -> tuple[Float[np.ndarray, " N"], Float[np.ndarray, " N"]]:
        """Mean and variance of observations."""
        return self._fitted.predict(x)

    @property
    def _fitted(self) -> Posterior:
        if self._posterior is None:
            raise ValueError("Call `fit` first.")
        return self._posterior


def clustered(
    x: Float[np.ndarray, "N P"], parameters: Parameters, count: int
) -> Float[np.ndarray, "M P"]:
    """Centres of clusters of the rows, where distances are in lengthscales."""
    generator = np.random.default_rng(0)
    chosen = x[generator.choice(len(x), min(len(x), _CLUSTERED), replace=False)]
    scaled = chosen / parameters.lengthscales
    centres, _ = kmeans2(scaled, min(count, len(x)), minit="points", rng=generator)
    return centres * parameters.lengthscales


def posterior(
    parameters: Parameters, x: Float[np.ndarray, "N P"], y: Float[np.ndarray, " N"]
) -> Posterior:
    """The best posterior of the points, given the rows."""
    return _Sums(parameters, x, y).posterior


def bound_and_gradient(
    parameters: Parameters, x: Float[np.ndarray, "N P"], y: Float[np.ndarray, " N"]
) -> tuple[float, Float[np.ndarray, " T"]]:
    """The evidence bound and its gradient by `parameters.vector()`."""
    sums = _Sums(parameters, x, y)
    return sums.bound(), sums.gradient()


class _Sums:
    """Sums over all rows for the bound and its gradient."""

    def __init__(
        self, parameters: Parameters, x: Float[np.ndarray, "N P"], y: Float[np.ndarray, " N"]
    ):
        self.own, self.x, self.residual = parameters, x, y - parameters.mean
        self.covariance = parameters.of_points()
        root = cholesky(self.covariance, lower=True)
        self.kernels = [parameters.kernel(parameters.points, x[b]) for b in _blocks(len(x))]
        self.features = [_solved(root, kernel) for kernel in self.kernels]
        self.squares = sum(part @ part.T for part in self.features)
        told = np.zeros(len(root))
        for part, rows in zip(self.features, _blocks(len(x)), strict=True):
            told += part @ self.residual[rows]
        inner = cholesky(np.eye(len(root)) + self.squares / parameters.noise, lower=True)
        self.told = _solved(inner, told) / parameters.noise
        self.posterior = Posterior(parameters, root, inner, _solved(inner, self.told, "T"))

    def bound(self) -> float:
        noise, count = self.own.noise, len(self.x)
        open_variance = count * self.own.variance - np.trace(self.squares)
        return float(
            -0.5 * count * np.log(2 * np.pi * noise)
            - np.log(np.diag(self.posterior.inner)).sum()
            - 0.5 * (self.residual @ self.residual + open_variance) / noise
            + 0.5 * self.told @ self.told
        )

    def gradient(self) -> Float[np.ndarray, " T"]:
        own, noise, count = self.own, self.own.noise, len(self.x)
        size = len(own.points)
        inverse = _solved(self.posterior.inner, np.eye(size))
        covariance = inverse.T @ inverse  # of the whitened points
        unwhiten = _solved(self.posterior.root, np.eye(size)).T
        weights = unwhiten @ self.posterior.centre
        gain = unwhiten @ (np.eye(size) - covariance)

        within = np.eye(size) - covariance - self.squares / noise
        by_covariance = 0.5 * (unwhiten @ within @ unwhiten.T - np.outer(weights, weights))
        effect = _Effect(own)
        effect.add(by_covariance * self.covariance, own.points, twice=True)
        errors = []
        parts = zip(_blocks(count), self.kernels, self.features, strict=True)
        for rows, kernel, features in parts:
            error = self.residual[rows] - weights @ kernel
            by_kernel = (gain @ features + np.outer(weights, error)) / noise
            effect.add(by_kernel * kernel, self.x[rows])
            errors.append(error)
        error = np.concatenate(errors)

        open_variance = count * own.variance - np.trace(self.squares)
        spread = np.sum(covariance * self.squares) + error @ error + open_variance
        by_noise = 0.5 * (spread / noise - count)
        by_variance = effect.variance - 0.5 * count * own.variance / noise
        others = [by_variance, by_noise, error.sum() / noise]
        return np.concatenate([effect.lengthscales, others, effect.points.ravel()])


class _Effect:
    """Derivatives by a kernel's hyperparameters and the points, added up over blocks of rows."""

    def __init__(self, parameters: Parameters):
        self._own = parameters
        self.lengthscales = np.zeros_like(parameters.lengthscales)
        self.variance = 0.0
        self.points = np.zeros_like(parameters.points)

    def add(
        self, weights: Float[np.ndarray, "M N"], x: Float[np.ndarray, "N P"], *, twice: bool = False
    ) -> None:
        """`weights` has the derivative by each entry of the kernel, times the entry.

        With `twice`, `x` are the points themselves.
        """
        z, scales = self._own.points, self._own.lengthscales**2
        of_points, of_rows = weights.sum(axis=1), weights.sum(axis=0)
        moments = weights @ x
        self.variance += float(of_points.sum())
        moved = (moments - of_points[:, None] * z) / scales
        self.points += 2 * moved if twice else moved
        squares = of_rows @ (x * x) + of_points @ (z * z) - 2 * (moments * z).sum(axis=0)
        self.lengthscales += squares / scales


def _start(x: np.ndarray, y: np.ndarray, count: int) -> Parameters:
    """Long lengthscales, as inputs are many, and a third of the variance as noise."""
    spread = np.sqrt(x.shape[1]) * x.std(axis=0)
    variance = float(y.var())
    return Parameters(spread, variance, 0.3 * variance, float(y.mean()), x[:count])


def _climbed(
    start: Parameters, x: np.ndarray, y: np.ndarray, evaluations: int, *, move: bool
) -> tuple[Parameters, float]:
    """Parameters with a higher bound, and the bound per row. Only with `move` the points move."""
    vector = start.vector()
    inputs = len(start.lengthscales)
    kept = len(vector) if move else inputs + 3

    def cost(free: np.ndarray) -> tuple[float, np.ndarray]:
        bound, gradient = bound_and_gradient(start.replaced(free), x, y)
        return -bound / len(y), -gradient[:kept] / len(y)

    limits = [(-_WIDEST, _WIDEST)] * (inputs + 2) + [(None, None)] * (kept - inputs - 2)
    best = minimize(
        cost, vector[:kept], jac=True, method="L-BFGS-B", bounds=limits,
        options={"maxfun": evaluations, "maxiter": evaluations},
    )  # fmt: skip
    return start.replaced(best.x), -float(best.fun)


def _blocks(count: int) -> Iterator[slice]:
    return (slice(begin, begin + _BLOCK) for begin in range(0, max(count, 1), _BLOCK))


def _solved(root: np.ndarray, values: np.ndarray, trans: str = "N") -> np.ndarray:
    return solve_triangular(root, values, lower=True, trans=trans, check_finite=False)
