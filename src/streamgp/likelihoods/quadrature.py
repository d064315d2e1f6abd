"""Nodes and weights for expectations under a normal in J dimensions, and their derivatives."""

import functools
from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float
from scipy import special

_NODES_PER_DIMENSION = {1: 24, 2: 12, 3: 8}
_QUASI_RANDOM_PAIRS = 256
_EVEN = (65, 257, 1025)  # tried in turn; the last is taken as it is
_FINE = 32
_NEWTON_STEPS = 25
_NEWTON_ERROR = 1e-6  # of the mode, which is then known to its square
_LONGEST_STEP = 3.0
_POINT = 1e-16  # share of the squared mean: nodes that close cannot be told apart
_AGREE = 1e-8  # between half the nodes and all: the error of all is its square

Halves = Float[np.ndarray, "2 N"]  # an average by all nodes, and by every other


@functools.lru_cache(maxsize=32)
def nodes(latents: int) -> tuple[np.ndarray, np.ndarray]:
    """ε of shape (K, J) and weights of shape (K,) that sum to one.

    Gauss-Hermite, nested, up to three latents. Beyond, a scrambled Sobol set with antithetic
    pairs, rescaled so that its first two moments are exact: expectations of quadratics (a
    Gaussian site's) carry no error at all.
    """
    if latents in _NODES_PER_DIMENSION:
        return _gauss_hermite(latents, _NODES_PER_DIMENSION[latents])
    from scipy.stats import qmc  # here, because it takes most of a second to import

    uniform = qmc.Sobol(latents, seed=0).random(_QUASI_RANDOM_PAIRS)
    half = special.ndtri(np.clip(uniform, 1e-12, 1 - 1e-12))
    points = np.concatenate([half, -half])
    scale = np.linalg.cholesky(points.T @ points / len(points))
    return np.linalg.solve(scale, points.T).T, np.full(len(points), 1 / len(points))


def _gauss_hermite(latents: int, order: int) -> tuple[np.ndarray, np.ndarray]:
    x, w = np.polynomial.hermite_e.hermegauss(order)
    w = w / w.sum()
    grid = np.meshgrid(*[x] * latents, indexing="ij")
    weights = functools.reduce(np.multiply.outer, [w] * latents)
    return np.stack([g.ravel() for g in grid], axis=-1), weights.ravel()


@functools.lru_cache(maxsize=32)
def fine_nodes(latents: int) -> tuple[np.ndarray, np.ndarray]:
    """More of them, for mixtures whose components may be narrow: evenly spaced in one dimension."""
    if latents == 2:
        return _gauss_hermite(latents, _FINE)
    if latents > 2:
        return nodes(latents)
    points, weights = even_nodes(_EVEN[-1])
    return points[:, None], weights[0]


@functools.lru_cache(maxsize=32)
def even_nodes(count: int) -> tuple[Float[np.ndarray, " K"], Float[np.ndarray, "2 K"]]:
    """Evenly spaced nodes in one dimension; the weights of all of them, and of every other."""
    points = np.linspace(-8.5, 8.5, count)
    weights = np.tile(np.exp(-0.5 * points**2), (2, 1))
    weights[1, 1::2] = 0.0
    return points, weights / np.sum(weights, axis=1, keepdims=True)


def spread(
    mean: Float[np.ndarray, "N J"], covariance: Float[np.ndarray, "N J J"], *, fine: bool = False
) -> tuple[Float[np.ndarray, "K N J"], Float[np.ndarray, " K"]]:
    """The nodes moved to N(mean, covariance): f_k = m + chol(S)·ε_k, and their weights.

    In memory the latents come first: sums over a last axis of two or three are slow.
    """
    latents = mean.shape[-1]
    points, weights = fine_nodes(latents) if fine else nodes(latents)
    if latents == 1:
        deviation = np.sqrt(np.maximum(covariance[:, 0], 0.0))
        return mean + deviation * points[:, :, None], weights
    return (mean.T[:, :, None] + np.swapaxes(root(covariance), 0, 1) @ points.T).T, weights


def average(weights: Float[np.ndarray, " K"], values: Float[np.ndarray, "K ..."]) -> np.ndarray:
    """Σ_k w_k · values_k."""
    return (values.T @ weights).T


