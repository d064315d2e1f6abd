"""What predictions refuse."""

import numpy as np

from streamgp.errors import DataError, problem
from streamgp.likelihoods import Likelihood


def check_count(count: int) -> None:
    """Raise where a number of draws cannot be one."""
    if not (isinstance(count, int | np.integer) and count >= 1):
        raise DataError(problem("a count of at least 1", repr(count), "Ask for one draw."))


def check_probability(level: float) -> None:
    """Raise where a number is no probability between 0 and 1."""
    if not (isinstance(level, int | float | np.floating) and 0 < level < 1):
        raise DataError(problem("a probability between 0 and 1", repr(level), "Use 0.95 for 95%."))


def check_ordered(likelihood: Likelihood) -> None:
    """Raise where one observation cannot be larger than another."""
    if not likelihood.ordered:
        raise DataError(
            problem(
                "a channel whose values are ordered",
                type(likelihood).__name__,
                "Use `probabilities`, or `mean` and `std`, for this channel.",
            )
        )
