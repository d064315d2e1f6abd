"""tinygp's quasiseparable kernels as the kernels of this package that they are.

They are functions of time with a state, and each of them has a counterpart here with the same
covariance. Nothing of JAX is needed once they have been read, not even to load a file.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from tinygp.kernels import quasisep

from streamgp.errors import ConfigurationError, problem
from streamgp.kernels.base import Kernel
from streamgp.kernels.carma import CARMA, process_variance
from streamgp.kernels.composite import Multiple, added, multiplied
from streamgp.kernels.oscillators import SHO, Cosine
from streamgp.kernels.stationary import Matern12, Matern32, Matern52
from streamgp.parameters import Frozen, Parameter, fixed

_MATERN: dict[type, type[Matern12 | Matern32 | Matern52]] = {
    quasisep.Exp: Matern12,
    quasisep.Matern32: Matern32,
    quasisep.Matern52: Matern52,
}


def native(kernel: Any) -> Kernel:
    """The kernel of this package with the same covariance, and the same numbers to start from.

    Raises:
        ConfigurationError: If it is a class of the user's own, or is not a covariance.
    """
    kind = type(kernel)
    if kind is quasisep.Sum:
        return added(native(kernel.kernel1), native(kernel.kernel2))
    if kind is quasisep.Product:
        return multiplied(native(kernel.kernel1), native(kernel.kernel2))
    if kind is quasisep.Scale:
        return Multiple(_read(kernel.scale), native(kernel.kernel))
    if kind in _MATERN:
        return _MATERN[kind](_read(kernel.scale), _read(kernel.sigma, np.square))
    if kind is quasisep.Cosine:
        return Cosine(_read(kernel.scale), _read(kernel.sigma, np.square))
    if kind is quasisep.SHO:
        period = _read(kernel.omega, lambda omega: 2 * np.pi / omega)
        return SHO(period, _read(kernel.quality), _read(kernel.sigma, np.square))
    if kind is quasisep.Celerite:
        return _celerite(kernel.a, kernel.b, kernel.c, kernel.d)
    if kind is quasisep.CARMA:
        alpha, beta = np.asarray(kernel.alpha, float), np.asarray(kernel.beta, float)
        return CARMA.of(alpha, beta, variance=process_variance(alpha, beta))
    raise ConfigurationError(
        problem(
            "a quasiseparable kernel that tinygp has: Exp, Matern32, Matern52, Cosine, SHO, "
            "Celerite, CARMA, sums, products and multiples of them",
            kind.__name__,
            "Derive a class from streamgp's `Kernel` instead.",
        )
    )


def _read(value: Any, change: Callable[[Any], Any] = np.asarray) -> Parameter:
    """A number as another function of it, fixed if it was."""
    if isinstance(value, Frozen):
        return fixed(change(value.value))
    return float(change(np.asarray(value, float)))


def _celerite(*numbers: Any) -> Kernel:
    """exp(−c·t)·(a·cos(d·t) + b·sin(d·t)), which is a CARMA(2, 1) process.

    Its spectrum has (ac + bd)(c² + d²) + (ac − bd)ω² above, and |(iω)² + 2c·iω + c² + d²|² below.
    """
    held = [isinstance(value, Frozen) for value in numbers]
    a, b, c, d = (float(_plain(value)) for value in numbers)
    above = (a * c + b * d) * (c**2 + d**2), a * c - b * d
    if not (min(a, c) > 0 and above[0] > 0 and above[1] >= 0):
        raise ConfigurationError(
            problem(
                "a Celerite kernel that is a covariance: a and c positive, and |b·d| ≤ a·c",
                f"a={a}, b={b}, c={c}, d={d}",
                "Change its numbers.",
            )
        )
    if any(held) and not all(held):
        raise ConfigurationError(
            problem(
                "all four numbers of a Celerite kernel fixed, or none",
                f"{sum(held)} of them fixed",
                "Fix all of them, or take a CARMA or SHO kernel.",
            )
        )
    found = CARMA.of([c**2 + d**2, 2 * c], np.sqrt(above), variance=a)
    if not all(held):
        return found
    return CARMA(fixed(found.autoregressive), fixed(found.moving_average), fixed(a))


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Frozen) else value
