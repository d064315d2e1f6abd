"""Observations of one channel, of any kind, as numbers in the support of its likelihood."""

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from streamgp.data import columns, frames
from streamgp.data.columns import Column
from streamgp.data.labels import encode
from streamgp.errors import DataError, problem
from streamgp.likelihoods import Likelihood


def observed(values: Any, rows: int, what: str) -> Column:
    """One observation per row, of any kind."""
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
                f"{rows} observation(s), one per row of the inputs, as {what}",
                f"shape {shape}",
                "Give one for each input row.",
            )
        )
    return columns.read(values, what)


def numbered(
    column: Column, likelihood: Likelihood, known: tuple | None, what: str
) -> tuple[Float[np.ndarray, " N"], tuple]:
    """Observations as numbers, NaN where missing; and the channel's labels, if it has classes."""
    if likelihood.classes:
        return encode(
            column,
            known,
            likelihood.classes,
            what,
            ordered=likelihood.ordered and likelihood.classes > 2,
        )
    if column.kind != "number":
        raise DataError(problem(f"{what} as numbers", column.describe(), "Convert them first."))
    return column.values, ()


def check_support(
    y: Float[np.ndarray, " N"], likelihood: Likelihood, what: str, rows: Int[np.ndarray, " N"]
) -> None:
    bad = np.flatnonzero(~likelihood.valid(y))
    if len(bad):
        raise DataError(
            problem(
                f"{what} in the support of {type(likelihood).__name__}",
                f"{y[bad[0]]!r} in row {rows[bad[0]]} ({len(bad)} such)",
                "Check the channel's likelihood, or leave those rows out.",
            )
        )
