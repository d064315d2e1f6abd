"""Kernels of the distance between two inputs.

Each is variance · φ(s) for the squared distance s in lengthscales. Derivatives by lengthscales and
by inputs all follow from variance · φ'(s), here called the slope. It is written with the value of
the kernel where that saves an exponential.
"""

import dataclasses
import math
from abc import abstractmethod
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from streamgp.kernels.base import ConstantVariance, Gradient, Kernel
from streamgp.kernels.blocks import row_blocks
from streamgp.kernels.distances import (
    distances,
    first_moments,
    second_moments,
    squared_distances,
)
from streamgp.kernels.scaled import ScaledKernel, number, shaped_like
from streamgp.kernels.shapes import Inputs, Matrix, Others
from streamgp.kernels.state_space import MATERN, LinearSDE, Process
from streamgp.parameters import Parameter
from streamgp.registry import storable


@dataclasses.dataclass(frozen=True, eq=False)
class Stationary(ConstantVariance, ScaledKernel):
    """A kernel whose matrix and slope are functions of `measure`: the distance or its square."""

    # The slope is this number times what `weighted_slope` gives for unit weights.
    slope_scale: ClassVar[float]
    # Whether the slope grows without bound where two inputs meet. `measure` is then the distance.
    is_steep: ClassVar[bool] = False

    def measure(self, a: Inputs, b: Others) -> Matrix:
        """The squared distance, or the distance, between inputs in lengthscales."""
        return squared_distances(a, b)

    @abstractmethod
    def values(self, measure: Matrix) -> Matrix:
        """The kernel, written over what it is given."""

    @abstractmethod
    def weighted_slope(self, weights: Matrix, measure: Matrix, matrix: Matrix) -> Matrix:
        """The weights times the kernel's derivative by the squared distance, as a new array."""

    def matrix(self, x1: Inputs, x2: Others) -> Matrix:
        return self.values(self.measure(*self._coordinates(x1, x2)))

    def pullback(
        self, x1: Inputs, x2: Others, weights: Matrix, matrix: Matrix | None = None
    ) -> Gradient:
        a, b = self._coordinates(x1, x2)
        blocks = [
            self._block_pullback(a[rows], b, weights[rows], _rows_of(matrix, rows))
            for rows in row_blocks(len(a), len(b))
        ]
        total = {name: sum(part[name] for part in blocks) for name in blocks[0]}
        by_column = total["lengthscale"] * (-2.0 * self.slope_scale / self.lengthscale)
        return total | {
            "lengthscale": shaped_like(by_column, self.lengthscale),
            "variance": total["variance"] / self.variance,
        }

    def input_gradient(
        self, x1: Inputs, x2: Others, weights: Matrix, matrix: Matrix | None = None
    ) -> Inputs:
        a, b = self._coordinates(x1, x2)
        gradient = np.empty(a.shape)
        for rows in row_blocks(len(a), len(b)):
            measure, values = self._evaluated(a[rows], b, _rows_of(matrix, rows))
            slope = self.weighted_slope(weights[rows], measure, values)
            gradient[rows] = first_moments(a[rows], b, slope, measure if self.is_steep else None)
        gradient *= 2.0 * self.slope_scale / self.lengthscale
        return gradient

    def _block_pullback(
        self, a: np.ndarray, b: np.ndarray, weights: Matrix, matrix: Matrix | None
    ) -> Gradient:
        """Sums over the pairs of a block, still without the factors that all pairs share."""
        measure, matrix = self._evaluated(a, b, matrix)
        slope = self.weighted_slope(weights, measure, matrix)
        return {
            "lengthscale": second_moments(a, b, slope, measure if self.is_steep else None),
            "variance": np.vdot(weights, matrix),
            **self._further_gradients(weights, measure, matrix),
        }

    def _evaluated(
        self, a: np.ndarray, b: np.ndarray, matrix: Matrix | None
    ) -> tuple[Matrix, Matrix]:
        """Measure and matrix, which may be known."""
        measure = self.measure(a, b)
        return measure, self.values(measure.copy()) if matrix is None else matrix

    def _further_gradients(self, weights: Matrix, measure: Matrix, matrix: Matrix) -> Gradient:
        """Derivatives by parameters other than the two that all have."""
        return {}


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class RBF(Stationary):
    """The squared exponential kernel: functions that are infinitely smooth.

    Args:
        lengthscale: The distance over which functions change, in the units of the inputs; positive.
            One number for all input columns, or an array with one per column. By default there is
            one per column. With one column it starts at a quarter of the spread of the first
            batch; with several, at the spread of each times the square root of their number. It
            is learned, unless it is given as `fixed(…)`.
        variance: The variance of the functions; positive. In a model with one channel and one
            latent function it starts at the variance of the first data by default, and is learned.
            In other models the mixing weights carry the scale: by default the variance is then
            fixed at 1, or starts at 1 in a sum or a product of kernels. A number that is given is
            where learning starts, and `fixed(…)` keeps it.

    Examples:
        >>> import streamgp as sgp
        >>> kernel = sgp.RBF(lengthscale=sgp.fixed(2.0)) + sgp.Periodic(period=7.0)
        >>> sgp.ContinualGP(sgp.Gaussian(), latents=kernel).channels
        ('y',)
    """

    slope_scale: ClassVar[float] = -0.5

    def as_markov(self, order: int = 6) -> Kernel:
        """This kernel over one input, approximated so that a chain can keep it.

        Args:
            order: How close it is: see `MarkovRBF`.

        Returns:
            The approximation. This kernel is as it was.
        """
        from streamgp.kernels.markov_rbf import MarkovRBF

        return MarkovRBF(self.lengthscale, self.variance, order)

    def values(self, measure: Matrix) -> Matrix:
        return squared_exponential(measure, self.variance)

    def weighted_slope(self, weights: Matrix, measure: Matrix, matrix: Matrix) -> Matrix:
        return weights * matrix

    def _evaluated(
        self, a: np.ndarray, b: np.ndarray, matrix: Matrix | None
    ) -> tuple[Matrix, Matrix]:
        """The slope needs no distances, so they are not computed where the matrix is known."""
        known = self.values(self.measure(a, b)) if matrix is None else matrix
        return known, known


