"""The exact Matérn-3/2 process over time, for normal noise: Kalman filter and smoother.

The state is f and its derivative. The recursions are written out for two states in plain floats,
which is faster than products of small arrays: 10⁵ rows take about a second. Nothing is shared with
the library.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import optimize

_GIVE_UP = 1e10  # the cost of hyperparameters under which numbers are no longer finite


class Matern(NamedTuple):
    """Hyperparameters: noise is a standard deviation, variance that of f."""

    lengthscale: float = 1.0
    variance: float = 1.0
    noise: float = 0.3


class Smoothed(NamedTuple):
    """What all data say of f at the times that were asked for."""

    mean: Float[np.ndarray, " N"]
    variance: Float[np.ndarray, " N"]


class _Moves(NamedTuple):
    """From one time to the next: s' = A·s + noise of covariance Q. Lists, one number per move."""

    a: tuple[list[float], ...]  # A by rows
    q: tuple[list[float], ...]  # Q: 00, 01, 11


class _Filtered(NamedTuple):
    """Before (predicted) and after each observation: mean (2) and covariance (00, 01, 11)."""

    predicted: list[tuple[float, float, float, float, float]]
    updated: list[tuple[float, float, float, float, float]]
    log_evidence: float


def path(
    times: Float[np.ndarray, " N"], model: Matern, generator: np.random.Generator
) -> Float[np.ndarray, " N"]:
    """A draw of f at sorted times."""
    moves, rate = _moves(np.diff(times), model), np.sqrt(3) / model.lengthscale
    normal = generator.normal(size=(len(times), 2))
    f = float(np.sqrt(model.variance) * normal[0, 0])
    slope = float(np.sqrt(model.variance) * rate * normal[0, 1])
    found = [f]
    draws = normal[1:].tolist()
    for a00, a01, a10, a11, q00, q01, q11, (u, v) in zip(*moves.a, *moves.q, draws, strict=True):
        root = q00**0.5
        along = q01 / root if root else 0.0
        across = max(q11 - along**2, 0.0) ** 0.5
        f, slope = (
            a00 * f + a01 * slope + root * u,
            a10 * f + a11 * slope + along * u + across * v,
        )
        found.append(f)
    return np.array(found)


def smooth(
    x: Float[np.ndarray, " N"],
    y: Float[np.ndarray, " N"],
    at: Float[np.ndarray, " K"],
    model: Matern,
) -> Smoothed:
    """f at some times, given all observations. Neither has to be sorted."""
    times = np.concatenate([x, at])
    values = np.concatenate([y, np.full(len(at), np.nan)])
    order = np.argsort(times, kind="stable")
    moves = _moves(np.diff(times[order]), model)
    filtered = _filtered(values[order].tolist(), moves, model)
    mean, variance = np.zeros((2, len(times)))
    mean[order], variance[order] = _backwards(filtered, moves)
    return Smoothed(mean[len(x) :], variance[len(x) :])


def log_evidence(x: Float[np.ndarray, " N"], y: Float[np.ndarray, " N"], model: Matern) -> float:
    """log p(y), for sorted times."""
    return _filtered(y.tolist(), _moves(np.diff(x), model), model).log_evidence


def most_likely(x: Float[np.ndarray, " N"], y: Float[np.ndarray, " N"], start: Matern) -> Matern:
    """The hyperparameters of largest evidence near a start, for sorted times."""

    def cost(logs: np.ndarray) -> float:
        value = -log_evidence(x, y, Matern(*np.exp(logs).tolist())) / len(x)
        return value if np.isfinite(value) else _GIVE_UP

    found = optimize.minimize(cost, np.log(start), method="L-BFGS-B", options={"ftol": 1e-12})
    return Matern(*np.exp(found.x).tolist())


