"""Observations of one channel as numbers that its likelihood allows."""

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from streamgp.data import columns, frames
from streamgp.data.columns import Column, Label
from streamgp.data.labels import encode
from streamgp.data.wording import and_more, counted
from streamgp.errors import DataError, problem
from streamgp.likelihoods import Likelihood


def observed(values: Any, rows: int, what: str) -> Column:
    """Read observations of any kind, one per row of the inputs.

    Args:
        values: A series, an array, a list, or a frame of one column.
        rows: How many rows the inputs have.
        what: What the observations are, for a message.

    Returns:
        The observations as they are: numbers, times or labels.

    Raises:
        DataError: If there are more or fewer observations, or they cannot be read.
    """
    if frames.is_frame(values) and len(frames.names(values)) == 1:
        values = frames.pick(values, frames.names(values)[0])
    if not columns.is_series(values):
        values = np.atleast_1d(columns.as_array(values, what))
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
    shape = (len(values),) if columns.is_series(values) else values.shape
    if shape != (rows,):
        raise DataError(
            problem(
                f"{counted(rows, 'observation')}, one per row of the inputs, as {what}",
                f"shape {shape}",
                "Give one observation for each row of the inputs.",
            )
        )
    return columns.read(values, what)


def numbered(
    column: Column, likelihood: Likelihood, known: tuple[Label, ...] | None, what: str
) -> tuple[Float[np.ndarray, " N"], tuple[Label, ...]]:
    """Turn observations into numbers.

    Args:
        column: The observations.
        likelihood: The likelihood of their channel.
        known: The labels of the channel so far, or None if it has not been observed yet.
        what: What the observations are, for a message.

    Returns:
        The numbers, NaN where a value is missing; and the labels of the channel from now on.

    Raises:
        DataError: If the likelihood does not take observations of this kind.
    """
    if likelihood.classes:
        return encode(column, known, likelihood.classes, what, ordered=_needs_order(likelihood))
    if column.kind != "number":
        raise DataError(problem(f"{what} as numbers", column.describe(), "Convert them first."))
    return column.values, ()


def check_support(
    y: Float[np.ndarray, " N"], likelihood: Likelihood, what: str, rows: Int[np.ndarray, " N"]
) -> None:
    """Raise an error where the likelihood gives an observation no density.

    Args:
        y: The observations as numbers.
        likelihood: The likelihood of their channel.
        what: What the observations are, for the message.
        rows: The number of the row of each in the user's data.

    Raises:
        DataError: If an observation is outside the support of the likelihood.
    """
    bad = np.flatnonzero(~likelihood.valid(y))
    if not len(bad):
        return
    family, classes = type(likelihood).__name__, likelihood.classes
    expected, remedy = what, "Check the channel's likelihood, or leave such rows out."
    if classes:
        numbers = "0 and 1" if classes == 2 else f"from 0 to {classes - 1}"
        expected, remedy = f"{what} as classes numbered {numbers},", _class_remedy(y, likelihood)
    first = f"{float(y[bad[0]])} in row {rows[bad[0]]}"
    raise DataError(
        problem(f"{expected} in the support of {family}", and_more(first, len(bad)), remedy)
    )


def _class_remedy(y: Float[np.ndarray, " N"], likelihood: Likelihood) -> str:
    """How to number classes from zero, as far as the numbers tell how they were counted."""
    present, classes = set(y.tolist()), likelihood.classes
    labels = "labels of a categorical data type" if _needs_order(likelihood) else "labels as text"
    if classes == 2 and present <= {-1.0, 1.0}:
        return f"Convert −1 and 1 to 0 and 1 with `(y + 1) / 2`, or give {labels}."
    if present <= set(range(1, classes + 1)):
        return f"Convert them with `y - 1`, or give {labels}."
    return f"Number the classes from 0, or give {labels}."


def _needs_order(likelihood: Likelihood) -> bool:
    return likelihood.ordered and likelihood.classes > 2
