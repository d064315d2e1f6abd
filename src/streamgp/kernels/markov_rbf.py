"""The RBF kernel as a state, by explicit choice: an approximation of a stated order."""

import dataclasses
import functools
import math
from typing import NamedTuple, Self

import numpy as np
from jaxtyping import Complex

from streamgp.errors import ConfigurationError, problem
from streamgp.kernels.base import Gradient
from streamgp.kernels.one_input import OneInput, differences
from streamgp.kernels.scaled import number, shaped_like
from streamgp.kernels.shapes import Columns, Inputs, Matrix, Others
from streamgp.kernels.state_space import LinearSDE, Process
from streamgp.kernels.stationary import RBF
from streamgp.parameters import Parameter, replaced
from streamgp.registry import storable

ORDERS = range(2, 13)


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class MarkovRBF(OneInput):
    """An RBF kernel over one input, approximated so that a chain can keep it.

    The spectrum of an RBF, exp(−ω²ℓ²/2), becomes one over the Taylor polynomial of exp(ω²ℓ²/2) of
    some order (Hartikainen and Särkkä, 2010), scaled to the same variance. A state then has as many
    numbers as the order says. The largest error of a covariance, as a part of the variance, is
    0.022 for order 4, 0.0043 for order 6, 0.00092 for order 8 and 0.00021 for order 10. The dense
    engine takes the same approximation.

    Args:
        lengthscale: See `RBF`; a single number.
        variance: See `RBF`.
        order: From 2 to 12.

    Raises:
        ConfigurationError: If the order is another number.

    Examples:
        >>> import streamgp as sgp
        >>> smooth = sgp.RBF(2.0).as_markov(order=8)
        >>> sgp.ContinualGP(sgp.Gaussian(), latents=smooth, engine="chain").channels
        ('y',)
    """

    lengthscale: Parameter = None
    variance: Parameter = None
    order: int = 6

    def __post_init__(self) -> None:
        if not isinstance(self.order, int) or self.order not in ORDERS:
            raise ConfigurationError(
                problem(
                    f"an order from {ORDERS[0]} to {ORDERS[-1]}",
                    repr(self.order),
                    "A higher order is closer to an RBF, and costs more.",
                )
            )

    def started(self, spread: Columns, variance: Parameter) -> Self:
        self.check(spread)
        exact = RBF(self.lengthscale, self.variance).started(spread, variance)
        return replaced(self, lengthscale=exact.lengthscale, variance=exact.variance)

    def matrix(self, x1: Inputs, x2: Others) -> Matrix:
        return self.variance * _law(self.order).values(self._distances(x1, x2))

    def pullback(
        self, x1: Inputs, x2: Others, weights: Matrix, matrix: Matrix | None = None
    ) -> Gradient:
        apart, law = self._distances(x1, x2), _law(self.order)
        by_distance = np.vdot(weights, apart * law.slopes(apart))
        by_lengthscale = -by_distance * self.variance / number(self.lengthscale)
        return {
            "lengthscale": shaped_like(np.ravel(by_lengthscale), self.lengthscale),
            "variance": np.vdot(weights, law.values(apart)),
        }

    def input_gradient(
        self, x1: Inputs, x2: Others, weights: Matrix, matrix: Matrix | None = None
    ) -> Inputs:
        slope = _law(self.order).slopes(self._distances(x1, x2))
        slope *= np.sign(differences(x1, x2)) * (self.variance / number(self.lengthscale))
        return np.sum(weights * slope, axis=1, keepdims=True)

    def state_space(self) -> tuple[Process, ...] | None:
        smooth = LinearSDE(1.0 / number(self.lengthscale), _law(self.order).coefficients)
        return (Process(number(self.variance), driven=(smooth,)),)

    def _distances(self, x1: np.ndarray, x2: np.ndarray) -> Matrix:
        return np.abs(differences(x1, x2)) / number(self.lengthscale)


class _Law(NamedTuple):
    """For unit lengthscale and variance: k(r) is the sum of residue·exp(root·r).

    Attributes:
        coefficients: α of the equation, but for the last one, which is 1.
        roots: Of α, all with a negative real part.
        residues: Of the spectrum at the roots.
    """

    coefficients: tuple[float, ...]
    roots: Complex[np.ndarray, " p"]
    residues: Complex[np.ndarray, " p"]

    def values(self, apart: Matrix) -> Matrix:
        """k at distances."""
        return self._summed(apart, self.residues)

    def slopes(self, apart: Matrix) -> Matrix:
        """Its derivative there."""
        return self._summed(apart, self.residues * self.roots)

    def _summed(self, apart: Matrix, factors: Complex[np.ndarray, " p"]) -> Matrix:
        # Roots come in conjugate pairs, of which the upper one counts twice.
        found = np.zeros(apart.shape)
        for root, factor in zip(self.roots, factors, strict=True):
            if root.imag >= 0:
                times = 2.0 if root.imag > 0 else 1.0
                found += times * (factor * np.exp(root * apart)).real
        return found


@functools.cache
def _law(order: int) -> _Law:
    """Of an order: 1/Σ (ω²/2)^n/n!, as a function of s = iω."""
    polynomial = np.zeros(2 * order + 1)
    polynomial[::2] = [(-0.5) ** n / math.factorial(n) for n in range(order + 1)]
    roots = np.roots(polynomial[::-1])
    roots = roots[roots.real < 0]
    roots = np.where(np.abs(roots.imag) < 1e-9, roots.real, roots)
    others = roots[:, None] - roots
    np.fill_diagonal(others, 1.0)
    residues = 1 / (np.prod(others, axis=1) * np.prod(-roots[:, None] - roots, axis=1))
    coefficients = np.poly(roots).real[:0:-1]
    return _Law(tuple(coefficients.tolist()), roots, residues / np.sum(residues))
