"""Functions of time from textbook formulas: stochastic differential equations and dense GPs.

Nothing here is shared with the library. Transitions are matrix exponentials, stationary covariances
solve Lyapunov equations, filter and smoother are plain loops, and inverses are inverses.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag, expm, solve_continuous_lyapunov, solve_triangular
from scipy.special import comb

from tests._reference.dense import exact_gp, log_normal

HARMONICS = 8  # of a periodic function: where the library cuts its cosine series off
_CIRCLE = 256  # points of a period at which its kernel is looked at


class Part(NamedTuple):
    """ds = F·s dt + noise of spectral density D; the function is readout·s."""

    drift: np.ndarray
    diffusion: np.ndarray
    readout: np.ndarray
    start: Callable  # the covariance of s at a time, before any data

    def over(self, begin, end):
        """A and Q from a time to another, by Van Loan's matrix exponential.

        Over long gaps that would overflow, and what is left of the prior says the same.
        """
        size, gap = len(self.readout), end - begin
        if gap * np.abs(self.drift).max() > 2 and self.diffusion.any():
            a = expm(self.drift * gap)
            return a, self.start(end) - a @ self.start(begin) @ a.T
        whole = np.block([[-self.drift, self.diffusion], [np.zeros((size, size)), self.drift.T]])
        both = expm(whole * gap)
        a = both[size:, size:].T
        return a, a @ both[:size, size:]


class Process(NamedTuple):
    """A function of time: its independent parts, and its covariance k(a, b)."""

    parts: tuple
    covariance: Callable

    def __add__(self, other):
        return Process(
            self.parts + other.parts,
            lambda a, b: self.covariance(a, b) + other.covariance(a, b),
        )

    def __mul__(self, other):
        return Process(
            tuple(_product(a, b) for a in self.parts for b in other.parts),
            lambda a, b: self.covariance(a, b) * other.covariance(a, b),
        )


def _distance(a, b):
    return np.abs(np.asarray(a)[:, None] - np.asarray(b)[None, :])


def _stationary(drift, diffusion, readout):
    covariance = solve_continuous_lyapunov(drift, -diffusion)
    return Part(drift, diffusion, readout, lambda time: covariance)


def matern(order, lengthscale, variance):
    """Matérn of smoothness order + ½: white noise through (rate + d/dt)^(order + 1)."""
    size, rate = order + 1, np.sqrt(2 * order + 1) / lengthscale
    drift = np.eye(size, k=1)
    drift[-1] = [-comb(size, k) * rate ** (size - k) for k in range(size)]
    diffusion = np.zeros((size, size))
    diffusion[-1, -1] = variance * (2, 4, 16 / 3)[order] * rate ** (2 * order + 1)

    def covariance(a, b):
        r = rate * _distance(a, b)
        return variance * np.exp(-r) * (1, 1 + r, 1 + r + r**2 / 3)[order]

    return Process((_stationary(drift, diffusion, np.eye(size)[0]),), covariance)


def driven(alpha, beta, variance):
    """Σ β_k x⁽ᵏ⁾ where x⁽ᵖ⁾ = −Σ α_k x⁽ᵏ⁾ + white noise, as strong as the variance asks for."""
    size = len(alpha)
    drift, diffusion = np.eye(size, k=1), np.zeros((size, size))
    drift[-1], diffusion[-1, -1] = -np.array(alpha), 1.0
    readout = np.append(beta, np.zeros(size - len(beta)))
    unit = solve_continuous_lyapunov(drift, -diffusion)
    strength = variance / (readout @ unit @ readout)

    def covariance(a, b):
        return (
            readout @ expm(drift * _distance(a, b)[:, :, None, None]) @ (strength * unit @ readout)
        )

    return Process((_stationary(drift, strength * diffusion, readout),), covariance)


def oscillator(period, quality, variance):
    """A damped oscillator, with the covariance as printed by Foreman-Mackey et al. (2017)."""
    speed = 2 * np.pi / period
    part = driven([speed**2, speed / quality], [1.0], variance).parts

    def covariance(a, b):
        t = speed * _distance(a, b)
        root = np.sqrt(np.abs(1 - 1 / (4 * quality**2)))
        wave = (np.cos, np.sin) if quality > 0.5 else (np.cosh, np.sinh)
        swing = wave[0](root * t) + wave[1](root * t) / (2 * root * quality)
        return variance * np.exp(-t / (2 * quality)) * swing

    return Process(part, covariance)


def smooth(order, lengthscale, variance):
    """White noise through 1/Σ (ω²ℓ²/2)^n/n!, by the roots of that polynomial."""
    even = [(-0.5 * lengthscale**2) ** n / math.factorial(n) for n in range(order + 1)]
    squares = np.roots(even[::-1])  # of s²
    roots = -np.sqrt(squares.astype(complex))
    return driven(np.poly(roots).real[:0:-1], [1.0], variance)


def wave(period, variance):
    """Oscillations of constant amplitude."""
    speed, own = 2 * np.pi / period, variance * np.eye(2)
    part = Part(
        np.array([[0.0, -speed], [speed, 0.0]]), np.zeros((2, 2)), np.array([1.0, 0.0]),
        lambda time: own,
    )  # fmt: skip
    return Process((part,), lambda a, b: variance * np.cos(speed * _distance(a, b)))


def constant(variance):
    still = np.zeros((1, 1))
    part = Part(still, still, np.ones(1), lambda time: np.full((1, 1), variance))
    return Process((part,), lambda a, b: np.full((len(a), len(b)), variance))


def line(lengthscale, variance):
    """Straight lines through the origin: where they are, and their slope."""
    slope = variance / lengthscale**2
    part = Part(
        np.array([[0.0, 1.0], [0.0, 0.0]]), np.zeros((2, 2)), np.array([1.0, 0.0]),
        lambda time: slope * np.outer([time, 1.0], [time, 1.0]),
    )  # fmt: skip
    return Process((part,), lambda a, b: slope * np.outer(a, b))


def periodic(lengthscale, variance, period):
    """The cosine series of exp(−2 sin²(πt/period)/ℓ²), cut off, and scaled to the variance."""
    turn = np.arange(_CIRCLE) / _CIRCLE
    along = np.exp(-2 * np.sin(np.pi * turn) ** 2 / lengthscale**2)
    weights = np.fft.rfft(along).real[: HARMONICS + 1] / _CIRCLE
    weights[1:] *= 2
    weights *= variance / np.sum(weights)
    parts = list(constant(weights[0]).parts)
    for j, weight in enumerate(weights[1:], 1):
        speed, own = 2 * np.pi * j / period, weight * np.eye(2)
        parts.append(
            Part(
                np.array([[0.0, -speed], [speed, 0.0]]), np.zeros((2, 2)), np.array([1.0, 0.0]),
                lambda time, own=own: own,
            )
        )  # fmt: skip

    def covariance(a, b):
        angle = 2 * np.pi * _distance(a, b) / period
        return sum(weight * np.cos(j * angle) for j, weight in enumerate(weights))

    return Process(tuple(parts), covariance)


def _product(one, other):
    """Two stationary states: the Kronecker sum of their drifts."""
    eyes = np.eye(len(one.readout)), np.eye(len(other.readout))
    drift = np.kron(one.drift, eyes[1]) + np.kron(eyes[0], other.drift)
    covariance = np.kron(one.start(0.0), other.start(0.0))
    diffusion = -(drift @ covariance + covariance @ drift.T)
    readout = np.kron(one.readout, other.readout)
    return Part(drift, diffusion, readout, lambda time: covariance)


# -- several channels ------------------------------------------------------------------------------


class World(NamedTuple):
    """Gaussian channels that mix functions of time: offset + level + weights·u + noise.

    Levels are normal with the given spreads. Time is counted from `origin`.
    """

    processes: tuple
    weights: np.ndarray  # (D, Q)
    offsets: np.ndarray
    spreads: np.ndarray
    noises: np.ndarray
    origin: float = 0.0

    def covariance(self, a, of_a, b, of_b):
        """Of f, between inputs a of channels of_a and inputs b of channels of_b."""
        total = (of_a[:, None] == of_b) * self.spreads[of_a][:, None] ** 2
        for q, process in enumerate(self.processes):
            own = process.covariance(a - self.origin, b - self.origin)
            total = total + np.outer(self.weights[of_a, q], self.weights[of_b, q]) * own
        return total

    def parts(self):
        """All states, and the loading of each channel on each number; levels are the last."""
        found, loadings = [], []
        for q, process in enumerate(self.processes):
            for part in process.parts:
                found.append(part)
                loadings.append(np.outer(self.weights[:, q], part.readout))
        for d, spread in enumerate(self.spreads):
            found += constant(spread**2).parts
            loadings.append(np.eye(len(self.spreads))[:, d : d + 1])
        return found, np.concatenate(loadings, axis=1)


class Rows(NamedTuple):
    """Observations y at times x of channels with these numbers."""

    x: np.ndarray
    channel: np.ndarray
    y: np.ndarray

    def take(self, which):
        return Rows(self.x[which], self.channel[which], self.y[which])


class Found(NamedTuple):
    """Mean and covariance of f somewhere, and the log evidence."""

    mean: np.ndarray
    covariance: np.ndarray
    evidence: float


def exact(world, rows, x, channel):
    """The dense GP of all rows, at inputs x of channels."""
    mean, covariance, evidence = exact_gp(
        world.covariance(rows.x, rows.channel, rows.x, rows.channel),
        world.covariance(rows.x, rows.channel, x, channel),
        world.covariance(x, channel, x, channel),
        rows.y - world.offsets[rows.channel],
        world.noises[rows.channel] ** 2,
    )
    return Found(mean + world.offsets[channel], covariance, evidence)


def evidence(world, rows):
    """The log evidence of the dense GP alone."""
    total = world.covariance(rows.x, rows.channel, rows.x, rows.channel)
    chol = np.linalg.cholesky(total + np.diag(world.noises[rows.channel] ** 2))
    rest = solve_triangular(chol, rows.y - world.offsets[rows.channel], lower=True)
    log_det = 2 * np.sum(np.log(np.diag(chol))) + len(rest) * np.log(2 * np.pi)
    return -0.5 * (log_det + rest @ rest)


def smoothed(world, rows, x, channel):
    """The same by a Kalman filter and an RTS smoother; variances only.

    The smoother has Bryson and Frazier's form, which inverts no covariance: those of parts that
    never change are singular.
    """
    parts, loadings = world.parts()
    times = np.unique(np.concatenate([rows.x, x]))
    mean = np.zeros(loadings.shape[1])
    covariance = block_diag(*(part.start(times[0] - world.origin) for part in parts))
    filtered, steps, heard, evidence = [], [np.eye(len(mean))], [], 0.0
    for i, time in enumerate(times):
        if i:
            pieces = [part.over(times[i - 1], time) for part in parts]
            a, q = (block_diag(*own) for own in zip(*pieces, strict=True))
            mean, covariance = a @ mean, a @ covariance @ a.T + q
            steps.append(a)
        heard.append([])
        for n in np.flatnonzero(rows.x == time):
            d = rows.channel[n]
            h, rest = loadings[d], rows.y[n] - world.offsets[d] - loadings[d] @ mean
            total = h @ covariance @ h + world.noises[d] ** 2
            gain = covariance @ h / total
            mean, covariance = mean + gain * rest, covariance - np.outer(gain, gain) * total
            evidence += log_normal(np.array([rest]), np.zeros(1), np.array([[total]]))
            heard[-1].append((h, rest, total, gain))
        filtered.append((mean, covariance))
    pull, bend = np.zeros(len(mean)), np.zeros((len(mean), len(mean)))
    known = []
    for (mean, covariance), a, said in zip(filtered[::-1], steps[::-1], heard[::-1], strict=True):
        known.append((mean + covariance @ pull, covariance - covariance @ bend @ covariance))
        for h, rest, total, gain in said[::-1]:
            left = np.eye(len(h)) - np.outer(gain, h)
            pull = h * rest / total + left.T @ pull
            bend = np.outer(h, h) / total + left.T @ bend @ left
        pull, bend = a.T @ pull, a.T @ bend @ a
    at = [known[::-1][i] for i in np.searchsorted(times, x)]
    pairs = list(zip(channel, at, strict=True))
    found = np.array([world.offsets[d] + loadings[d] @ mean for d, (mean, _) in pairs])
    variance = np.array([loadings[d] @ own @ loadings[d] for d, (_, own) in pairs])
    return Found(found, np.diag(variance), evidence)