class Matern(Stationary):
    """variance · p(t) exp(−t) for t = √(2ν) r, where ν is order + ½ and p a polynomial."""

    order: ClassVar[int]

    def measure(self, a: Inputs, b: Others) -> Matrix:
        return distances(a, b)

    def values(self, measure: Matrix) -> Matrix:
        for rows in row_blocks(*measure.shape):
            t = measure[rows]
            t *= self._root
            decay = np.exp(-t)
            decay *= self.variance
            np.multiply(decay, _polynomial(self.order, t), out=t)
        return measure

    def weighted_slope(self, weights: Matrix, measure: Matrix, matrix: Matrix) -> Matrix:
        """From p′ − p, which is t times the polynomial before but for a factor."""
        t = self._root * measure
        slope = matrix / _polynomial(self.order, t)
        slope *= _polynomial(self.order - 1, t)
        slope *= weights
        return slope

    def state_space(self) -> tuple[Process, ...] | None:
        rate = self._root / number(self.lengthscale)
        return (Process(number(self.variance), driven=(LinearSDE(rate, MATERN[self.order]),)),)

    @property
    def _root(self) -> float:
        return math.sqrt(2 * self.order + 1)


def _polynomial(order: int, t: Matrix) -> Matrix | float:
    """1, 1 + t, or 1 + t + t²/3."""
    if order == 0:
        return 1.0
    found = 1.0 + t if order == 1 else t * (1.0 / 3.0) + 1.0
    if order == 2:
        found *= t
        found += 1.0
    return found


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Matern12(Matern):
    """The exponential (Ornstein-Uhlenbeck) kernel: functions that are continuous and rough.

    Args:
        lengthscale: The distance over which functions change. See `RBF`.
        variance: The variance of the functions. See `RBF`.
    """

    order: ClassVar[int] = 0
    slope_scale: ClassVar[float] = -0.5
    is_steep: ClassVar[bool] = True

    def weighted_slope(self, weights: Matrix, measure: Matrix, matrix: Matrix) -> Matrix:
        """Zero where two inputs coincide: there the kernel has its peak, whatever its scale."""
        slope = np.where(measure > 0.0, measure, np.inf)
        np.divide(matrix, slope, out=slope)
        slope *= weights
        return slope


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Matern32(Matern):
    """The Matérn kernel with ν = 3/2: functions that can be differentiated once.

    Args:
        lengthscale: The distance over which functions change. See `RBF`.
        variance: The variance of the functions. See `RBF`.
    """

    order: ClassVar[int] = 1
    slope_scale: ClassVar[float] = -1.5


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Matern52(Matern):
    """The Matérn kernel with ν = 5/2: functions that can be differentiated twice.

    Args:
        lengthscale: The distance over which functions change. See `RBF`.
        variance: The variance of the functions. See `RBF`.
    """

    order: ClassVar[int] = 2
    slope_scale: ClassVar[float] = -5.0 / 6.0


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class RationalQuadratic(Stationary):
    """A mixture of RBF kernels with different lengthscales.

    Args:
        lengthscale: The distance over which functions change. See `RBF`.
        variance: The variance of the functions. See `RBF`.
        alpha: How narrow the mixture is; positive. The larger it is, the closer the kernel is to an
            RBF. It starts at 1 by default, and is learned, unless it is given as `fixed(…)`.
    """

    slope_scale: ClassVar[float] = -0.5

    alpha: Parameter = 1.0

    def values(self, measure: Matrix) -> Matrix:
        """(1 + u)^−α for u = s / 2α, through the logarithm, which is faster than the power."""
        measure *= 0.5 / self.alpha
        values = np.log1p(measure, out=measure)
        values *= -self.alpha
        np.exp(values, out=values)
        values *= self.variance
        return values

    def weighted_slope(self, weights: Matrix, measure: Matrix, matrix: Matrix) -> Matrix:
        """matrix / (1 + u)."""
        slope = measure * (0.5 / self.alpha)
        slope += 1.0
        np.divide(matrix, slope, out=slope)
        slope *= weights
        return slope

    def _further_gradients(self, weights: Matrix, measure: Matrix, matrix: Matrix) -> Gradient:
        """∂k/∂α = k · (u / (1 + u) − log(1 + u))."""
        u = measure * (0.5 / self.alpha)
        change = 1.0 + u
        np.divide(u, change, out=change)
        change -= np.log1p(u, out=u)
        change *= matrix
        return {"alpha": np.vdot(weights, change)}


def _rows_of(matrix: Matrix | None, rows: slice) -> Float[np.ndarray, "_ _"] | None:
    return None if matrix is None else matrix[rows]


def squared_exponential(squares: Matrix, variance: float) -> Matrix:
    """variance · exp(−s / 2), written over the squared distances s."""
    squares *= -0.5
    np.exp(squares, out=squares)
    squares *= variance
    return squares