def _moves(gaps: Float[np.ndarray, " n"], model: Matern) -> _Moves:
    """A = exp(F·gap), and Q by its closed form: P − APAᵀ loses all digits at small gaps."""
    rate = np.sqrt(3) / model.lengthscale
    step = rate * gaps
    decay = np.exp(-step)
    a = (
        decay * (1 + step),
        decay * gaps,
        -decay * rate * step,
        decay * (1 - step),
    )
    twice = np.exp(-2 * step)
    # 1 − e^{−2s}(1 + 2s + 2s²) is 4s³/3 − … for small s
    small = step < 1e-3
    series = 4 / 3 * step**3 - 2 * step**4 + 8 / 5 * step**5
    q00 = np.where(small, series, 1 - twice * (1 + 2 * step + 2 * step**2))
    q01 = 2 * rate * step**2 * twice
    q11 = rate**2 * (-np.expm1(-2 * step) + 2 * step * twice * (1 - step))
    q = (model.variance * q00, model.variance * q01, model.variance * q11)
    return _Moves(tuple(row.tolist() for row in a), tuple(row.tolist() for row in q))


def _filtered(values: list[float], moves: _Moves, model: Matern) -> _Filtered:
    rate, noise = 3**0.5 / model.lengthscale, model.noise**2
    f, slope = 0.0, 0.0
    p, c, r = model.variance, 0.0, model.variance * rate**2
    still = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
    predicted, updated, squares, totals = [], [], 0.0, []
    steps = zip(*moves.a, *moves.q, strict=True)
    for index, value in enumerate(values):
        a00, a01, a10, a11, q00, q01, q11 = next(steps) if index else still
        f, slope = a00 * f + a01 * slope, a10 * f + a11 * slope
        # A·P, then (A·P)·Aᵀ + Q
        b00, b01 = a00 * p + a01 * c, a00 * c + a01 * r
        b10, b11 = a10 * p + a11 * c, a10 * c + a11 * r
        p, c, r = b00 * a00 + b01 * a01 + q00, b00 * a10 + b01 * a11 + q01, b10 * a10 + b11 * a11
        r += q11
        predicted.append((f, slope, p, c, r))
        if value == value:  # a time without an observation has NaN
            total, error = p + noise, value - f
            gain, other = p / total, c / total
            f, slope = f + gain * error, slope + other * error
            p, c, r = p * noise / total, c * noise / total, r - other * c
            squares += error * error / total
            totals.append(total)
        updated.append((f, slope, p, c, r))
    spread = float(np.sum(np.log(np.array(totals)))) + len(totals) * np.log(2 * np.pi)
    return _Filtered(predicted, updated, -0.5 * (squares + spread))


def _backwards(filtered: _Filtered, moves: _Moves) -> tuple[list[float], list[float]]:
    """Rauch, Tung and Striebel: mean and variance of f at each time, given everything."""
    f, slope, p, c, r = filtered.updated[-1]
    means, variances = [f], [p]
    steps = zip(
        reversed(filtered.updated[:-1]), reversed(filtered.predicted[1:]),
        *(reversed(row) for row in moves.a), strict=True,
    )  # fmt: skip
    for (uf, us, up, uc, ur), (pf, ps, pp, pc, pr), a00, a01, a10, a11 in steps:
        # G = P·Aᵀ·P'⁻¹
        b00, b01 = up * a00 + uc * a01, up * a10 + uc * a11
        b10, b11 = uc * a00 + ur * a01, uc * a10 + ur * a11
        determinant = pp * pr - pc * pc
        g00, g01 = (b00 * pr - b01 * pc) / determinant, (b01 * pp - b00 * pc) / determinant
        g10, g11 = (b10 * pr - b11 * pc) / determinant, (b11 * pp - b10 * pc) / determinant
        d, e, h = p - pp, c - pc, r - pr
        df, ds = f - pf, slope - ps
        f, slope = uf + g00 * df + g01 * ds, us + g10 * df + g11 * ds
        k00, k01 = g00 * d + g01 * e, g00 * e + g01 * h
        k10, k11 = g10 * d + g11 * e, g10 * e + g11 * h
        p, c, r = (
            up + k00 * g00 + k01 * g01,
            uc + k00 * g10 + k01 * g11,
            ur + k10 * g10 + k11 * g11,
        )
        means.append(f)
        variances.append(p)
    return means[::-1], variances[::-1]
