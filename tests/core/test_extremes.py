"""Little noise, vast amplitudes, gaps of all sizes: the core against sixty digits."""

import numpy as np
import pytest

from streamgp.inference.over_time.law import Law
from streamgp.inference.over_time.states import Rows, States
from streamgp.kernels import SHO
from streamgp.kernels.state_space import LinearSDE, Process, multiplied_processes
from tests.core.digits import exact
from tests.core.worlds import matern, process_of

COUNT = 20
TIME = np.arange(COUNT) / 20.0
GAPS = np.cumsum(10.0 ** np.random.default_rng(1).uniform(-6, 6, COUNT))
PAIRS = np.sort(np.concatenate([TIME[::2], TIME[::2] + 1e-6]))
TIES = np.repeat(TIME[::2], 2)
DEFAULT = (matern(0, 0.3, 0.1), matern(1, 1.0, 0.2), matern(2, 3.0, 0.5))
LEVEL = (matern(1, 1.0, 1.0),)


def wave(frequency, variance):
    return Process(variance, waves=(frequency,))


def product(one, other):
    (found,) = multiplied_processes((one,), (other,))
    return found


def oscillator(variance, frequency, quality):
    return process_of(SHO(2 * np.pi / frequency, quality, variance))


def cosines(count):
    return tuple(wave(2 * np.pi * k, 100.0) for k in range(1, count + 1))


EVOLVING = tuple(product(matern(k % 3, 5.0, 100.0), wave(2 * np.pi * k, 1.0)) for k in (1, 2, 3))
CARMA = Process(0.5, driven=(LinearSDE(1.0, (2.0, 3.0, 1.5), (2.5,), free=(1, 2, 3, 4)),))
DRIVEN = (oscillator(2.0, 3.0, 2.5), CARMA, product(oscillator(1.0, 4.0, 0.8), wave(3.0, 1.0)))


def rows_of(time, noise, seed=0, asking=0.0):
    rng, count = np.random.default_rng(seed), len(time)
    value = np.cos(2 * np.pi * time) + np.sqrt(noise) * rng.normal(size=count)
    value[rng.uniform(size=count) < asking] = np.nan
    return Rows(time, value, np.full(count, noise), np.zeros(count, int), np.zeros((count, 0)))


def states_of(parts):
    law = Law(parts, (0,) * len(parts), 1, 0.0)
    return States(law, np.ones((1, 1)), np.zeros((1, 0)))


CASES = {
    "cosines": (cosines(8), TIME, (1e-2, 1e-6, 1e-10)),
    "cosines after many turns": (cosines(5), 1e7 + TIME, (1e-6,)),
    "cosines and a constant": ((*cosines(8), Process(1e8)), TIME, (1e-6,)),
    "default and cosines": ((*DEFAULT, *cosines(5), Process(1e4)), TIME, (1e-2, 1e-10)),
    "constants": ((*LEVEL, Process(1e8)), TIME, (1e-4, 1e-10)),
    "a smaller constant": ((*LEVEL, Process(1e4)), TIME, (1e-4, 1e-8)),
    "a line": ((*LEVEL, Process(100.0, is_line=True), Process(1e4)), TIME, (1e-6, 1e-10)),
    "smooth": ((matern(2, 50.0, 1.0),), TIME, (1e-4, 1e-8)),
    "evolving": (EVOLVING, TIME, (1e-2, 1e-6, 1e-10)),
    "driven": (DRIVEN, TIME, (1e-2, 1e-10)),
    "two Matérns": ((product(DEFAULT[0], DEFAULT[2]),), GAPS, (1e-6,)),
    "pairs": (DEFAULT, PAIRS, (1e-2, 1e-6)),
    "pairs of driven": (DRIVEN, PAIRS, (1e-2, 1e-6)),
    "ties": (DEFAULT, TIES, (1e-2, 1e-6)),
    # What a tie leaves of what moves is a difference, with as many digits as noise over variance.
    "ties, evolving": (EVOLVING, TIES, (1e-4,)),
    "gaps": (DEFAULT, GAPS, (1e-2, 1e-6)),
    "gaps, evolving": (EVOLVING, GAPS, (1e-2, 1e-6)),
    "gaps, driven": (DRIVEN, GAPS, (1e-2, 1e-6)),
}
NOISES = pytest.mark.parametrize(
    ("name", "noise"), [(name, noise) for name, (*_, noises) in CASES.items() for noise in noises]
)


@NOISES
def test_against_sixty_digits(name, noise):
    """Everything, at rows and between them."""
    parts, time, _ = CASES[name]
    rows = rows_of(time, noise, asking=0.25)
    core, wanted, seen = states_of(parts), exact(parts, rows), ~np.isnan(rows.value)
    value, mean, variance = core.smoothed(rows)
    prior = max(part.variance * (time[-1] ** 2 if part.is_line else 1) for part in parts)
    np.testing.assert_allclose(value, wanted.value, rtol=1e-8)
    np.testing.assert_allclose(mean, wanted.mean, atol=1e-8 * np.sqrt(prior))
    np.testing.assert_allclose(variance, wanted.variance, atol=1e-8 * prior)
    # At rows relative to what is left, too: digits are not lost where noise is small.
    np.testing.assert_allclose(variance[seen], wanted.variance[seen], rtol=1e-6)
    assert np.all(variance > 0)
    found = core.evidence(rows)
    by_numbers = found.by_numbers - wanted.by_numbers
    np.testing.assert_array_less(np.abs(by_numbers), 1e-8 * scales(parts, time, wanted))
    by_noise, most = rows.noise * wanted.by_noise, np.abs(rows.noise * wanted.by_noise).max()
    np.testing.assert_allclose(rows.noise * found.by_noise, by_noise, atol=1e-8 * max(1.0, most))


def scales(parts, time, wanted):
    """What errors of derivatives are measured by: the largest one, and for frequencies angles."""
    most, found = max(1.0, np.abs(wanted.by_numbers).max()), []
    for part in parts:
        angle = max((frequency * time[-1] for frequency in part.waves), default=1.0)
        found += [most * max(1.0, angle)] * len(part.numbers)
    return np.array(found)


def test_nothing_is_negative_or_odd_over_a_long_stream():
    time = np.arange(20_000) / 12.0
    for noise in (1e-6, 1e-10):
        rows = rows_of(time, noise)
        for parts in (
            (*cosines(8), Process(1e8)),
            (*DEFAULT, *cosines(3)),
            (*EVOLVING, Process(1e4, is_line=True)),
        ):
            value, mean, variance = states_of(parts).smoothed(rows)
            assert np.isfinite(value)
            assert np.isfinite(mean).all()
            assert np.all(variance > 0)
            assert np.all(variance <= noise * (1 + 1e-9))
