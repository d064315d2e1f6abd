"""Waves, and oscillators that noise keeps moving. They are kernels of one input."""

import dataclasses
from typing import NamedTuple, Self

import numpy as np

from streamgp.kernels.base import Gradient
from streamgp.kernels.one_input import OneInput, differences
from streamgp.kernels.scaled import filled, number
from streamgp.kernels.shapes import Columns, Inputs, Matrix, Others
from streamgp.kernels.state_space import LinearSDE, Process
from streamgp.parameters import Parameter, Positive
from streamgp.registry import storable

_SHORT_START = 0.5  # of a period, in spreads of the inputs: a few turns in the first batch
_FEW = 1.0  # |c|·t² up to which differences are taken from their series
_TERMS = 12


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Cosine(OneInput):
    """Waves of one period and constant amplitude, over one input.

    Args:
        period: In the units of the input (days, for times); positive. It starts at 1 by default,
            and is learned, unless it is given as `fixed(…)`.
        variance: The variance of the functions. See `RBF`.

    Examples:
        >>> import streamgp as sgp
        >>> tide = sgp.kernels.Cosine(period=sgp.fixed(0.5175))
        >>> sgp.ContinualGP(sgp.Gaussian(), latents=tide).channels
        ('y',)
    """

    period: Parameter = 1.0
    variance: Parameter = None

    def matrix(self, x1: Inputs, x2: Others) -> Matrix:
        return self.variance * np.cos(self._angles(x1, x2))

    def pullback(
        self, x1: Inputs, x2: Others, weights: Matrix, matrix: Matrix | None = None
    ) -> Gradient:
        angles = self._angles(x1, x2)
        turned = np.vdot(weights, angles * np.sin(angles))
        return {
            "period": turned * (self.variance / self.period),
            "variance": np.vdot(weights, np.cos(angles)),
        }

    def input_gradient(
        self, x1: Inputs, x2: Others, weights: Matrix, matrix: Matrix | None = None
    ) -> Inputs:
        slope = -2 * np.pi / self.period * self.variance * np.sin(self._angles(x1, x2))
        return np.sum(weights * slope, axis=1, keepdims=True)

    def shortest_waves(self, width: int) -> Columns:
        return np.full(width, number(self.period))

    def state_space(self) -> tuple[Process, ...] | None:
        return (Process(number(self.variance), waves=(2 * np.pi / number(self.period),)),)

    def _angles(self, x1: np.ndarray, x2: np.ndarray) -> Matrix:
        return (2 * np.pi / self.period) * differences(x1, x2)


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class SHO(OneInput):
    """A damped harmonic oscillator that white noise keeps moving, over one input.

    With g = 1/(2·quality), c = 1 − g² and t = 2π·|x − x′|/period, the covariance is
    variance·exp(−g·t)·(cos(√c·t) + g·sin(√c·t)/√c). Above a quality of a half functions swing, and
    keep their rhythm for about as many turns as the quality says. Below it they creep back to
    zero. At a half the kernel is a Matérn-3/2.

    Args:
        period: Of the oscillator without damping, in the units of the input; positive. If left out,
            it starts from the spread of the inputs.
        quality: How little it is damped; positive. It starts at 1 by default, and is learned,
            unless it is given as `fixed(…)`.
        variance: The variance of the functions. See `RBF`.

    Examples:
        >>> import streamgp as sgp
        >>> rhythm = sgp.SHO(period=11.0, quality=3.0)
        >>> sgp.ContinualGP(sgp.Gaussian(), latents=rhythm).channels
        ('y',)
    """

    period: Parameter = None
    quality: Parameter = 1.0
    variance: Parameter = None

    def started(self, spread: Columns, variance: Parameter) -> Self:
        self.check(spread)
        start = Positive(_SHORT_START * spread[0], centre=spread[0])
        return filled(self, period=start, variance=variance)

    def matrix(self, x1: Inputs, x2: Others) -> Matrix:
        swing = self._swing(x1, x2)
        return self.variance * (swing.cosine + self._damping * swing.sine)

    def pullback(
        self, x1: Inputs, x2: Others, weights: Matrix, matrix: Matrix | None = None
    ) -> Gradient:
        swing, g = self._swing(x1, x2), self._damping
        later = np.vdot(weights, swing.time * swing.sine)
        # ∂k/∂g is variance·exp(−g·t)·(S − t·C)/c with C and S the cosine and sine parts.
        damped = np.vdot(weights, swing.lag(1 - float(g) ** 2))
        return {
            "period": later * (self.variance / self.period),
            "quality": damped * (-2.0 * g**2 * self.variance),
            "variance": np.vdot(weights, swing.cosine + g * swing.sine),
        }

    def input_gradient(
        self, x1: Inputs, x2: Others, weights: Matrix, matrix: Matrix | None = None
    ) -> Inputs:
        slope = np.sign(differences(x1, x2)) * self._swing(x1, x2).sine
        slope *= -2 * np.pi / self.period * self.variance
        return np.sum(weights * slope, axis=1, keepdims=True)

    def shortest_waves(self, width: int) -> Columns:
        return np.full(width, number(self.period))

    def state_space(self) -> tuple[Process, ...] | None:
        frequency = 2 * np.pi / number(self.period)
        damped = LinearSDE(frequency, (1.0, 1.0 / number(self.quality)), free=(0, 2))
        return (Process(number(self.variance), driven=(damped,)),)

    @property
    def _damping(self) -> Parameter:
        """g."""
        return 0.5 / self.quality

    def _swing(self, x1: np.ndarray, x2: np.ndarray) -> "_Swing":
        time = (2 * np.pi / self.period) * np.abs(differences(x1, x2))
        return _Swing.of(time, number(self._damping))


class _Swing(NamedTuple):
    """exp(−g·t) times cos(√c·t), times sin(√c·t)/√c, and by itself; hyperbolic where c < 0."""

    time: Matrix
    cosine: Matrix
    sine: Matrix
    decay: Matrix

    @classmethod
    def of(cls, time: Matrix, damping: float) -> "_Swing":
        c, decay = 1 - damping**2, np.exp(-damping * time)
        if c >= 0:
            angle = np.sqrt(c) * time
            return cls(time, decay * np.cos(angle), decay * time * np.sinc(angle / np.pi), decay)
        rate = np.sqrt(-c)
        slow = np.exp(-time / (damping + rate))  # damping − rate, without cancellation
        gone = -np.expm1(-2 * rate * time)
        return cls(time, slow * (1 - 0.5 * gone), slow * gone / (2 * rate), decay)

    def lag(self, c: float) -> Matrix:
        """exp(−g·t)·(S − t·C)/c. Where S and t·C are nearly equal it is a series in c·t²."""
        near = abs(c) * self.time**2 < _FEW
        found = (self.sine - self.time * self.cosine) / (c if c else 1.0)
        t = self.time[near]
        total, term = np.zeros_like(t), t**3 / 3.0
        for n in range(1, _TERMS):  # Σ (−1)^(n+1) c^(n−1) t^(2n+1)·2n/(2n+1)!
            total += term
            term = term * (-c * t**2) * ((n + 1) / (n * (2 * n + 2) * (2 * n + 3)))
        found[near] = self.decay[near] * total
        return found
