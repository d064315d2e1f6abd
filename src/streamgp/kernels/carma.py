"""Continuous-time autoregressive moving-average processes (Brockwell, 2001), over one input."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float

from streamgp.errors import ConfigurationError, problem
from streamgp.kernels.one_input import OneInput, differences
from streamgp.kernels.scaled import number
from streamgp.kernels.shapes import Inputs, Matrix, Others
from streamgp.kernels.state_space import LinearSDE, Process, sustained
from streamgp.parameters import Node, Parameter
from streamgp.registry import storable

_REAL = 1e-9  # relative: roots that are so close to the real line are on it


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class CARMA(OneInput):
    """A CARMA(p, q) process: the spectrum |β(iω)|²/|α(iω)|² with polynomials of degrees p > q.

    Both polynomials are given by factors with positive numbers, which are all that a stationary
    process can have. Two numbers a, b stand for the factor s² + b·s + a, and a last one alone, c,
    for the factor s + c. `CARMA.of` takes coefficients instead.

    Args:
        autoregressive: p positive numbers, the factors of α. Each is where learning starts, and
            `fixed(…)` keeps all of them.
        moving_average: q < p positive numbers, the factors of β.
        variance: The variance of the functions. See `RBF`.

    Raises:
        ConfigurationError: If there are not more of the first than of the second.

    Examples:
        >>> import streamgp as sgp
        >>> rhythm = sgp.CARMA([4.0, 0.5], [1.0])  # poles of s² + s/2 + 4, a zero at −1
        >>> sgp.ContinualGP(sgp.Gaussian(), latents=rhythm).channels
        ('y',)
    """

    autoregressive: Parameter
    moving_average: Parameter = ()
    variance: Parameter = None

    def __post_init__(self) -> None:
        given = self.autoregressive, self.moving_average
        p, q = (np.shape(own.value if isinstance(own, Node) else own) for own in given)
        if len(p) != 1 or len(q) != 1 or p[0] <= q[0]:
            raise ConfigurationError(
                problem(
                    "a list of numbers, and a shorter one, for a CARMA process",
                    f"{self.autoregressive!r} and {self.moving_average!r}",
                    "Two numbers stand for a factor s² + b·s + a: CARMA([a, b]).",
                )
            )
        for name, own in zip(("autoregressive", "moving_average"), given, strict=True):
            if not isinstance(own, Node):
                object.__setattr__(self, name, np.asarray(own, float))

    @classmethod
    def of(cls, alpha: Any, beta: Any = (1.0,), *, variance: Parameter = None) -> "CARMA":
        """The process with these coefficients, the first of each being that of s⁰.

        Args:
            alpha: The p coefficients of α, the last one, of s^p, being 1 and left out.
            beta: At most p coefficients of β. A common factor does not matter: `variance` says how
                large functions are.
            variance: See the class.

        Raises:
            ConfigurationError: If the process is not stationary, or β has a root without a real
                part.

        Examples:
            >>> import streamgp as sgp
            >>> sgp.CARMA.of([4.0, 0.5], [1.0, 2.0]).moving_average
            array([0.5])
        """
        left = _factors(np.append(np.asarray(alpha, float), 1.0), mirrored=False)
        return cls(left, _factors(np.asarray(beta, float), mirrored=True), variance)

    def matrix(self, x1: Inputs, x2: Others) -> Matrix:
        gaps, which = np.unique(np.abs(differences(x1, x2)), return_inverse=True)
        return self._process.covariances(gaps)[which].reshape(len(x1), len(x2))

    def state_space(self) -> tuple[Process, ...] | None:
        return (self._process,)

    @property
    def _process(self) -> Process:
        alpha, beta = map(_polynomial, (self.autoregressive, self.moving_average))
        driven = LinearSDE(1.0, alpha, beta, free=tuple(range(1, 1 + len(alpha + beta))))
        return Process(number(self.variance), driven=(driven,))


def process_variance(alpha: Float[np.ndarray, " p"], beta: Float[np.ndarray, " q"]) -> float:
    """The variance of the process with these coefficients that noise of unit strength drives."""
    weights = np.pad(beta, (0, len(alpha) - len(beta)))
    return float(weights @ sustained(alpha) @ weights)


def _polynomial(factors: Parameter) -> tuple[float, ...]:
    """The coefficients of a product of factors, that of s⁰ first, and the last, a one, left out."""
    numbers, found = np.asarray(factors, float), np.ones(1)
    for k in range(0, len(numbers), 2):
        found = np.convolve(found, np.append(numbers[k : k + 2], 1.0))
    return tuple(found[:-1].tolist())


def _factors(coefficients: Float[np.ndarray, " n"], *, mirrored: bool) -> Float[np.ndarray, " m"]:
    """The factors of a polynomial, with roots on the other side mirrored if that is allowed."""
    roots = np.roots(coefficients[::-1])
    roots = np.where(roots.real > 0, -np.conj(roots), roots) if mirrored else roots
    if len(coefficients.shape) != 1 or not np.isfinite(roots).all() or np.any(roots.real >= 0):
        raise ConfigurationError(
            problem(
                "coefficients of a stationary CARMA process",
                f"{coefficients.tolist()}, whose roots are {np.round(roots, 6).tolist()}",
                "All roots must have a negative real part.",
            )
        )
    is_real = np.abs(roots.imag) <= _REAL * np.abs(roots)
    pairs = [(abs(r) ** 2, -2 * r.real) for r in roots[~is_real] if r.imag > 0]
    real = np.sort(roots[is_real].real)
    pairs += [(a * b, -(a + b)) for a, b in zip(real[0::2], real[1::2], strict=False)]
    last = [-real[-1]] if len(real) % 2 else []
    return np.array([number for pair in pairs for number in pair] + last)
