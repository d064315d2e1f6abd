"""The components of a Gaussian process by brute force: conditioning of sums of functions.

Nothing here is shared with the library. A component is a function with its own covariance; what is
observed is a weighted sum of them at each row.
"""

import numpy as np


def matern32(a, b, lengthscale, variance):
    r = np.sqrt(3) * np.abs(a[:, None] - b[None, :]) / lengthscale
    return variance * (1 + r) * np.exp(-r)


def matern52(a, b, lengthscale, variance):
    r = np.sqrt(5) * np.abs(a[:, None] - b[None, :]) / lengthscale
    return variance * (1 + r + r**2 / 3) * np.exp(-r)


def through(kernel, points, parts):
    """A sum of functions that is seen only through its values at some points.

    Args:
        kernel: Of the sum.
        points: Where its values are.
        parts: The kernels of its parts.

    Returns:
        The covariance of each part at s with the sum at rows x, and of the sum between rows.
    """
    inner = kernel(points, points)
    inner = inner + 1e-10 * np.diag(np.diag(inner))

    def cross(part, s, x):
        return part(s, points) @ np.linalg.solve(inner, kernel(points, x))

    def seen(a, b):
        return kernel(a, points) @ np.linalg.solve(inner, kernel(points, b))

    return [lambda s, x, part=part: cross(part, s, x) for part in parts], seen


def posterior(prior, cross, train, y, noise):
    """Mean and covariance of c components at each of n places.

    Args:
        prior: Their covariance at each place: (n, c, c).
        cross: Their covariance with the rows: (c, n, N).
        train: The covariance of the rows without noise.
        y: The rows.
        noise: The variance of each row's noise.
    """
    total = train + np.diag(noise)
    mean = np.stack([part @ np.linalg.solve(total, y) for part in cross], axis=1)
    covariance = np.array(prior, float)
    for i, one in enumerate(cross):
        for j, other in enumerate(cross):
            covariance[:, i, j] -= np.diag(one @ np.linalg.inv(total) @ other.T)
    return mean, covariance
