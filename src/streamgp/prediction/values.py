"""Observations that a prediction is asked about, as numbers."""

from typing import Any

import numpy as np
from jaxtyping import Float

from streamgp.data.columns import Label
from streamgp.data.observations import numbered, observed
from streamgp.errors import DataError, problem
from streamgp.likelihoods import Likelihood

Labels = tuple[Label, ...]


def read_values(
    y: Any, count: int, likelihood: Likelihood, labels: Labels
) -> Float[np.ndarray, "N ..."]:
    """One observation for each input, checked, as a number; as several where it is several.

    Args:
        y: One observation for each input, or one for all.
        count: How many inputs there are.
        likelihood: Of the channel.
        labels: Of its classes, if they have any.

    Raises:
        DataError: If the family cannot have produced them.
    """
    if likelihood.observation_dim > 1:
        values = _vectors(y, count, likelihood)
        invalid = ~likelihood.valid(values)
    else:
        values, known = _numbers(y, count, likelihood, labels)
        invalid = ~likelihood.valid(values) | (values >= (len(known) or np.inf))
    if invalid.any():
        raise DataError(
            problem(
                f"values in the support of {type(likelihood).__name__}",
                f"{values[invalid][0]!r} ({invalid.sum()} such)",
                "Leave those out.",
            )
        )
    return values


def _numbers(
    y: Any, count: int, likelihood: Likelihood, labels: Labels
) -> tuple[Float[np.ndarray, " N"], Labels]:
    """Observations as numbers, and the labels that those stand for."""
    what = "observations of the prediction"
    if np.ndim(y) == 0:
        y = np.full(count, y, object if isinstance(y, str) else None)
    column = observed(y, count, what)
    known = labels or (() if column.kind == "number" else None)
    return numbered(column, likelihood, known, what)


def _vectors(y: Any, count: int, likelihood: Likelihood) -> Float[np.ndarray, "N C"]:
    """Observations of several numbers each: one row per input, or the same row at all."""
    wanted = (count, likelihood.observation_dim)
    try:
        values = np.asarray(y, float)
    except (TypeError, ValueError):
        values = np.zeros(0)
    if values.shape not in (wanted, wanted[1:]):
        raise DataError(
            problem(
                f"numbers of shape {wanted} or {wanted[1:]}",
                f"a {type(y).__name__} of shape {np.shape(np.asarray(y, object))}",
                f"Give {', '.join(likelihood.columns)} of each observation.",
            )
        )
    return np.broadcast_to(values, wanted)
