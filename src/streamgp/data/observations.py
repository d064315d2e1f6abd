"""Observations of one channel as numbers that its likelihood allows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from streamgp.data import columns, frames
from streamgp.data.columns import Column, Label
from streamgp.data.labels import encode
from streamgp.data.quantities import value_count
from streamgp.data.wording import and_more, counted, place
from streamgp.errors import DataError, problem
from streamgp.likelihoods import Likelihood, class_count
from streamgp.likelihoods.annotated import Annotated


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
    classes = class_count(likelihood)
    if classes:
        return encode(column, known, classes, what, ordered=_needs_order(likelihood))
    return plain(column, what), ()


def plain(column: Column, what: str) -> Float[np.ndarray, " N"]:
    """The numbers of a column.

    Args:
        column: The column.
        what: What its values are, for a message.

    Returns:
        The numbers, NaN where a value is missing.

    Raises:
        DataError: If the column does not hold numbers.
    """
    if column.kind != "number":
        raise DataError(problem(f"{what} as numbers", column.describe(), "Convert them first."))
    return column.values


def present(
    read: Sequence[Column], likelihood: Likelihood, what: str, rows: Int[np.ndarray, " N"]
) -> Bool[np.ndarray, " N"]:
    """Which rows were observed: those whose value is not missing.

    Args:
        read: One column for each of the likelihood's.
        likelihood: The likelihood of the channel.
        what: What the observations are, for a message.
        rows: The number of each row in the user's data.

    Returns:
        A flag per row.

    Raises:
        DataError: If a row has a value, and something else that belongs to it is missing.
    """
    missing = np.stack([column.missing for column in read])
    values = value_count(likelihood)
    seen = ~np.all(missing[:values], axis=0)
    for number, (name, gone) in enumerate(zip(likelihood.columns, missing, strict=True)):
        bad = np.flatnonzero(seen & gone)
        if len(bad):
            is_value = number < values
            raise DataError(
                problem(
                    f"the {name} of each of the {what}",
                    f"{counted(len(bad), 'missing value')}, {place(len(bad), rows[bad[0]])}",
                    "Fill in 0 where there was none, or leave all numbers of such rows out."
                    if is_value
                    else f"Fill in the {name} of such rows, or leave out their values.",
                )
            )
    return seen


def check_support(
    y: Float[np.ndarray, "N C"], likelihood: Likelihood, what: str, rows: Int[np.ndarray, " N"]
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
    valid = likelihood.valid(y[:, 0] if y.shape[1] == 1 else y)
    if valid.all():
        return
    bad = np.flatnonzero(~valid)
    classes, columns_ = class_count(likelihood), likelihood.columns
    expected, remedy = what, "Check the channel's likelihood, or leave such rows out."
    if classes:
        numbers = "0 and 1" if classes == 2 else f"from 0 to {classes - 1}"
        expected = f"{what} as classes numbered {numbers},"
        remedy = _class_remedy(y[:, 0], likelihood)
    first = ", ".join(
        f"{number}" if len(columns_) == 1 else f"{name} {number}"
        for name, number in zip(columns_, y[bad[0]].tolist(), strict=True)
    )
    family = family_name(likelihood)
    got = and_more(f"{first} in row {rows[bad[0]]}", len(bad))
    raise DataError(problem(f"{expected} in the support of {family}", got, remedy))


def family_name(likelihood: Likelihood) -> str:
    """The name of a family; of one made from another, with that one's name."""
    own = type(likelihood).__name__
    return f"{own}({family_name(likelihood.base)})" if isinstance(likelihood, Annotated) else own


def _class_remedy(y: Float[np.ndarray, " N"], likelihood: Likelihood) -> str:
    """How to number classes from zero, as far as the numbers tell how they were counted."""
    present, classes = set(y.tolist()), class_count(likelihood)
    labels = "labels of a categorical data type" if _needs_order(likelihood) else "labels as text"
    if classes == 2 and present <= {-1.0, 1.0}:
        return f"Convert −1 and 1 to 0 and 1 with `(y + 1) / 2`, or give {labels}."
    if present <= set(range(1, classes + 1)):
        return f"Convert them with `y - 1`, or give {labels}."
    return f"Number the classes from 0, or give {labels}."


def _needs_order(likelihood: Likelihood) -> bool:
    return likelihood.ordered and class_count(likelihood) > 2
