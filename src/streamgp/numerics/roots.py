"""Roots of many monotone functions at once."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

_STEPS = 100
_TINY = 1e-300
_SMALL = 1e-30  # values below it are told apart as numbers, not by magnitude

Evaluate = Callable[
    [np.ndarray, Float[np.ndarray, " R"]], tuple[Float[np.ndarray, " R"], Float[np.ndarray, " R"]]
]


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def chandrupatla(
    evaluate: Evaluate,
    ends: Float[np.ndarray, "2 N"],
    heights: Float[np.ndarray, "2 N"],
    narrow: float | None,
    exact: float,
) -> tuple[Float[np.ndarray, " N"], Float[np.ndarray, " N"]]:
    """A root, or the upper end of a bracket of width `narrow`; and the error at the last point.

    Inverse quadratic interpolation where the last three points allow it, else halving. Rows that
    are done are not evaluated again.

    Args:
        evaluate: From the numbers of some rows and a point for each, heights and errors there.
        ends: A bracket per row.
        heights: The function there, below zero and not below zero.
        narrow: The width that a bracket may have, where the function is one of steps.
        exact: The height that is taken for zero, where it is not.
    """
    (a, b), (fa, fb) = ends.copy(), heights.copy()
    t, error, left = np.full(a.shape, 0.5), np.zeros(a.shape), np.arange(len(a))
    for _ in range(_STEPS):
        if not len(left):
            break
        x = a[left] + t[left] * (b[left] - a[left])
        fx, error[left] = evaluate(left, x)
        crossed = (fx >= 0) != (fa[left] >= 0)
        c, fc = np.where(crossed, b[left], a[left]), np.where(crossed, fb[left], fa[left])
        b[left] = np.where(crossed, a[left], b[left])
        fb[left] = np.where(crossed, fa[left], fb[left])
        a[left], fa[left] = x, fx
        t[left], share = _next((x, fx), (b[left], fb[left]), (c, fc), narrow)
        done = (share > 0.5) | ((np.abs(fx) < exact) & (narrow is None))
        left = left[~done]
    upper, nearer = fa >= 0, np.abs(fa) < np.abs(fb)
    return np.where(nearer if narrow is None else upper, a, b), error


def _next(
    now: tuple[np.ndarray, np.ndarray],
    other: tuple[np.ndarray, np.ndarray],
    before: tuple[np.ndarray, np.ndarray],
    narrow: float | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Where to go on between this point and the other end, and how short a step may be."""
    (x, fx), (b, fb), (c, fc) = now, other, before
    limit = 1e-13 * (np.abs(x) + np.abs(b)) + _TINY if narrow is None else 0.5 * narrow
    share = limit / (np.abs(b - x) + _TINY)
    xi, phi = (x - b) / (c - b), (fx - fb) / (fc - fb)
    smooth = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
    bent = fx / (fb - fx) * fc / (fb - fc) + (c - x) / (b - x) * fx / (fc - fx) * fb / (fc - fb)
    half = (_between(x, b) - x) / (b - x)
    t = np.where(smooth & np.isfinite(bent), bent, half)
    return np.clip(t, share, np.maximum(share, 1 - share)), share


def _between(a: Float[np.ndarray, " N"], b: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """Halfway: by value where the two are close, else by magnitude.

    A variance of 1e80 may belong to a quantile of 1e-3, which halving by value would not reach.
    """
    is_close = np.abs(b - a) <= 0.5 * np.maximum(np.abs(a), np.abs(b))
    magnitude = 0.5 * (np.arcsinh(a / _SMALL) + np.arcsinh(b / _SMALL))
    return np.where(is_close, 0.5 * (a + b), _SMALL * np.sinh(magnitude))
