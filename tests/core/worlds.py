"""Latent functions as the core has them and as textbooks do, and rows that observe them."""

import dataclasses

import numpy as np

from streamgp.inference.over_time.law import Law
from streamgp.inference.over_time.states import Rows, States
from streamgp.kernels import (
    CARMA,
    RBF,
    SHO,
    Constant,
    Cosine,
    Linear,
    Matern12,
    Matern32,
    Matern52,
)
from streamgp.kernels.state_space import multiplied_processes
from tests._reference import markov

ORIGIN = 1.5


def process_of(kernel):
    """That of a kernel with a single one."""
    (process,) = kernel.state_space()
    return process


def matern(order, lengthscale, variance):
    """A Matérn process of the library."""
    return process_of((Matern12, Matern32, Matern52)[order](lengthscale, variance))


def _wave(period, variance):
    return process_of(Cosine(period, variance)), markov.wave(period, variance)


def _matern(order, lengthscale, variance):
    return matern(order, lengthscale, variance), markov.matern(order, lengthscale, variance)


def _constant(variance):
    return process_of(Constant(variance)), markov.constant(variance)


def _product(*factors):
    state, process = factors[0]
    for other, of_other in factors[1:]:
        (state,) = multiplied_processes((state,), (other,))
        process = process * of_other
    return state, process


def _line(variance):
    return process_of(Linear(1.0, variance)), markov.line(1.0, variance)


def _oscillator(period, quality, variance):
    state = process_of(SHO(period, quality, variance))
    return state, markov.oscillator(period, quality, variance)


def _carma(alpha, beta, variance):
    state = process_of(CARMA.of(alpha, beta, variance=variance))
    return state, markov.driven(alpha, beta, variance)


def _smooth(lengthscale, variance):
    state = process_of(RBF(lengthscale, variance).as_markov(4))
    return state, markov.smooth(4, lengthscale, variance)


CASES = {
    "matern12": [_matern(0, 0.5, 1.3)],
    "matern32": [_matern(1, 0.7, 0.4)],
    "matern52": [_matern(2, 2.0, 0.9)],
    "constant": [_constant(2.0)],
    "line": [_line(0.2)],
    "harmonic": [_wave(1.6, 0.5)],
    "default": [_matern(0, 0.5, 0.3), _matern(1, 1.0, 0.4), _matern(2, 2.0, 0.5), _constant(2.0)],
    "trend": [_matern(1, 1.0, 0.4), _line(0.2), _constant(1.0)],
    "season": [*(_wave(2.0 / j, 0.5 / j**2) for j in range(1, 5)), _matern(0, 0.7, 0.2)],
    "evolving": [
        _product(_matern(0, 5.0, 0.4), _wave(1.6, 1.2)),
        _product(_wave(1.0, 0.5), _matern(1, 5.0, 0.8)),
        _product(_matern(2, 3.0, 0.6), _wave(2.5, 1.0)),
        _matern(0, 0.3, 0.1),
    ],
    "scaled": [_product(_product(_matern(0, 5.0, 0.4), _wave(1.6, 0.5)), _constant(2.0))],
    "beats": [_product(_wave(1.0, 0.4), _wave(3.0, 0.5)), _matern(0, 0.5, 0.2)],
    "two materns": [_product(_matern(0, 5.0, 0.4), _matern(1, 2.0, 1.3)), _wave(6.0, 0.2)],
    "all three": [_product(_matern(0, 5.0, 0.4), _matern(1, 2.0, 1.3), _wave(2.0, 0.5))],
    "oscillator": [_oscillator(2.0, 2.0, 0.7), _matern(0, 0.3, 0.1)],
    "carma": [_carma((2.0, 3.0, 1.5), (1.0, 0.4), 0.5)],
    "smooth": [_smooth(1.2, 0.6), _product(_oscillator(2.0, 2.0, 0.7), _wave(3.0, 0.4))],
}


@dataclasses.dataclass(frozen=True)
class World:
    """Two latent parameters, each with its own weights of two mean functions, that share functions.

    Attributes:
        states: The library's processes.
        processes: The same from textbooks.
        latent: The latent function that each belongs to.
        loadings: Of each latent parameter on each latent function.
        spreads: Of the mean functions' weights.
    """

    states: tuple
    processes: tuple
    latent: tuple
    loadings: np.ndarray
    spreads: np.ndarray

    @classmethod
    def of(cls, name, latents=1, seed=0):
        rng = np.random.default_rng(seed)
        states, processes = zip(*CASES[name], strict=True)
        latent = tuple(number % latents for number in range(len(states)))
        loadings = rng.normal(size=(2, latents))
        return cls(states, processes, latent, loadings, rng.uniform(0.5, 1.0, (2, 2)))

    def core(self):
        law = Law(self.states, self.latent, self.loadings.shape[1], ORIGIN)
        return States(law, self.loadings, self.spreads)

    def replaced(self, number, state):
        """The same with another state of the library; its textbook process stays."""
        states = (*self.states[:number], state, *self.states[number + 1 :])
        return dataclasses.replace(self, states=states)

    def covariance(self, rows):
        """Of f at rows."""
        same, total = rows.output[:, None] == rows.output, 0.0
        for process, latent in zip(self.processes, self.latent, strict=True):
            seen = self.loadings[rows.output, latent]
            own = process.covariance(rows.time - ORIGIN, rows.time - ORIGIN)
            total = total + np.outer(seen, seen) * own
        weighted = rows.basis * self.spreads[rows.output]
        return total + same * (weighted @ weighted.T)


def scattered(n, seed=0, *, asking=0.0):
    """Rows at irregular times, some of them ties, of both latent parameters."""
    rng = np.random.default_rng(seed)
    time = np.sort(rng.uniform(0, 8, n))
    time[n // 3 : n // 3 + 3] = time[n // 3]
    value = rng.normal(size=n)
    value[rng.uniform(size=n) < asking] = np.nan
    basis = np.column_stack([np.ones(n), time])
    return Rows(time, value, rng.uniform(0.05, 0.2, n), rng.integers(0, 2, n), basis)


def regular(n, seed=0):
    """Rows on a grid."""
    return scattered(n, seed)._replace(time=np.arange(n) / 12.0)
