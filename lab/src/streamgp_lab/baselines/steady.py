"""The steady state of a Matérn-3/2 process that is measured at equal steps.

The states are f and f'/λ with λ = √3/lengthscale, and τ is time in units of 1/λ. The prior
covariance P∞ is then variance · I, and all matrices are of order one in any units of the data.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.interpolate import CubicSpline
from scipy.linalg import solve_discrete_are, solve_discrete_lyapunov
from scipy.special import gammainc

_MEASURED = np.eye(2)[:, :1]  # h: a sample measures f alone
_SOLVED = np.linspace(np.log(1e-6), np.log(1e8), 64)  # log(R / variance) where equations are solved
_ROWS = np.linspace(_SOLVED[0], _SOLVED[-1], 1024)  # and in the rows of the table
_SPACING = _ROWS[1] - _ROWS[0]


class Steady(NamedTuple):
    """The steady state of filter and smoother, with one row per measurement variance R."""

    transition: Float[np.ndarray, "2 2"]  # A = exp(F·dt)
    log_noise: Float[np.ndarray, " R"]  # log R of each row, equally spaced
    predicted: Float[np.ndarray, "R 2 2"]  # P(R): covariance of the state before its sample
    filtered: Float[np.ndarray, "R 2 2"]  # and after it
    smoothed: Float[np.ndarray, "R 2 2"]  # given infinitely many samples on both sides
    gain: Float[np.ndarray, "R 2 2"]  # G: how the smoothed next state corrects this one


def transition(tau: float) -> Float[np.ndarray, "2 2"]:
    """A = exp(F·τ), F = [[0, 1], [−1, −2]]."""
    return np.exp(-tau) * np.array([[1 + tau, tau], [-tau, 1 - tau]])


def steady_at(tau: float, variance: float, noise: float) -> Steady:
    """A single row, for a constant measurement variance."""
    solved = _solve(tau, noise / variance)
    return _scaled(tau, variance, np.log([noise / variance]), solved[None])


def steady_table(tau: float, variance: float) -> Steady:
    """Rows for measurement variances of all sizes.

    As in the paper, the equations are solved for a few variances and interpolated by cubic splines
    to many. Between these the filter interpolates linearly.
    """
    solved = np.stack([_solve(tau, ratio) for ratio in np.exp(_SOLVED)])
    return _scaled(tau, variance, _ROWS, CubicSpline(_SOLVED, solved)(_ROWS))


def row_of(steady: Steady, noise: float) -> float:
    """The position of R in the table, as a fraction between rows; at most the last row."""
    row = (np.log(noise) - steady.log_noise[0]) / _SPACING
    return float(min(max(row, 0.0), len(steady.log_noise) - 1.0))


def look_up(
    table: Float[np.ndarray, "R 2 2"], row: Float[np.ndarray, "*N"] | float
) -> Float[np.ndarray, "*N 2 2"]:
    """Entries of one column of the table, interpolated linearly between rows."""
    below = np.asarray(row).astype(int)  # rows are not negative
    above = np.minimum(below + 1, len(table) - 1)
    share = np.asarray(row - below)[..., None, None]
    return (1 - share) * table[below] + share * table[above]


def smooth(
    steady: Steady, means: Float[np.ndarray, "N 2"], rows: Float[np.ndarray, " N"]
) -> Float[np.ndarray, "N 2"]:
    """Means given all samples: backwards, m + G(m_next − A·m), with the G for the R of each."""
    gains = look_up(steady.gain, rows)
    predicted = means @ steady.transition.T
    smoothed = means.copy()
    for k in range(len(means) - 2, -1, -1):
        smoothed[k] += gains[k] @ (smoothed[k + 1] - predicted[k])
    return smoothed


def away(
    mean: Float[np.ndarray, " 2"],
    covariance: Float[np.ndarray, "2 2"],
    tau: Float[np.ndarray, " N"],
    variance: float,
) -> tuple[Float[np.ndarray, " N"], Float[np.ndarray, " N"]]:
    """Mean and variance of f at time τ after a state; a negative τ means before it.

    Backwards in time only the sign of the derivative differs.
    """
    size = np.abs(tau)
    weights = np.exp(-size)[:, None] * np.stack([1 + size, tau], axis=-1)
    carried = np.einsum("ni,ij,nj->n", weights, covariance, weights)
    return weights @ mean, carried + variance * gammainc(3, 2 * size)


def _solve(tau: float, noise: float) -> Float[np.ndarray, "4 2 2"]:
    """P, the filtered and the smoothed covariance and G, for unit prior variance."""
    a = transition(tau)
    # Q = P∞ − A·P∞·Aᵀ, without cancellation at small steps.
    corner, cross = gammainc(3, 2 * tau), 2 * tau**2 * np.exp(-2 * tau)
    q = np.array([[corner, cross], [cross, corner + 4 * tau * np.exp(-2 * tau)]])
    # The DARE: P = A·P·Aᵀ − A·P·h(hᵀP·h + R)⁻¹hᵀP·Aᵀ + Q.
    predicted = solve_discrete_are(a.T, _MEASURED, q, np.array([[noise]]))
    # The covariance after a sample, with the stationary gain K = P·h/(hᵀP·h + R).
    filtered = predicted - np.outer(predicted[0], predicted[0]) / (predicted[0, 0] + noise)
    # The stationary Rauch-Tung-Striebel smoother: G = P_f·Aᵀ·P⁻¹, S = P_f + G(S − P)Gᵀ.
    gain = np.linalg.solve(predicted, a @ filtered).T
    smoothed = solve_discrete_lyapunov(gain, filtered - gain @ predicted @ gain.T)
    return np.stack([predicted, filtered, smoothed, gain])


def _scaled(
    tau: float,
    variance: float,
    log_ratio: Float[np.ndarray, " R"],
    solved: Float[np.ndarray, "R 4 2 2"],
) -> Steady:
    predicted, filtered, smoothed, gain = np.moveaxis(solved, 1, 0)
    covariances = (variance * predicted, variance * filtered, variance * smoothed)
    rows = (transition(tau), log_ratio + np.log(variance), *covariances, gain)
    return Steady(*rows)