def expectation_slopes(
    mean: Float[np.ndarray, "N J"],
    covariance: Float[np.ndarray, "N J J"],
    gradients: Float[np.ndarray, "K N J"],
    bend: Callable[[Bool[np.ndarray, " N"]], Float[np.ndarray, "R J J"]],
) -> tuple[Float[np.ndarray, "N J"], Float[np.ndarray, "N J J"]]:
    """What Σ_k w_k g(f_k) changes by with mean and covariance, from ∇g at the nodes of `spread`.

    Args:
        mean: The means of f.
        covariance: The covariances of f.
        gradients: ∇g at the nodes.
        bend: Average Hessian of g over the nodes, for some of the rows. It is asked for rows whose
            nodes lie too close together to tell a slope; there the derivative by the covariance is
            half of it (Price's theorem).
    """
    points, weights = nodes(mean.shape[-1])
    by_root = gradients.T @ (weights[:, None] * points)  # J N J
    by_covariance = root_adjoint(covariance, np.swapaxes(by_root, 0, 1))
    scale = np.max(np.diagonal(covariance, axis1=1, axis2=2), axis=1, initial=0.0)
    is_point = scale <= _POINT * (1 + np.max(mean**2, axis=1))
    if is_point.any():
        by_covariance[is_point] = 0.5 * bend(is_point)
    return average(weights, gradients), by_covariance


# -- averages in one dimension -------------------------------------------------------------------


def refined_average(
    function: Callable[[np.ndarray, Float[np.ndarray, "K R"]], Float[np.ndarray, "K R"]],
    mean: Float[np.ndarray, " N"],
    variance: Float[np.ndarray, " N"],
) -> Float[np.ndarray, " N"]:
    """E[g(f)] of each row for f ~ N(mean, variance) and g between zero and one.

    At evenly spaced nodes an average is either exact to rounding or visibly changed by leaving out
    every other node. So few nodes are tried first, and only rows that show a difference get more.
    `function` takes the numbers of some rows and their f at the nodes.
    """

    def averages(rows: np.ndarray, f: np.ndarray, weights: np.ndarray) -> Halves:
        return weights @ function(rows, f)

    return _refined(averages, mean, variance)


def refined_log_average(
    function: Callable[[np.ndarray, Float[np.ndarray, "K R"]], Float[np.ndarray, "K R"]],
    mean: Float[np.ndarray, " N"],
    variance: Float[np.ndarray, " N"],
) -> Float[np.ndarray, " N"]:
    """log E[exp g(f)] of each row, in the same way."""

    def averages(rows: np.ndarray, f: np.ndarray, weights: np.ndarray) -> Halves:
        values = function(rows, f)
        return np.stack([log_sum(values, half) for half in weights])

    return _refined(averages, mean, variance)


@np.errstate(invalid="ignore")
def _refined(
    averages: Callable[[np.ndarray, np.ndarray, np.ndarray], Halves],
    mean: Float[np.ndarray, " N"],
    variance: Float[np.ndarray, " N"],
) -> Float[np.ndarray, " N"]:
    values, left = np.empty(len(mean)), np.arange(len(mean))
    deviation = np.sqrt(np.maximum(variance, 0.0))
    for count in _EVEN:
        points, weights = even_nodes(count)
        both = averages(left, mean[left] + deviation[left] * points[:, None], weights)
        values[left] = both[0]
        left = left[np.abs(both[0] - both[1]) > _AGREE]
        if not len(left):
            break
    return values


