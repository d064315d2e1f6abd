"""Dense, slow, explicit formulas in NumPy: what the library's algebra is checked against.

Nothing here is whitened, blocked or shared with the library; inverses are inverses.
"""

import numpy as np
from scipy.linalg import block_diag

NUGGET = 1e-10  # an inducing value's own share of variance, part of the model's definition


def rbf(a, b, lengthscale=1.0, variance=1.0):
    distance = np.sum(((a[:, None, :] - b[None, :, :]) / lengthscale) ** 2, axis=-1)
    return variance * np.exp(-0.5 * distance)


def log_normal(y, mean, covariance):
    residual = y - mean
    sign, log_det = np.linalg.slogdet(2 * np.pi * covariance)
    assert sign > 0
    return -0.5 * (log_det + residual @ np.linalg.solve(covariance, residual))


def exact_gp(k_xx, k_xs, k_ss, y, noise_variance):
    """Mean and covariance at s, and the log evidence, of y = f(x) + noise."""
    total = k_xx + np.diag(noise_variance)
    gain = np.linalg.solve(total, k_xs).T
    evidence = log_normal(y, np.zeros(len(y)), total)
    return gain @ y, k_ss - gain @ k_xs, evidence


def sparse_gp(k_zz, k_zx, k_xx_diagonal, y, noise_variance):
    """Titsias' optimal q(u) = N(m, S) and his bound, from the formulas as printed."""
    q_xx = k_zx.T @ np.linalg.solve(k_zz, k_zx)
    precision = (
        np.linalg.inv(k_zz)
        + np.linalg.solve(k_zz, k_zx / noise_variance) @ np.linalg.solve(k_zz, k_zx).T
    )
    s = np.linalg.inv(precision)
    m = s @ np.linalg.solve(k_zz, k_zx @ (y / noise_variance))
    bound = log_normal(y, np.zeros(len(y)), q_xx + np.diag(noise_variance))
    return m, s, bound - 0.5 * np.sum((k_xx_diagonal - np.diag(q_xx)) / noise_variance)


def kl(mean_q, cov_q, mean_p, cov_p):
    difference = mean_p - mean_q
    trace = np.trace(np.linalg.solve(cov_p, cov_q))
    log_dets = np.linalg.slogdet(cov_p)[1] - np.linalg.slogdet(cov_q)[1]
    return 0.5 * (trace + difference @ np.linalg.solve(cov_p, difference) - len(mean_q) + log_dets)


def block_diagonal(blocks):
    """Square matrices along the diagonal of one."""
    return block_diag(*blocks)


def with_nugget(k):
    return k + NUGGET * np.diag(np.diag(k))


def design(k_zz, k_zx, k_xx_diagonal):
    """A and slack of f = A·v + rest, v the inducing values whitened by the Cholesky factor."""
    a = np.linalg.solve(np.linalg.cholesky(k_zz), k_zx).T
    return a, k_xx_diagonal - np.sum(a**2, axis=1)


def expected(log_density, mean, variance, nodes=60):
    """E[log_density(f)], f normal, by Gauss-Hermite quadrature."""
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    f = mean[:, None] + np.sqrt(variance)[:, None] * x
    return log_density(f) @ (w / w.sum())


def variational_gp(k_xx, y, curvature, rounds=400, step=0.5):
    """q(f) = N(m, S) of all data at once, by damped natural-gradient rounds on the rows' sites.

    `curvature(y, mean, variance)` gives E[∂ log p] and −E[∂² log p] of each row.
    """
    b, p = np.zeros(len(y)), np.full(len(y), 0.1)
    for _ in range(rounds):
        s = np.linalg.inv(np.linalg.inv(k_xx) + np.diag(p))
        m = s @ b
        slope, bend = curvature(y, m, np.diag(s))
        b, p = b + step * (slope + bend * m - b), p + step * (bend - p)
    return m, s
