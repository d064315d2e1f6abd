"""An exact GP of few rows: squared exponential with a lengthscale per input, a level, and noise.

It is a reference for small tables: the evidence has no prior, and is maximised from two starts.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize

from streamgp.numerics.linalg import cholesky, inverse_of, solve_lower

_LEVEL = 10.0  # prior variance of the level, for values of about unit variance
_STARTS = ((1.0, 0.1), (0.3, 0.01))  # lengthscales over √P spreads, and noise over variance
_WIDEST = 12.0  # the largest size of the logarithm of a hyperparameter


class _Numbers(NamedTuple):
    """Hyperparameters: lengthscales, and the variances of the function and of the noise."""

    lengthscales: Float[np.ndarray, " P"]
    variance: float
    noise: float

    @classmethod
    def of(cls, vector: Float[np.ndarray, " T"]) -> "_Numbers":
        """From logarithms."""
        positive = np.exp(vector)
        return cls(positive[:-2], float(positive[-2]), float(positive[-1]))

    def kernel(
        self, a: Float[np.ndarray, "N P"], b: Float[np.ndarray, "R P"]
    ) -> Float[np.ndarray, "N R"]:
        a, b = a / self.lengthscales, b / self.lengthscales
        squares = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1) - 2 * a @ b.T
        return self.variance * np.exp(-0.5 * np.maximum(squares, 0))


class ExactRBF:
    """Fits the evidence by L-BFGS."""

    def __init__(self, evaluations: int = 100):
        self._options = {"maxfun": evaluations, "maxiter": evaluations}

    def fit(self, x: Float[np.ndarray, "N P"], y: Float[np.ndarray, " N"]) -> "ExactRBF":
        def cost(vector: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = evidence(vector, x, y)
            return -value, -gradient

        found = []
        for length, noise in _STARTS:
            spread = np.maximum(x.std(axis=0), 1e-6)
            start = np.log([*length * np.sqrt(x.shape[1]) * spread, y.var(), noise * y.var()])
            limits = [(-_WIDEST, _WIDEST)] * len(start)
            found.append(
                minimize(
                    cost, start, jac=True, method="L-BFGS-B", bounds=limits, options=self._options
                )
            )
        self._own = _Numbers.of(min(found, key=lambda each: each.fun).x)
        self._x, self._y = x, y
        self._root = cholesky(_covariance(self._own, x))
        return self

    def predict(
        self, x: Float[np.ndarray, "R P"]
    ) -> tuple[Float[np.ndarray, " R"], Float[np.ndarray, " R"]]:
        """Mean and variance of observations."""
        cross = solve_lower(self._root, self._own.kernel(self._x, x) + _LEVEL)
        prior = self._own.variance + _LEVEL + self._own.noise
        return cross.T @ solve_lower(self._root, self._y), prior - (cross**2).sum(axis=0)


def evidence(
    vector: Float[np.ndarray, " T"], x: Float[np.ndarray, "N P"], y: Float[np.ndarray, " N"]
) -> tuple[float, Float[np.ndarray, " T"]]:
    """The log evidence and its gradient by the logarithms of the hyperparameters."""
    own = _Numbers.of(vector)
    root = cholesky(_covariance(own, x))
    half = solve_lower(root, y)
    told = solve_lower(root, half, transpose=True)
    value = -0.5 * (half @ half + len(y) * np.log(2 * np.pi)) - np.log(np.diag(root)).sum()
    by_covariance = 0.5 * (np.outer(told, told) - inverse_of(root))
    weights = by_covariance * own.kernel(x, x)
    sums = weights.sum(axis=1)
    squares = 2 * (sums @ (x * x) - (x * (weights @ x)).sum(axis=0))
    others = [sums.sum(), own.noise * np.trace(by_covariance)]
    return float(value), np.append(squares / own.lengthscales**2, others)


def _covariance(own: _Numbers, x: Float[np.ndarray, "N P"]) -> Float[np.ndarray, "N N"]:
    return own.kernel(x, x) + _LEVEL + own.noise * np.eye(len(x))
