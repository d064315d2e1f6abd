"""Horizons: inputs that lie ahead of all that came, at equal steps."""

from typing import Any

import numpy as np
from jaxtyping import Float

from streamgp.data.axes import Axis
from streamgp.data.durations import days, is_duration
from streamgp.errors import ConfigurationError, problem

_MOST = 1_000_000  # steps
_ROUNDING = 1e-9  # of a step


def inputs_ahead(axis: Axis, latest: float, ahead: Any, every: Any) -> Float[np.ndarray, "N 1"]:
    """Inputs after the latest one, as the model's numbers.

    Args:
        axis: What the input column holds.
        latest: The largest input so far.
        ahead: A number of steps, or how far they go as a duration or a floating-point number.
        every: The length of a step.

    Raises:
        ConfigurationError: If these are not positive, or of the wrong kind for the inputs.
    """
    step = length(axis, every, "every")
    if isinstance(ahead, int | np.integer) and not isinstance(ahead, bool):
        count = int(ahead)
    else:
        count = int(np.floor(length(axis, ahead, "ahead") / step + _ROUNDING))
    if not 0 < count <= _MOST:
        raise ConfigurationError(
            problem(
                f"between 1 and {_MOST:,} steps ahead",
                f"{count:,}",
                "Let `ahead` be a number of steps, or at least as long as `every`.",
            )
        )
    return (latest + step * np.arange(1, count + 1))[:, None]


def length(axis: Axis, given: Any, name: str) -> float:
    """A length in the units of the model's inputs.

    Args:
        axis: What the input column holds.
        given: A duration or a number.
        name: Of the argument, for a message.

    Raises:
        ConfigurationError: If it is not positive, or of the wrong kind for the inputs.
    """
    if is_duration(given):
        if not axis.is_time:
            raise ConfigurationError(
                problem(
                    f"`{name}` as a number, since inputs are numbers",
                    repr(given),
                    "Give it in the units of the inputs.",
                )
            )
        return days(given)
    is_number = isinstance(given, int | float | np.number) and not isinstance(given, bool)
    if not (is_number and np.isfinite(given) and given > 0):
        raise ConfigurationError(
            problem(
                f"`{name}` as a positive number or a duration",
                repr(given),
                'With times, write a duration such as "1h" or "2D".',
            )
        )
    return float(given)
