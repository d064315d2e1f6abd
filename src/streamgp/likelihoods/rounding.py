"""Rounding: what values that repeat tell of the noise that they must have."""

import numpy as np
from jaxtyping import Float

from streamgp.parameters import Parameter, Positive, replaced

_FEWEST = 3  # distinct values that a scale has; two may be all that a quantity takes
_REPEATED = 0.5  # distinct values as a part of all, up to which values are said to repeat


def step_of(y: Float[np.ndarray, " N"]) -> float:
    """The smallest difference between distinct values; infinite if there are not two."""
    values = np.unique(y)
    return float(np.min(np.diff(values))) if len(values) > 1 else np.inf


def rounding_of(y: Float[np.ndarray, " N"]) -> float:
    """The standard deviation of the error that rounding makes, or zero if values do not repeat.

    An error that is uniform over a step has the standard deviation step/√12.
    """
    distinct = len(np.unique(y))
    is_rounded = _FEWEST <= distinct <= _REPEATED * len(y)
    return step_of(y) / np.sqrt(12) if is_rounded else 0.0


def at_least(noise: Parameter, floor: float) -> Parameter:
    """A noise that is learned, with a value that it never falls below; a fixed one as it is."""
    if not isinstance(noise, Positive):
        return noise
    return replaced(noise, floor=floor)


def rounded_as(noise: Parameter, other: Parameter) -> Parameter:
    """A noise that is learned, with what is known of rounding from another one."""
    if not (isinstance(noise, Positive) and isinstance(other, Positive)):
        return noise
    return replaced(noise, least=other.least)
