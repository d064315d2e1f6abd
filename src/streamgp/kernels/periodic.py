"""The periodic kernel."""

import dataclasses
from typing import ClassVar, NamedTuple, Self

import numpy as np
from jaxtyping import Float
from scipy.special import ive

from streamgp.kernels.base import ConstantVariance, Gradient
from streamgp.kernels.distances import squared_distances
from streamgp.kernels.scaled import ScaledKernel, number, shaped_like
from streamgp.kernels.shapes import Columns, Inputs, Matrix, Others
from streamgp.kernels.state_space import Process
from streamgp.kernels.stationary import squared_exponential
from streamgp.parameters import Parameter, positive, replaced
from streamgp.registry import storable

_HARMONICS = 8  # of the cosine series that is its state
_DEVIATIONS = 2.0  # of a kernel's frequencies: 95% of them are not above so many


class _Circle(NamedTuple):
    """Inputs on a circle of radius 1 / lengthscale per column."""

    angle: Inputs
    cosine: Inputs
    sine: Inputs

    @property
    def points(self) -> Float[np.ndarray, "N _"]:
        return np.concatenate([self.cosine, self.sine], axis=1)


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Periodic(ConstantVariance, ScaledKernel):
    """Functions that repeat themselves with a period, in each input column.

    This is an RBF kernel on the circle (cos, sin), which is a valid covariance for any number of
    input columns.

    Args:
        lengthscale: How smooth the functions are within a period, as a distance on a circle of
            radius 1; positive. It starts at 1 by default, and is learned, unless it is given as
            `fixed(…)`.
        variance: The variance of the functions. See `RBF`.
        period: The period, in the units of the inputs (days, for times); positive. It starts at 1
            by default, and is learned, unless it is given as `fixed(…)`.

    Examples:
        >>> import streamgp as sgp
        >>> weekly = sgp.Periodic(period=sgp.fixed(7.0))
        >>> sgp.ContinualGP(sgp.Gaussian(), latents=weekly).channels
        ('y',)
    """

    per_column: ClassVar[tuple[str, ...]] = ("lengthscale", "period")

    period: Parameter = 1.0

    def started(self, spread: Columns, variance: Parameter) -> Self:
        relative = replaced(self, lengthscale=positive(self.lengthscale, 1.0))
        return ScaledKernel.started(relative, spread, variance)

    def matrix(self, x1: Inputs, x2: Others) -> Matrix:
        a = self._circle(x1).points
        b = a if x2 is x1 else self._circle(x2).points
        return squared_exponential(squared_distances(a, b), self.variance)

    def pullback(
        self, x1: Inputs, x2: Others, weights: Matrix, matrix: Matrix | None = None
    ) -> Gradient:
        matrix = self.matrix(x1, x2) if matrix is None else matrix
        a, b = self._circles(x1, x2)
        weighted = weights * matrix
        total = np.add.reduce(weighted, axis=None)
        by_column, by_turn = _pair_sums(a, b, weighted)
        by_column += total / np.square(self.lengthscale)
        return {
            "lengthscale": shaped_like(by_column * (2.0 / self.lengthscale), self.lengthscale),
            "variance": total / self.variance,
            "period": shaped_like(by_turn / self.period, self.period),
        }

    def input_gradient(
        self, x1: Inputs, x2: Others, weights: Matrix, matrix: Matrix | None = None
    ) -> Inputs:
        weighted = weights * (self.matrix(x1, x2) if matrix is None else matrix)
        a, b = self._circles(x1, x2)
        by_angle = a.cosine * (weighted @ b.sine) - a.sine * (weighted @ b.cosine)
        return by_angle * (2.0 * np.pi / self.period)

    def state_space(self) -> tuple[Process, ...] | None:
        """A cosine series that is cut off after some harmonics, and of equal variance.

        The weights are e^(−1/ℓ²)·I_j(1/ℓ²), twice that for j > 0 (Solin & Särkkä, 2014).
        """
        order = np.arange(_HARMONICS + 1)
        weights = ive(order, number(self.lengthscale) ** -2.0) * np.where(order == 0, 1.0, 2.0)
        weights *= number(self.variance) / weights.sum()
        frequencies = 2 * np.pi / number(self.period) * order
        level, *waves = map(float, weights)
        turns = zip(waves, frequencies[1:].tolist(), strict=True)
        return (Process(level), *(Process(weight, waves=(turn,)) for weight, turn in turns))

    def shortest_waves(self, width: int) -> Columns:
        # Seen along the angle, this is an RBF kernel, whose frequencies are N(0, 1/lengthscale²).
        most = np.clip(_DEVIATIONS / np.asarray(self.lengthscale), 1.0, _HARMONICS)
        return np.broadcast_to(np.asarray(self.period) / most, width)

    def _circle(self, x: Inputs) -> _Circle:
        angle = x * (2.0 * np.pi / self.period)
        return _Circle(angle, np.cos(angle) / self.lengthscale, np.sin(angle) / self.lengthscale)

    def _circles(self, x1: np.ndarray, x2: np.ndarray) -> tuple[_Circle, _Circle]:
        """Both from the mean of the second: small angles keep the digits of their differences."""
        origin = np.add.reduce(x2, axis=0) / max(len(x2), 1)
        return self._circle(x1 - origin), self._circle(x2 - origin)


def _pair_sums(a: _Circle, b: _Circle, weights: Matrix) -> tuple[Columns, Columns]:
    """−Σ_ij weights_ij cos(δ_ij) / lengthscale² and Σ_ij weights_ij δ_ij sin(δ_ij) / lengthscale².

    δ_ij is the angle between two inputs, and there is one sum per column. The first is the change
    with the radius but for a constant, the second that as the circles turn. With the functions of
    a difference expanded, no array of N·M·P numbers is needed.
    """
    width = a.angle.shape[1]
    right = np.concatenate([b.cosine, b.sine, b.angle * b.cosine, b.angle * b.sine], axis=1)
    sums = (weights @ right).reshape(len(weights), 4, width)
    cosine, sine, turned_cosine, turned_sine = sums[:, 0], sums[:, 1], sums[:, 2], sums[:, 3]
    radial = a.cosine * cosine + a.sine * sine
    turning = a.sine * (a.angle * cosine - turned_cosine)
    turning -= a.cosine * (a.angle * sine - turned_sine)
    return -np.add.reduce(radial, axis=0), np.add.reduce(turning, axis=0)
