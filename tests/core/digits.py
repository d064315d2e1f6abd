"""Gaussian processes over time in sixty digits: dense matrices of textbook kernels."""

from typing import NamedTuple

import mpmath
import numpy as np

DIGITS = 60
_STEP = mpmath.mpf("1e-20")  # in log units: differences are then right to forty digits


class Exact(NamedTuple):
    """The log evidence, f at all rows given those with values, and the evidence's gradient."""

    value: float
    mean: np.ndarray
    variance: np.ndarray
    by_numbers: np.ndarray
    by_noise: np.ndarray


def exact(parts, rows):
    """All of it, where NaN marks rows that only ask."""
    with mpmath.workdps(DIGITS):
        return _exact([(part, list(map(mpmath.mpf, part.numbers))) for part in parts], rows)


def _exact(parts, rows):
    times, seen = [mpmath.mpf(t) for t in rows.time.tolist()], np.flatnonzero(~np.isnan(rows.value))
    prior = sum(
        (_gram(part, numbers, times) for part, numbers in parts), start=mpmath.zeros(len(times))
    )
    own = mpmath.matrix([[prior[i, j] for j in seen.tolist()] for i in seen.tolist()])
    noise = [mpmath.mpf(n) for n in rows.noise[seen].tolist()]
    total = own + mpmath.diag(noise)
    inverse, y = total**-1, mpmath.matrix(rows.value[seen].tolist())
    alpha, root = inverse * y, mpmath.cholesky(total)
    value = -(y.T * alpha)[0] / 2 - len(seen) * mpmath.log(2 * mpmath.pi) / 2
    value -= sum(mpmath.log(root[i, i]) for i in range(len(seen)))
    mean, variance = [], []
    for n in range(len(times)):
        cross = mpmath.matrix([prior[n, j] for j in seen.tolist()])
        mean.append(float((cross.T * alpha)[0]))
        variance.append(float(prior[n, n] - (cross.T * inverse * cross)[0]))
    pull = alpha * alpha.T - inverse
    by_numbers = []
    for part, numbers in parts:
        for number in range(len(numbers)):
            larger, smaller = (
                _gram(part, _shifted(numbers, number, step), [times[i] for i in seen])
                for step in (_STEP, -_STEP)
            )
            by_numbers.append(_trace(pull, larger - smaller) / (4 * _STEP))
    by_noise = np.zeros(len(times))
    by_noise[seen] = [float(pull[i, i] / 2) for i in range(len(seen))]
    return Exact(
        float(value),
        np.array(mean),
        np.array(variance),
        np.array(list(map(float, by_numbers))),
        by_noise,
    )


def _shifted(numbers, which, step):
    return [n * mpmath.exp(step) if i == which else n for i, n in enumerate(numbers)]


def _trace(a, b):
    return sum(a[i, j] * b[i, j] for i in range(a.rows) for j in range(a.cols))


def _gram(part, numbers, times):
    kernel, count = _kernel(part, numbers), len(times)
    found = mpmath.zeros(count)
    for i in range(count):
        for j in range(i + 1):
            found[i, j] = found[j, i] = kernel(times[i], times[j])
    return found


def _kernel(part, numbers):
    """k(a, b) of a part with these numbers."""
    left = iter(numbers)
    variance = next(left)
    if part.is_line:
        return lambda a, b: variance * a * b
    factors = [_wave(next(left)) for _ in part.waves]
    factors += [_factor(factor, [next(left) for _ in factor.free]) for factor in part.driven]
    return lambda a, b: variance * mpmath.fprod(factor(a, b) for factor in factors)


def _wave(frequency):
    return lambda a, b: mpmath.cos(frequency * (a - b))


def _factor(factor, numbers):
    """k(a, b) of what noise drives, with these numbers."""
    if factor.matern_order is not None:
        return _matern(factor.matern_order, mpmath.mpf(1), numbers[0])
    every = [mpmath.mpf(n) for n in (factor.rate, *factor.alpha, *factor.beta)]
    for place, number in zip(factor.free, numbers, strict=True):
        every[place] = number
    rate, *rest = every
    size = len(factor.alpha)
    alpha = [a * rate ** (size - k) for k, a in enumerate(rest[:size])]
    return _driven(alpha, [*rest[size:], mpmath.mpf(1)], mpmath.mpf(1))


def _matern(order, variance, rate):
    def kernel(a, b):
        r = rate * abs(a - b)
        return variance * mpmath.exp(-r) * (1, 1 + r, 1 + r + r * r / 3)[order]

    return kernel


def _driven(alpha, beta, variance):
    """By residues: Σ β(s)β(−s) exp(s·gap)/(α′(s) α(−s)) over the roots s of α."""
    monic = [*alpha, mpmath.mpf(1)]
    slope = [k * c for k, c in enumerate(monic)][1:]
    found = []
    for start in np.roots([float(c) for c in monic[::-1]]):
        s = mpmath.mpmathify(complex(start))
        for _ in range(8):  # Newton's method doubles the digits
            s -= _at(monic, s) / _at(slope, s)
        found.append((s, _at(beta, s) * _at(beta, -s) / (_at(slope, s) * _at(monic, -s))))
    scale = variance / sum(residue for _, residue in found)
    return lambda a, b: mpmath.re(scale * sum(r * mpmath.exp(s * abs(a - b)) for s, r in found))


def _at(coefficients, s):
    return sum(c * s**k for k, c in enumerate(coefficients))
