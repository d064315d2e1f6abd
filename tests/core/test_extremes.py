"""Little noise, vast amplitudes, gaps of all sizes: the core against sixty digits."""

import mpmath
import numpy as np
import pytest

from streamgp.inference.over_time.law import Law
from streamgp.inference.over_time.states import Rows, States
from streamgp.kernels.state_space import ConstantState, HarmonicState, MaternState

COUNT = 24
TIME = np.arange(COUNT) / 12.0
DEFAULT = (MaternState(0, 0.3, 0.1), MaternState(1, 1.0, 0.2), MaternState(2, 3.0, 0.5))


def cosines(count):
    return tuple(HarmonicState(2 * np.pi * k, 100.0) for k in range(1, count + 1))


def covariance(part, apart):
    if isinstance(part, ConstantState):
        return mpmath.mpf(part.variance)
    if isinstance(part, HarmonicState):
        return part.variance * mpmath.cos(mpmath.mpf(part.frequency) * apart)
    r = mpmath.sqrt(2 * part.order + 1) / mpmath.mpf(part.lengthscale) * apart
    return part.variance * mpmath.exp(-r) * (1, 1 + r, 1 + r + r * r / 3)[part.order]


def exact(parts, rows):
    """Log evidence, and mean and variance of f at rows."""
    count = len(rows.time)
    with mpmath.workdps(60):
        times = [mpmath.mpf(t) for t in rows.time.tolist()]
        prior = mpmath.matrix(count, count)
        for i in range(count):
            for j in range(i + 1):
                apart = abs(times[i] - times[j])
                prior[i, j] = prior[j, i] = sum(covariance(part, apart) for part in parts)
        total = prior + mpmath.diag(rows.noise.tolist())
        inverse = total**-1
        y = mpmath.matrix(rows.value.tolist())
        weights = inverse * y
        # What is left of f at a row is noise·(1 − noise·inverse): no difference of large numbers.
        left = [n - n * n * inverse[i, i] for i, n in enumerate(map(mpmath.mpf, rows.noise))]
        root = mpmath.cholesky(total)
        value = -(y.T * weights)[0] / 2 - count * mpmath.log(2 * mpmath.pi) / 2
        value -= sum(mpmath.log(root[i, i]) for i in range(count))
        mean = [float(m) for m in prior * weights]
        return value, np.array(mean), np.array([float(v) for v in left])


def rows_of(time, noise, seed=0):
    rng, count = np.random.default_rng(seed), len(time)
    value = np.sin(time) + 0.1 * rng.normal(size=count)
    return Rows(time, value, np.full(count, noise), np.zeros(count, int), np.zeros((count, 0)))


def states_of(parts):
    law = Law(parts, (0,) * len(parts), 1, 0.0)
    return States(law, np.ones((1, 1)), np.zeros((1, 0)))


CASES = {
    "cosines": (cosines(5), TIME, (1e-2, 1e-6, 1e-10)),
    "more cosines": ((*cosines(8), ConstantState(1.0)), TIME, (1e-6, 1e-10)),
    "default and cosines": ((*DEFAULT, *cosines(5), ConstantState(1e4)), TIME, (1e-2, 1e-10)),
    "constants": ((MaternState(1, 1.0, 1.0), ConstantState(1e8)), TIME, (1e-4, 1e-10)),
    "a smaller constant": ((MaternState(1, 1.0, 1.0), ConstantState(1e4)), TIME, (1e-4, 1e-8)),
    "smooth": ((MaternState(2, 50.0, 1.0),), TIME, (1e-4, 1e-8)),
    "pairs": (DEFAULT, np.sort(np.concatenate([TIME[::2], TIME[::2] + 1e-6])), (1e-2, 1e-6)),
    "ties": (DEFAULT, np.repeat(TIME[::2], 2), (1e-2, 1e-6)),
    "gaps": (
        DEFAULT,
        np.cumsum(10.0 ** np.random.default_rng(1).uniform(-6, 6, COUNT)),
        (1e-2, 1e-6),
    ),
}


@pytest.mark.parametrize(
    ("name", "noise"), [(name, noise) for name, (*_, noises) in CASES.items() for noise in noises]
)
def test_against_sixty_digits(name, noise):
    parts, time, _ = CASES[name]
    rows = rows_of(time, noise)
    wanted, exact_mean, exact_variance = exact(parts, rows)
    value, mean, variance = states_of(parts).smoothed(rows)
    prior = sum(float(covariance(part, mpmath.mpf(0))) for part in parts)
    np.testing.assert_allclose(value, float(wanted), rtol=1e-8)
    np.testing.assert_allclose(mean, exact_mean, atol=1e-8 * np.sqrt(prior))
    np.testing.assert_allclose(variance, exact_variance, atol=1e-8 * prior)
    # Relative to what is left, too: digits are not lost where noise is small.
    np.testing.assert_allclose(variance, exact_variance, rtol=1e-6)
    assert np.all(variance > 0)


@pytest.mark.parametrize("name", ["cosines", "default and cosines", "pairs"])
def test_gradient_against_sixty_digits(name):
    """By log variances, of which blocks without noise have nothing else but frequencies."""
    parts, time, _ = CASES[name]
    rows = rows_of(time, 1e-6)
    found = states_of(parts).evidence(rows).by_numbers
    step, place = 1e-6, 0
    for number, part in enumerate(parts):
        if number % 3 == 0:
            at = [
                exact((*parts[:number], part.scaled(np.exp(s)), *parts[number + 1 :]), rows)[0]
                for s in (-step, step)
            ]
            wanted = float((at[1] - at[0]) / (2 * step))
            np.testing.assert_allclose(found[place], wanted, rtol=1e-4, atol=1e-4)
        place += len(part.numbers())


def test_nothing_is_negative_or_odd_over_a_long_stream():
    time = np.arange(20_000) / 12.0
    for noise in (1e-6, 1e-10):
        rows = rows_of(time, noise)
        for parts in ((*cosines(8), ConstantState(1e8)), (*DEFAULT, *cosines(3))):
            value, mean, variance = states_of(parts).smoothed(rows)
            assert np.isfinite(value)
            assert np.isfinite(mean).all()
            assert np.all(variance > 0)
            assert np.all(variance <= noise * (1 + 1e-9))
