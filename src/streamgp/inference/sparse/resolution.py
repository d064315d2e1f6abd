"""Resolution: how many inducing points would leave a given part of the variance open.

What is kept tells how much the present points leave open at past rows, but not what other points
would: the rows are gone. So stand-ins are drawn between neighbouring points, and the
eigenvalues of their covariance tell how the open part E falls with the number of functions that
explain them. M points leave as much open as E⁻¹(open) functions would; so about

    M · E⁻¹(tolerance) / E⁻¹(open)

points leave the tolerance open. This is a guess. Stand-ins follow the present points: where these
are far too few, much of the ground between them is not known.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from streamgp.inference.sparse.state import State
from streamgp.kernels import Kernel

_PER_POINT, _MOST = 16, 2048  # stand-ins of each point, and of all
_FARTHEST = 16  # how many times the present points the guess may be
_LEAST = 1e-9  # open parts below this are rounding


def points_for(state: State, tolerance: float) -> int:
    """About how many points per latent function leave that part of the variance open.

    Args:
        state: With at least one row learned.
        tolerance: A part of the variance at past rows, between 0 and 1.

    Returns:
        The largest number over latent functions. At least 1, and at most 16 times what there is.
    """
    kernels, origin = state.plain.latent_kernels, state.plain.origin
    each = zip(kernels, state.points, state.open_variance, strict=True)
    return max(_points_of(k, z - origin, float(left), tolerance) for k, z, left in each)


def _points_of(
    kernel: Kernel, points: Float[np.ndarray, "M P"], left: float, tolerance: float
) -> int:
    count = len(points)
    falling = _Falling.of(kernel, _stand_ins(points, min(_PER_POINT * count, _MOST)))
    now, then = falling.functions_for(left), falling.functions_for(tolerance)
    wanted = np.ceil(count * min(then / max(now, 1e-300), _FARTHEST) - 1e-9)
    return max(int(wanted), 1)


class _Falling(NamedTuple):
    """The open part E after 0, 1, 2, … functions, as its logarithm."""

    logs: Float[np.ndarray, " _"]

    @classmethod
    def of(cls, kernel: Kernel, x: Float[np.ndarray, "N P"]) -> "_Falling":
        """For functions that explain inputs x best: eigenvectors of their covariance."""
        values = np.maximum(np.linalg.eigvalsh(kernel.matrix(x, x)), 0.0)  # ascending
        left = np.cumsum(values)[::-1] / max(float(np.sum(values)), 1e-300)
        some = left[left > _LEAST]
        return cls(np.log([*some, _LEAST]))

    def functions_for(self, part: float) -> float:
        """How many functions leave that part open, between whole numbers too."""
        at = np.log(np.clip(part, _LEAST, 1.0))
        return float(np.interp(-at, -self.logs, np.arange(len(self.logs))))


def _stand_ins(points: Float[np.ndarray, "M P"], count: int) -> Float[np.ndarray, "N P"]:
    """Inputs like those that the points are for: random averages of a point and some neighbours."""
    rng = np.random.default_rng(0)
    own = np.arange(count) % len(points)
    near = _neighbours(points, 2 * points.shape[1])[own]
    chosen = rng.permuted(near, axis=1)[:, : points.shape[1]]
    members = np.concatenate([own[:, None], chosen], axis=1)
    weights = rng.dirichlet(np.ones(members.shape[1]), count)
    return np.einsum("nk,nkp->np", weights, points[members])


def _neighbours(points: Float[np.ndarray, "M P"], count: int) -> Int[np.ndarray, "M K"]:
    """The nearest other points of each, at most so many, with columns on a common scale."""
    spread = np.std(points, axis=0)
    scaled = points / np.where(spread > 0, spread, 1.0)
    squares = np.sum(scaled**2, axis=1)
    gaps = squares[:, None] + squares - 2 * scaled @ scaled.T
    np.fill_diagonal(gaps, np.inf)
    return np.argsort(gaps, axis=1, kind="stable")[:, : min(count, len(points) - 1)]