@np.errstate(divide="ignore")
def log_sum(
    values: Float[np.ndarray, "K ..."], weights: Float[np.ndarray, " K"]
) -> Float[np.ndarray, "*#b"]:
    """log Σ_k w_k·exp(values_k); nothing is lost where all of them are far below zero."""
    top = np.max(values, axis=0)
    top = np.where(np.isfinite(top), top, 0.0)
    return np.log(average(weights, np.exp(values - top))) + top


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def log_integral(
    log_density: Callable[[Float[np.ndarray, "*k N"]], Float[np.ndarray, "*k N"]],
    derivatives: Callable[[Float[np.ndarray, " N"]], tuple[np.ndarray, np.ndarray]],
    mean: Float[np.ndarray, " N"],
    variance: Float[np.ndarray, " N"],
) -> Float[np.ndarray, " N"]:
    """log ∫ p(f) N(f; mean, variance) df for log-concave p, by quadrature about the mode.

    Nodes that follow the normal alone miss a p that is much narrower than it (a large count).
    `derivatives` gives the first and second derivative of `log_density`.
    """
    variance = variance + 1e-18 * (1 + mean**2)  # wide enough for nodes to be told apart
    mode = mean
    for _ in range(_NEWTON_STEPS):
        slope, bend = derivatives(mode)
        step = -(slope - (mode - mean) / variance) / (bend - 1 / variance)
        step = np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
        going = np.abs(step) > _NEWTON_ERROR * (1 + np.abs(mode))
        mode = mode + step
        if not going.any():
            break
    width = 1 / np.sqrt(1 / variance - derivatives(mode)[1])
    points, weights = nodes(1)
    f = mode + width * points
    terms = log_density(f) - 0.5 * (f - mean) ** 2 / variance + 0.5 * points**2
    total = log_sum(terms, weights) + np.log(width) - 0.5 * np.log(variance)
    return np.where(np.isnan(total), -np.inf, total)  # so far off that the mode overflows


# -- square roots --------------------------------------------------------------------------------


def root(covariance: Float[np.ndarray, "N J J"]) -> Float[np.ndarray, "N J J"]:
    """Lower square root of small covariances that may be singular, column by column.

    Written out rather than left to LAPACK: J is a few, the rows are many.
    """
    if covariance.shape[-1] == 1:
        return np.sqrt(np.maximum(covariance, 0.0))
    return _factor(covariance)[0]


def _factor(
    covariance: Float[np.ndarray, "N J J"],
) -> tuple[Float[np.ndarray, "N J J"], Float[np.ndarray, "N J"], Bool[np.ndarray, "N J"]]:
    """The root, the pivots that its columns were divided by, and which of these were too small."""
    size = covariance.shape[-1]
    floor = 1e-10 * np.max(np.diagonal(covariance, axis1=-2, axis2=-1), axis=-1) + 1e-100
    columns = np.zeros(covariance.shape)
    pivots, floored = np.empty(covariance.shape[:-1]), np.empty(covariance.shape[:-1], bool)
    left = covariance
    for j in range(size):
        floored[:, j] = left[:, j, j] <= floor
        pivots[:, j] = np.sqrt(np.where(floored[:, j], floor, left[:, j, j]))
        column = left[:, j:, j] / pivots[:, j, None]
        columns[:, j:, j] = column
        if j < size - 1:
            left = left.copy()
            left[:, j:, j:] -= column[:, :, None] * column[:, None, :]
    return columns, pivots, floored


def root_adjoint(
    covariance: Float[np.ndarray, "N J J"], by_root: Float[np.ndarray, "N J J"]
) -> Float[np.ndarray, "N J J"]:
    """A derivative by `root(covariance)` as one by the covariance, symmetric.

    The steps of `_factor` backwards.
    """
    size = covariance.shape[-1]
    if size == 1:
        return by_root / (2 * np.sqrt(np.maximum(covariance, 1e-200)))
    columns, pivots, floored = _factor(covariance)
    result, by_floor = np.zeros(covariance.shape), np.zeros(len(covariance))
    for j in reversed(range(size)):
        column, pivot = columns[:, j:, j], pivots[:, j]
        part = result[:, j:, j:]
        by_column = by_root[:, j:, j] - np.einsum(
            "nab,nb->na", part + np.swapaxes(part, 1, 2), column
        )
        part[:, :, 0] += by_column / pivot[:, None]
        by_square = -np.sum(by_column * column, axis=1) / (2 * pivot**2)
        part[:, 0, 0] += np.where(floored[:, j], 0.0, by_square)
        by_floor += np.where(floored[:, j], by_square, 0.0)
    largest = np.argmax(np.diagonal(covariance, axis1=1, axis2=2), axis=1)
    result[np.arange(len(result)), largest, largest] += 1e-10 * by_floor
    return 0.5 * (result + np.swapaxes(result, 1, 2))
